"""The system calls that a sandboxed process is refused, as a BPF program made in the judge with libseccomp."""

from __future__ import annotations

import base64
import errno
import tempfile
from functools import cache


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Kernel interfaces that no notebook needs and that exploits, persistence or unaccounted memory come through.
_REFUSED = _names("""
    ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise userfaultfd bpf perf_event_open
    io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key
    mount umount2 pivot_root move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr chroot setns unshare
    swapon swapoff reboot kexec_load kexec_file_load init_module finit_module delete_module acct quotactl quotactl_fd
    syslog open_by_handle_at name_to_handle_at fanotify_init iopl ioperm settimeofday clock_settime clock_adjtime
    adjtimex sethostname setdomainname vhangup lookup_dcookie modify_ldt personality
    memfd_create memfd_secret shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink
""")

# Without a PID namespace: nothing that reaches another process, and no way to be forgotten by the one that kills it.
_REFUSED_WITHOUT_NAMESPACES = _names("""
    kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal process_mrelease
    sched_setparam sched_setattr setpriority ioprio_set move_pages migrate_pages
    socket fork vfork execve execveat inotify_add_watch truncate
""")

# What Landlock does not govern, and the user may be the grader's own: rights, owners, times and labels of any file that can be named.
# Without effect but not refused, as copying a file sets them too.
_WITHOUT_EFFECT = _names("""
    chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
""")
# fchmodat2, setxattrat, removexattrat, file_setattr: too new for many a libseccomp, and the same on every architecture.
_WITHOUT_EFFECT_BY_NUMBER = (452, 463, 466, 469)

_CLONE_THREAD, _CLONE_NEWUSER = 0x10000, 0x10000000
_TIOCSTI, _FIOSETOWN, _SIOCSPGRP = 0x5412, 0x8901, 0x8902
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
_O_TMPFILE = 0o20000000
_AF_UNIX, _PR_SET_PDEATHSIG, _SCHED_OTHER = 1, 1, 0


@cache
def program(namespaces: bool) -> str:
    """The filter in base64; a stricter one where no namespaces separate the process from others.

    Raises ImportError or RuntimeError when pyseccomp or the libseccomp library is not installed.
    """
    import pyseccomp as sc

    rules = sc.SyscallFilter(sc.ALLOW)  # kills at system calls of other architectures (32-bit, x32)

    def refuse(name: str | int, *conditions: object, error: int = errno.EPERM) -> None:
        try:
            rules.add_rule(sc.ERRNO(error), name, *conditions)
        except OSError as problem:  # unknown to this kernel's architecture or to an older libseccomp
            if problem.errno not in (errno.EINVAL, errno.EDOM, errno.EFAULT):
                raise

    def bits(argument: int, mask: int, value: int) -> object:
        return sc.Arg(argument, sc.MASKED_EQ, mask, value)

    for name in _REFUSED:
        refuse(name)
    refuse("clone3", error=errno.ENOSYS)  # its flags lie in memory, out of a filter's sight; glibc then uses clone
    refuse("clone", bits(0, _CLONE_NEWUSER, _CLONE_NEWUSER))
    refuse("ioctl", bits(1, 0xFFFFFFFF, _TIOCSTI))
    refuse("prctl", bits(0, 0xFFFFFFFF, _PR_SET_PDEATHSIG))
    if not namespaces:
        for name in _REFUSED_WITHOUT_NAMESPACES:
            refuse(name, error=errno.EAGAIN if name in ("fork", "vfork") else errno.EPERM)
        without_effect: tuple[str | int, ...] = (*_WITHOUT_EFFECT, *_WITHOUT_EFFECT_BY_NUMBER)
        for call in without_effect:
            refuse(call, error=0)
        refuse("clone", bits(0, _CLONE_THREAD, 0), error=errno.EAGAIN)
        refuse("sched_setscheduler", sc.Arg(1, sc.NE, _SCHED_OTHER))  # libzmq aborts unless it may set the usual one
        refuse("socketpair", sc.Arg(0, sc.NE, _AF_UNIX))
        for name in ("prlimit64", "sched_setaffinity"):
            refuse(name, sc.Arg(0, sc.NE, 0))  # of itself only
        for command in (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX):  # signals sent by way of a file
            refuse("fcntl", bits(1, 0xFFFFFFFF, command))
        for request in (_FIOSETOWN, _SIOCSPGRP):
            refuse("ioctl", bits(1, 0xFFFFFFFF, request))
        # Files without a name, which nothing could count: openat2 hides its flags, O_TMPFILE makes one.
        refuse("openat2", error=errno.ENOSYS)
        refuse("open", bits(1, _O_TMPFILE, _O_TMPFILE))
        refuse("openat", bits(2, _O_TMPFILE, _O_TMPFILE))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return base64.b64encode(file.read()).decode()
