"""Commands about this machine: doctor."""

from __future__ import annotations

import typer

from autograder.cli.console import DONE, FAILED, Json, language, print_json, say
from autograder.text import Text


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(doctor)
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(
        leak
    )


def doctor(as_json: Json = False) -> None:
    """Try what this machine offers for isolation, and say what is missing."""
    from autograder.sandbox import doctor as probes

    found = probes()
    held = [probe for probe in found if probe.holds]
    if as_json:
        print_json(
            [
                {"tier": p.tier, "holds": p.holds, "missing": p.missing.lang(language()) if p.missing else None}
                for p in found
            ]
        )
    else:
        for probe in found:
            mark = "✓" if probe.holds else "–" if held else "✗"
            say(f"{mark} {probe.missing.lang(language()) if probe.missing else probe.tier}")
        if held:
            say(
                Text(
                    zh=f"学生的代码会在 {held[0].tier} 里隔离运行，有这一种就够了。",
                    en=f"Students' code will run isolated in {held[0].tier}; one way is enough.",
                )
            )
        else:
            say(
                Text(
                    zh="没有可用的隔离：不会运行学生的代码。",
                    en="No isolation is possible: students' code will not be run.",
                )
            )
    raise typer.Exit(DONE if held else FAILED)


def leak(context: typer.Context) -> None:
    """Ask the mask-leak detector about a function or module: `autograder leak file.py:name`; `--help` says more."""
    from autograder.leak.command import main

    raise typer.Exit(main(context.args))
