"""An unprivileged user of its own for every sandbox that root starts."""

from __future__ import annotations

import itertools
import os

_HIGH, _LOW = 1 << 30, 20_000  # no account has numbers like these
_counter = itertools.count()


def fresh_uid() -> int | None:
    """A user and group number that no other live sandbox of this machine uses; None when not started by root.

    Signals, files and the limit on processes then keep submissions apart even where nothing else does.
    """
    if os.geteuid() != 0:
        return None
    number = os.getpid() * 256 + next(_counter) % 256
    with open("/proc/self/uid_map") as file:
        highest = max(int(start) + int(count) for start, _, count in map(str.split, file))
    if highest > _HIGH * 3:
        return _HIGH + number % _HIGH
    return _LOW + number % (min(highest, 65_000) - _LOW)  # root of a container with few users
