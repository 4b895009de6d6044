"""A service of its own process with a scripted director, started as commands start the real one.

The environment says what is to go wrong: SCRIPTED=die ends it at its start, SCRIPTED=VERSION has it pretend
to be of another version.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from jobman.control import embedded, serving


async def build(options: serving.ServeOptions) -> Any:
    from tests.control.api.director import ScriptedDirector

    if os.environ.get("SCRIPTED") == "die":
        raise OSError("the disk is on fire")
    with (options.places.state / "starts").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return ScriptedDirector(options.places.state)


if __name__ == "__main__":
    version = os.environ.get("SCRIPTED", "")
    if version[:1].isdigit():
        serving.Running = lambda **known: embedded.Running(version=version, **known)  # type: ignore
    sys.exit(serving.main(sys.argv[1:], build))
