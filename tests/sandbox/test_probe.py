"""What is said about this machine, and that it is found out by trying."""

from __future__ import annotations

import dataclasses

import pytest

from autograder.sandbox import doctor
from autograder.sandbox import probe as probing
from autograder.sandbox.lockdown import Spec


@pytest.fixture(autouse=True)
def fresh_probes():
    yield
    probing.probe.cache_clear()
    probing.working_program.cache_clear()


def test_the_doctor_tries_every_tier():
    found = doctor()
    assert [p.tier for p in found] == ["bubblewrap", "landlock"]
    for p in found:
        assert p.holds or (p.missing.en and p.missing.zh)
    assert any(p.holds for p in found), "the tests need a machine that can isolate"


def test_it_is_tried_once(monkeypatch):
    doctor()
    monkeypatch.setattr(probing, "_try", lambda *_: pytest.fail("tried again"))
    doctor()


@pytest.mark.parametrize(
    ("change", "reached"),
    [
        ({"bpf": "", "read": ()}, "files"),
        ({"bpf": "", "read": ()}, "network"),
        ({"bpf": "", "read": ()}, "processes"),
        ({"bpf": "", "read": ()}, "new processes"),
        ({"bpf": "", "uid": None}, "rights to files"),
    ],
)
def test_a_confinement_with_a_hole_does_not_pass(monkeypatch, change, reached):
    """The self-test finds what it looks for: here where the filters are left out."""
    real = probing.make_spec
    monkeypatch.setattr(probing, "make_spec", lambda *a, **k: dataclasses.replace(real(*a, **k), **change))
    if "uid" in change:
        monkeypatch.setattr(probing, "fresh_uid", lambda: None)
    probing.probe.cache_clear()
    found = probing.probe("landlock")
    if "readable" in str(found.missing) or "cannot read" in str(found.missing):
        pytest.skip(f"NOT TESTED HERE: {found.missing}")
    assert not found.holds
    assert reached in found.missing.en


def test_a_missing_bubblewrap_is_named(monkeypatch):
    monkeypatch.setattr(probing.bubblewrap, "programs", lambda: ())
    probing.probe.cache_clear()
    assert "apt install bubblewrap" in probing.probe("bubblewrap").missing.en
    assert "缺少 bubblewrap" in probing.probe("bubblewrap").missing.zh


def test_a_bubblewrap_that_may_not_make_namespaces(monkeypatch):
    monkeypatch.setattr(probing.bubblewrap, "programs", lambda: ("/bin/false",))
    probing.probe.cache_clear()
    found = probing.probe("bubblewrap")
    assert not found.holds
    assert "AppArmor" in found.missing.en


def test_another_system_is_told_so(monkeypatch):
    monkeypatch.setattr(probing.sys, "platform", "darwin")
    probing.probe.cache_clear()
    assert probing.probe("bubblewrap").missing.en == "bubblewrap: isolation needs Linux"


def test_a_spec_survives_its_journey(tmp_path):
    import os

    from autograder.sandbox import lockdown

    spec = Spec(work="/w", env={"A": "ä"}, rlimits={"CORE": 0}, files=(("a", 2), ("b", 1)), read=("/usr",))
    path = tmp_path / "spec"
    path.write_bytes(spec.dump((b"\n\n", b"x")))
    loaded, contents = lockdown.load(os.open(path, os.O_RDONLY))
    assert contents == [b"\n\n", b"x"]
    assert dataclasses.asdict(loaded) | {
        "files": spec.files,
        "read": spec.read,
        "write": (),
        "canary": spec.canary,
    } == dataclasses.asdict(spec)
