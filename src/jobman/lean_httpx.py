"""httpx without its own command line, which is of no use here and takes most of the time to import it."""

import sys

# It does without where that cannot be imported.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

import httpx  # noqa: E402

__all__ = ["httpx"]
