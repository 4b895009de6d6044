"""GPUs of this machine: NVIDIA's by its library or its command, AMD's by what the kernel says of them."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from jobman.engines.local.hardware import MEBIBYTE, ROOT, read_text

_NVML = "libnvidia-ml.so.1"
_QUERY = ("--query-gpu=uuid,name,memory.total", "--format=csv,noheader,nounits")
_PATIENCE = 20
_log = logging.getLogger(__name__)


class Gpu(msgspec.Struct, frozen=True, omit_defaults=True):
    """One GPU; by its `uuid` a program is told to use it, whatever order the driver counts in."""

    uuid: str
    name: str = ""
    memory: int = 0
    vendor: str = "nvidia"


def find_gpus(root: Path = ROOT, visible: str | None = None) -> tuple[Gpu, ...]:
    """The GPUs that may be used: of NVIDIA's those in CUDA_VISIBLE_DEVICES, where that is set."""
    if visible is None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    nvidia = _by_library() or _by_command()
    return tuple(_only(nvidia, visible)) or tuple(_amd(root))


def _only(gpus: Sequence[Gpu], visible: str | None) -> list[Gpu]:
    """As the driver does: numbers or the beginnings of uuids, up to the first that there is not."""
    if visible is None:
        return list(gpus)
    found = []
    for word in visible.split(","):
        name = word.strip()
        chosen = [gpu for gpu in gpus if name and gpu.uuid.startswith(name)]
        if name.isdigit() and int(name) < len(gpus):
            chosen = [gpus[int(name)]]
        if len(chosen) != 1:
            break
        found.extend(chosen)
    return found


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _NvmlError(Exception):
    pass


def _by_library() -> list[Gpu]:
    try:
        library = ctypes.CDLL(_NVML)
    except OSError:
        return []
    try:
        _call(library, "nvmlInit_v2")
    except (_NvmlError, AttributeError) as error:
        _log.warning("%s is here and cannot be used: %s", _NVML, error)
        return []
    try:
        count = ctypes.c_uint()
        _call(library, "nvmlDeviceGetCount_v2", ctypes.byref(count))
        return [_from_library(library, number) for number in range(count.value)]
    except (_NvmlError, AttributeError) as error:
        _log.warning("the GPUs could not be listed: %s", error)
        return []
    finally:
        library.nvmlShutdown()


def _call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    code = getattr(library, name)(*arguments)
    if code:
        raise _NvmlError(f"{name} answered {code}")


def _from_library(library: ctypes.CDLL, number: int) -> Gpu:
    device = ctypes.c_void_p()
    _call(library, "nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(device))
    texts = []
    for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetName"):
        text = ctypes.create_string_buffer(96)
        _call(library, name, device, text, ctypes.c_uint(len(text)))
        texts.append(text.value.decode(errors="replace"))
    memory = _Memory()
    _call(library, "nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
    return Gpu(texts[0], texts[1], int(memory.total))


def _by_command() -> list[Gpu]:
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        answer = subprocess.run(
            [command, *_QUERY],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.warning("nvidia-smi is here and cannot be used: %s", error)
        return []
    if answer.returncode:
        _log.warning("nvidia-smi failed: %s", (answer.stderr or answer.stdout).strip()[:200])
        return []
    rows = (line.split(", ") for line in answer.stdout.splitlines())
    return [_from_row(row) for row in rows if len(row) == 3]


def _from_row(row: list[str]) -> Gpu:
    uuid, name, memory = (each.strip() for each in row)
    return Gpu(uuid, name, int(memory) * MEBIBYTE if memory.isdigit() else 0)


def _amd(root: Path) -> list[Gpu]:
    if not (root / "dev/kfd").exists():
        return []
    nodes = (root / "sys/class/kfd/kfd/topology/nodes").glob("[0-9]*")
    found = []
    for node in sorted(nodes, key=lambda path: int(path.name)):
        properties = _properties(node / "properties")
        if properties.get("simd_count", 0):
            banks = (_properties(bank) for bank in node.glob("mem_banks/*/properties"))
            memory = sum(bank.get("size_in_bytes", 0) for bank in banks)
            uuid = f"GPU-{properties.get('unique_id', 0):016x}"
            found.append(Gpu(uuid, read_text(node / "name"), memory, "amd"))
    return found


def _properties(path: Path) -> dict[str, int]:
    words = (line.split() for line in read_text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdigit()}
