"""What the kernel offers and Python does not: prctl, capabilities, and how a stranger's process ended."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


SET_PDEATHSIG = 1
SET_KEEPCAPS = 8
CAPBSET_DROP = 24
SET_CHILD_SUBREAPER = 36
SET_NO_NEW_PRIVS = 38
CAP_AMBIENT = 47
AMBIENT_RAISE = 2


def prctl(option: int, argument: int = 0, second: int = 0) -> None:
    """Call prctl; raises OSError where the kernel refuses."""
    if _libc.prctl(option, argument, second, 0, 0) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def name_process(name: str) -> None:
    """What ps shows for this process, at most 15 bytes."""
    descriptor = os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)
    os.write(descriptor, name.encode())
    os.close(descriptor)


def become_subreaper() -> None:
    """Descendants that lose their parent become children of this process."""
    prctl(SET_CHILD_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    """No program run from here on gains rights, whatever its file says."""
    prctl(SET_NO_NEW_PRIVS, 1)


_CAPABILITY_VERSION_3 = 0x20080522


class CapabilitySets:
    """The effective, permitted and inheritable capabilities of this process, as bit masks."""

    def __init__(self, effective: int, permitted: int, inheritable: int) -> None:
        self.effective = effective
        self.permitted = permitted
        self.inheritable = inheritable

    @classmethod
    def own(cls) -> CapabilitySets:
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        words = (ctypes.c_uint32 * 6)()
        if _libc.capget(header, words):
            raise OSError(ctypes.get_errno(), "the capabilities of this process cannot be read")
        return cls(*(words[set_] | words[set_ + 3] << 32 for set_ in range(3)))

    def apply(self) -> None:
        masks = (self.effective, self.permitted, self.inheritable)
        words = (ctypes.c_uint32 * 6)(
            *(mask & 0xFFFFFFFF for mask in masks), *(mask >> 32 & 0xFFFFFFFF for mask in masks)
        )
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        if _libc.capset(header, words):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_EXIT = 1 << 3
_PIDFD_INFO = struct.Struct("=QQ11Ii")


def exit_status(pidfd: int) -> int | None:
    """The wait status of a process that is gone and was not our child; None where the kernel cannot say."""
    buffer = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, buffer)
    except OSError:
        return None
    fields = _PIDFD_INFO.unpack(buffer)
    return int(fields[-1]) if fields[0] & _PIDFD_INFO_EXIT else None
