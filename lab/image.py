"""Writes an image of the static busybox as an OCI archive: `image.py BUSYBOX NAME ARCHIVE [PROGRAM…]`."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_TYPE = "application/vnd.oci.image."


def write(busybox: Path, name: str, archive: Path, programs: Sequence[Path] = ()) -> None:
    """One layer with one program under its many names, and with others that are static, too."""
    config = {"Cmd": ["sleep", "2147483647"], "Env": ["PATH=/bin"]}
    write_archive(archive, name, [busybox_layer(busybox, programs)], config)


def write_archive(archive: Path, name: str, layers: Sequence[bytes], started: Mapping[str, object]) -> None:
    """Layers, each a whole tar, and how a container of them is started."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": started,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in layers]},
    }
    blobs = [*layers, json.dumps(config).encode()]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}manifest.v1+json",
        "config": _described(blobs[-1], "config.v1+json"),
        "layers": [_described(layer, "layer.v1.tar") for layer in layers],
    }
    blobs.append(json.dumps(manifest).encode())
    named = _described(blobs[-1], "manifest.v1+json")
    named["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
        for blob in blobs:
            _add(tar, f"blobs/sha256/{_digest(blob).partition(':')[2]}", blob)


def busybox_layer(busybox: Path, programs: Sequence[Path] = ()) -> bytes:
    """A whole tar."""
    buffer = io.BytesIO()
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        for program in programs:
            _add(tar, f"bin/{program.name}", program.read_bytes(), 0o755)
        for applet in applets:
            if applet != "busybox":
                entry = tarfile.TarInfo(f"bin/{applet}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(entry)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n")
        _add(tar, "etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _described(blob: bytes, kind: str) -> dict[str, object]:
    return {"mediaType": f"{_TYPE}{kind}", "digest": _digest(blob), "size": len(blob)}


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), [Path(each) for each in sys.argv[4:]])
