"""A user's own service as a test wants it: on a database of its choice, with failpoints set while it runs.

It is started as commands start the usual one. Failpoints in its environment count from its start; those that
are written into the file beside its store count from then on.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from jobman.control import serving
from jobman.engines import failpoints

if TYPE_CHECKING:
    from jobman.control.director import Director

DATABASE = "CRASH_DATABASE"
ARMED = "failpoints"


async def build(options: serving.ServeOptions) -> Director:
    threading.Thread(target=_arm, args=(options.places.state / ARMED,), daemon=True).start()
    return await serving.build_usual(options._replace(database=os.environ.get(DATABASE)))


def _arm(path: Path) -> None:
    while True:
        if path.exists():
            failpoints._points = failpoints.parsed(path.read_text())
            path.unlink()  # whoever wrote it waits for this
        time.sleep(0.005)


if __name__ == "__main__":
    sys.exit(serving.main(sys.argv[1:], build))
