"""What is true of this machine: facts for `requires`, found and not configured.

| fact | value |
| --- | --- |
| `io.archspec.cpu.target` | the family: `amd64`, `arm64`, or as the kernel calls it |
| `io.archspec.cpu.level` | `x86_64_v1` to `x86_64_v4`, the most this processor can do |
| `hardware.cpu.model` | the processor's name |
| `hardware.gpu.available` | `yes` or `no`; then `hardware.gpu.model` and `hardware.gpu.vendor` |
| `os.name`, `os.distribution`, `os.version`, `os.kernel` | `linux`, `debian`, `12`, `6.1.0-18-amd64` |
| `host.name` | the machine's name |
| `container.podman`, `.docker`, `.apptainer`, `.singularity` | `yes` or `no`: whether it is installed |
| `python.version` | the Python that jobman runs with, such as `3.11` |

`requires` compares a fact with one text. So the family has a fact of its own, beside that of the level: a
document that asks for `amd64` runs on every x86-64 machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from jobman.engines.local.gpus import Gpu
from jobman.engines.local.hardware import ROOT, read_text

_FAMILIES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_LEVELS = {
    "x86_64_v2": ("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"),
    "x86_64_v3": ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    "x86_64_v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
"""What each level adds to the one before, as /proc/cpuinfo names it."""
RUNTIMES = ("podman", "docker", "apptainer", "singularity")


def find_facts(
    gpus: Sequence[Gpu] = (), root: Path = ROOT, machine: str | None = None, path: str | None = None
) -> dict[str, str]:
    """The facts of this machine; `machine` is the kernel's name for its kind, `path` where programs are."""
    machine = machine or os.uname().machine
    facts = {
        "io.archspec.cpu.target": _FAMILIES.get(machine, machine),
        **_processor(root, machine),
        **gpu_facts(gpus),
        **_system(root),
        "host.name": host_name(root),
        **{f"container.{name}": _yes(shutil.which(name, path=path) is not None) for name in RUNTIMES},
        "python.version": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    return {key: value for key, value in facts.items() if value}


def gpu_facts(gpus: Sequence[Gpu], *, available: bool | None = None) -> dict[str, str]:
    facts = {"hardware.gpu.available": _yes(bool(gpus) if available is None else available)}
    if gpus:
        facts |= {"hardware.gpu.model": gpus[0].name, "hardware.gpu.vendor": gpus[0].vendor}
    return facts


def host_name(root: Path = ROOT) -> str:
    """The machine's name, without its domain."""
    return read_text(root / "proc/sys/kernel/hostname").partition(".")[0] or "localhost"


def _processor(root: Path, machine: str) -> dict[str, str]:
    lines = (line.partition(":") for line in read_text(root / "proc/cpuinfo").splitlines())
    words: dict[str, str] = {}
    for name, _, value in lines:
        words.setdefault(name.strip(), value.strip())
    facts = {"hardware.cpu.model": words.get("model name", "")}
    if _FAMILIES.get(machine) == "amd64":
        facts["io.archspec.cpu.level"] = _level(set(words.get("flags", "").split()))
    return facts


def _level(flags: set[str]) -> str:
    reached = "x86_64_v1"
    for level, needed in _LEVELS.items():
        if not flags.issuperset(needed):
            break
        reached = level
    return reached


def _system(root: Path) -> dict[str, str]:
    text = read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    release = {name.strip(): _unquoted(value) for name, _, value in pairs}
    return {
        "os.name": "linux",
        "os.distribution": release.get("ID", ""),
        "os.version": release.get("VERSION_ID", ""),
        "os.kernel": read_text(root / "proc/sys/kernel/osrelease"),
    }


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        return value


def _yes(true: bool) -> str:
    return "yes" if true else "no"
