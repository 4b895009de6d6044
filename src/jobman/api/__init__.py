"""The Python API: what the command line can do, for programs. No printing, no decisions of its own."""

from jobman.api.documents import JobSpec, load, load_all, load_source, loads

__all__ = ["JobSpec", "load", "load_all", "load_source", "loads"]
