"""``make attacks``: every attack in every tier that this machine offers, as root and as an ordinary user, as a table by kind.

The best tier of the user who starts this is tried with every attack. The others are stricter in most things, and get every third attack
of each kind unless ``--all`` is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from autograder.sandbox.probe import doctor
from tests import another_user
from tests.attacks.attack import KINDS, Attack
from tests.attacks.range import Range, opened
from tests.attacks.test_attacks import ATTACKS

COLUMNS = ("tried", "contained", "points gained", "bytes leaked", "others disturbed")
SHARE = 3
_HERE = "--as-this-user"


def main(arguments: list[str]) -> int:
    """Print the tables; 0 when everything was contained."""
    everything = "--all" in arguments
    if _HERE in arguments:
        return try_tiers(everything, best_in_full="--best-in-full" in arguments)
    if reason := another_user.impossible():
        print(f"As one user only: {reason}.", flush=True)
        return try_tiers(everything, best_in_full=True)
    failed = 0
    for uid in (0, another_user.USER):
        options = [*arguments, *(["--best-in-full"] if uid == 0 else [])]
        line, env = another_user.command(uid, "-m", "tests.attacks.table", _HERE, *options)
        failed |= subprocess.run(line, env=env, cwd=Path(__file__).parents[2]).returncode
    return failed


def try_tiers(everything: bool, best_in_full: bool) -> int:
    """A table for each tier, as the user who runs this."""
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    failures: list[str] = []
    for probe in doctor():
        if not probe.holds:
            print(f"\n{probe.tier} as {user}: NOT TRIED: {probe.missing}", flush=True)
            continue
        share = 1 if everything or best_in_full else SHARE
        best_in_full = False
        tried = [a for kind in KINDS for a in [a for a in ATTACKS if a.kind == kind][::share]]
        began = time.monotonic()
        print(f"\n{probe.tier} as {user}" + (f", every {share}rd attack" if share > 1 else ""))
        print(" " * 11 + "".join(f"{name:>18}" for name in COLUMNS))
        with opened(probe.tier) as place:
            for kind in KINDS:
                failures += print_row(place, kind, [a for a in tried if a.kind == kind], f"{probe.tier} as {user}")
        print(f"in {time.monotonic() - began:.0f} s", flush=True)
    print("\n".join(failures))
    return bool(failures)


def print_row(place: Range, kind: str, attacks: list[Attack], where: str) -> list[str]:
    """Try the attacks of one kind and print what came of them; what was not contained, in words."""
    found = [place.try_(attack) for attack in attacks]
    figures = (
        len(found),
        sum(f.contained for f in found),
        sum(f.points for f in found),
        sum(len(secret) for f in found for secret in f.leaked),
        sum(f.disturbed for f in found),
    )
    print(f"{kind:11}" + "".join(f"{figure:>18g}" for figure in figures), flush=True)
    return [
        f"{where}: {kind}: {attack.name}: {f.what_happened}"
        for attack, f in zip(attacks, found, strict=True)
        if not f.contained
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
