"""The in-memory engine: runs nothing and plays what a script says. For tests of things built on jobman."""

from jobman.engines.memory.engine import MemoryEngine, Play

__all__ = ["MemoryEngine", "Play"]
