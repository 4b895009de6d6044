"""Writes an image of `jobman` as it is here, and prints its name: `server_image.py FOLDER [KNOWN…]`.

There is no image below it: the interpreter, the packages that a server in a cluster needs, the shared
libraries of both, and the checkout are all there is.
"""

from __future__ import annotations

import compileall
import fnmatch
import hashlib
import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from py_compile import PycInvalidationMode

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jobman.engines.kubernetes.installation.server import HOME, USER
from lab.image import write_archive

EXTRAS = ("postgres", "kubernetes")
HOUSE = PurePosixPath("/opt/jobman")
_SOURCE = Path(__file__).parent.parent / "src"
_LEFT_OUT = ("__pycache__", "tests")
_LEFT_OUT_OF_PYTHON = (
    *("test", "_test*", "idlelib", "tkinter", "_tkinter*", "turtledemo", "ensurepip"),
    *("site-packages", "dist-packages", "config-*", "*.a"),
)
_LIBRARY = re.compile(r"(?:=>\s*)?(/\S+) \(0x")
_STARTED: Mapping[str, object] = {
    "User": f"{USER}:{USER}",
    "WorkingDir": HOME,
    "Env": [f"PATH={HOUSE}/bin", f"HOME={HOME}", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"],
    "Entrypoint": ["jobman"],
    "Cmd": ["--help"],
}

Content = Path | PurePosixPath | bytes
"""A file of this machine, where a link leads to, or what is written."""
Tree = dict[PurePosixPath, Content]


def build(folder: Path, known: Sequence[str] = ()) -> str:
    """The name of the image; unless it is known, it is written to `image.tar` in the folder."""
    layers = [_kept(folder, "below", _below()), _kept(folder, "checkout", _checkout())]
    key = hashlib.sha256("".join(layer.name for layer in layers).encode()).hexdigest()[:12]
    name = f"localhost/jobman:{key}"
    if name not in known:
        write_archive(folder / "image.tar", name, [layer.read_bytes() for layer in layers], _STARTED)
    return name


# -- what is in it -------------------------------------------------------------------------------------------


def _below() -> Tree:
    """All but the checkout. The interpreter is where it is on this machine: programs know their places."""
    program = Path(sys.executable).resolve()
    packages = _home_of_packages()
    library = _files_under(Path(sysconfig.get_path("stdlib")), _LEFT_OUT_OF_PYTHON)
    tree: Tree = {PurePosixPath(path): path for path in (program, *library)}
    for name in sorted(_needed("jobman", EXTRAS) - {"jobman"}):
        tree |= _files_of(importlib.metadata.distribution(name), packages)
    return {**_libraries(tree), **tree, **_house(program)}


def _checkout() -> Tree:
    packages = _home_of_packages()
    return {packages / path.relative_to(_SOURCE).as_posix(): path for path in _files_under(_SOURCE)}


def _home_of_packages() -> PurePosixPath:
    return HOUSE / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def _house(program: Path) -> Tree:
    """A virtual environment of that interpreter, and a user."""
    starter = f"#!{HOUSE}/bin/python\nimport sys\nfrom jobman.cli.main import main\nsys.exit(main())\n"
    people = f"root:x:0:0::/root:/sbin/nologin\njobman:x:{USER}:{USER}::{HOME}:/sbin/nologin\n"
    texts = {
        HOUSE / "pyvenv.cfg": f"home = {program.parent}\ninclude-system-site-packages = false\n",
        HOUSE / "bin/jobman": starter,
        PurePosixPath("/etc/passwd"): people,
        PurePosixPath("/etc/group"): f"root:x:0:\njobman:x:{USER}:\n",
    }
    written: Tree = {path: text.encode() for path, text in texts.items()}
    return {**written, HOUSE / "bin/python": PurePosixPath(program)}


def _files_under(top: Path, left_out: tuple[str, ...] = ()) -> Iterable[Path]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if not _is_left_out(name, left_out))
        yield from (Path(folder, name) for name in sorted(names) if not _is_left_out(name, left_out))


def _is_left_out(name: str, patterns: tuple[str, ...] = ()) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in (*_LEFT_OUT, *patterns))


def _needed(name: str, extras: Iterable[str]) -> set[str]:
    """A distribution and all that it requires here."""
    found, waiting = set[str](), [(name, tuple(extras))]
    while waiting:
        name, wanted = waiting.pop()
        found.add(canonicalize_name(name))
        for line in importlib.metadata.requires(name) or ():
            each = Requirement(line)
            applies = [each.marker is None or each.marker.evaluate({"extra": one}) for one in (*wanted, "")]
            if any(applies) and (each.extras or canonicalize_name(each.name) not in found):
                waiting.append((each.name, tuple(each.extras)))
    return found


def _files_of(distribution: importlib.metadata.Distribution, place: PurePosixPath) -> Tree:
    listed = [path for path in distribution.files or () if ".." not in path.parts]
    kept = [path for path in listed if not any(map(_is_left_out, path.parts))]
    return {place / path: Path(str(distribution.locate_file(path))) for path in kept}


def _libraries(tree: Tree) -> Tree:
    """The shared libraries that the programs of a tree need, of those that are not in it."""
    programs = [path for path in tree.values() if isinstance(path, Path) and _is_program(path)]
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    own = {str(path) for path in tree.values()}
    prefix = str(Path(sys.prefix))
    found = {os.path.normpath(each) for each in _LIBRARY.findall(told)}
    return {PurePosixPath(each): Path(each) for each in sorted(found - own) if not each.startswith(prefix)}


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


# -- layers --------------------------------------------------------------------------------------------------


def _kept(folder: Path, kind: str, tree: Tree) -> Path:
    """The file of a layer, written once for its content; the last one of its kind goes then."""
    layer = folder / f"{kind}-{_key(tree)}.tar"
    if not layer.exists():
        for old in folder.glob(f"{kind}-*.tar"):
            old.unlink()
        draft = folder / f"{kind}.draft"
        draft.write_bytes(_layer(tree))
        draft.rename(layer)
    return layer


def _key(tree: Tree) -> str:
    whole = hashlib.sha256(Path(__file__).read_bytes())
    for path, content in sorted(tree.items()):
        whole.update(f"{path}\0{hashlib.sha256(_read(content)).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]


def _read(content: Content) -> bytes:
    if isinstance(content, Path):
        return content.read_bytes()
    return content if isinstance(content, bytes) else str(content).encode()


def _layer(tree: Tree) -> bytes:
    """A tar in which nothing tells when it was made, with the sources compiled: nobody can do it later."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        for path, content in tree.items():
            _lay_down(top / str(path).lstrip("/"), content)
        compileall.compile_dir(
            top, quiet=2, stripdir=name, prependdir="/", invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
        )
        for place in (HOME, "tmp"):
            (top / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for each in sorted(top.rglob("*")):
                tar.add(each, each.relative_to(top).as_posix(), recursive=False, filter=_plain)
        return buffer.getvalue()


def _lay_down(place: Path, content: Content) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        shutil.copy(content, place)
    elif isinstance(content, PurePosixPath):
        place.symlink_to(content)
    else:
        place.write_bytes(content)
        place.chmod(0o755 if place.parent.name == "bin" else 0o644)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    is_home = f"/{entry.name}" == HOME
    entry.uid = entry.gid = USER if is_home else 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    entry.mode = 0o1777 if entry.name == "tmp" else 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    print(build(place, sys.argv[2:]))
