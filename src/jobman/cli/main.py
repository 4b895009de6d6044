"""The entry point: the quick way where there is one, the whole command line otherwise."""

from __future__ import annotations

import os
import sys
from typing import Any

from jobman.cli.state import INTERRUPTED, ExitCode


def main() -> None:
    """Run the command line; a reader that has gone, as in `jobman features | head`, ends it quietly."""
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _reader_has_gone()
        raise SystemExit(ExitCode.DONE) from None
    except SystemExit as end:
        if _reader_has_gone():
            end.code = ExitCode.DONE
        raise


def _run(arguments: list[str]) -> None:
    from jobman.cli.shortcut import take

    take(arguments)
    from jobman.cli.app import app

    app(prog_name="jobman")


def _reader_has_gone() -> bool:
    # The command line's library replaces stdout when a pipe breaks under it.
    if type(sys.stdout).__name__ == "PacifyFlushWrapper":
        return True
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def __getattr__(name: str) -> Any:
    # The quick way must not pay for the library of the command line, and `app` needs it.
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from jobman.cli.app import app

    return app


if __name__ == "__main__":
    main()
