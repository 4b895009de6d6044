"""`python -m bench [NAME…]`: run the benchmarks of this folder and print one table for each."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Sequence

import bench
from bench import Row

HEAD = ("what", "ours", "unit", "peer", "theirs", "ours/theirs", "note")


def names() -> list[str]:
    """The modules of the folder; a leading underscore marks those that measure nothing."""
    return sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if not m.name.startswith("_"))


def run(name: str) -> bool:
    """Run one benchmark; a broken one is shown and does not stop the others."""
    print(f"\n{name}", flush=True)
    try:
        # A benchmark whose numbers do not fit in rows prints its own and returns nothing.
        rows = importlib.import_module(f"bench.{name}").main()
    except Exception:
        traceback.print_exc()
        return False
    if rows:
        print(table(rows))
    return True


def table(rows: Sequence[Row]) -> str:
    """The rows in columns, without those that are empty throughout."""
    lines = [HEAD, *map(_cells, rows)]
    columns = [column for column in zip(*lines, strict=True) if any(column[1:])]
    padded = [[cell.ljust(max(map(len, column))) for cell in column] for column in columns]
    return "\n".join("  " + "  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _cells(row: Row) -> tuple[str, ...]:
    numbers = (_number(row.ours), _number(row.theirs), _number(row.ratio))
    return row.what, numbers[0], row.unit, row.peer, numbers[1], numbers[2], row.note


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def main(wanted: Sequence[str]) -> int:
    """Exit code 1 when a benchmark broke, 2 when one is unknown."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)} (there are: {', '.join(names())})", file=sys.stderr)
        return 2
    outcomes = [run(name) for name in wanted or names()]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
