"""The ``autograder`` command. Each command imports what it needs when it runs, so that ``--help`` answers at once."""

from __future__ import annotations

import typer

from autograder.cli import content, grading, lab, machine, roster

app = typer.Typer(
    help="Exercises on causal self-attention: release them, grade them in a sandbox, say what went wrong.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (content, grading, roster, lab, machine):
    module.register(app)


def main() -> None:
    """Entry point of the ``autograder`` command."""
    app()
