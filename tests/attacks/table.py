"""``make attacks``: every attack in every tier that this machine offers, as a table by kind."""

from __future__ import annotations

import sys

from autograder.sandbox.probe import doctor
from tests.attacks.attack import KINDS
from tests.attacks.range import opened
from tests.attacks.test_attacks import ATTACKS

COLUMNS = ("tried", "contained", "points gained", "bytes leaked", "others disturbed")


def main() -> int:
    """Print the table; 0 when everything was contained."""
    failures = []
    for tier in (probe.tier for probe in doctor() if probe.holds):
        print(f"{tier:11}" + "".join(f"{name:>18}" for name in COLUMNS))
        with opened(tier) as place:
            for kind in KINDS:
                found = []
                for attack in (a for a in ATTACKS if a.kind == kind):
                    found.append(place.try_(attack))
                    if not found[-1].contained:
                        failures.append(f"{tier}: {kind}: {attack.name}: {found[-1].what_happened}")
                figures = (
                    len(found),
                    sum(f.contained for f in found),
                    sum(f.points for f in found),
                    sum(len(secret) for f in found for secret in f.leaked),
                    sum(f.disturbed for f in found),
                )
                print(f"{kind:11}" + "".join(f"{figure:>18g}" for figure in figures), flush=True)
    print("\n".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
