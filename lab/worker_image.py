"""Writes an image of a worker of short tasks in plain shell: `worker_image.py BUSYBOX NAME ARCHIVE`.

Its own command serves HTTP at the port of JOBMAN_WORKER_PORT. A task is a number of seconds, which it sleeps.
"""

from __future__ import annotations

import io
import sys
import tarfile
from pathlib import Path

from lab.image import busybox_layer, write_archive

_ANSWER = """\
#!/bin/sh
# One request on stdin, one answer on stdout.
read -r method path version
length=0
while read -r name value; do
    value=${value%?}
    case $name in
        [Cc]ontent-[Ll]ength:) length=$value ;;
        ??*) ;;
        *) break ;;
    esac
done
answer() {
    printf 'HTTP/1.1 %s\\r\\ncontent-length: %s\\r\\nconnection: close\\r\\n\\r\\n%s' "$1" "${#2}" "$2"
}
case $method$path in
    GET/ping) answer '200 OK' pong ;;
    POST/execute)
        seconds=$(head -c "$length")
        if sleep "$seconds"; then
            answer '200 OK' "slept $seconds"
        else
            answer '400 Bad Request' 'this is no number'
        fi
        ;;
    *) answer '404 Not Found' 'there is no such thing' ;;
esac
"""
_SERVE = '#!/bin/sh\nexec nc -ll -p "$JOBMAN_WORKER_PORT" -e /bin/answer\n'


def write(busybox: Path, name: str, archive: Path) -> None:
    """The image of the shell, and above it the two scripts."""
    layers = [busybox_layer(busybox), _scripts({"answer": _ANSWER, "serve": _SERVE})]
    write_archive(archive, name, layers, {"Cmd": ["serve"], "Env": ["PATH=/bin"]})


def _scripts(texts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in texts.items():
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.size, entry.mode = len(text.encode()), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
