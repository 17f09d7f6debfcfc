"""docs/deploy.md shows the files that are deployed."""

from tests.hub.conftest import PROJECT, blocks


def test_configuration_in_the_docs_is_the_one_in_deploy() -> None:
    for name in ("nbgrader_config.py", "jupyterhub_config.py"):
        assert (PROJECT / "deploy" / name).read_text(encoding="utf-8") in blocks("python")
