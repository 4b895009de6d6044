"""Starting the command line: what a user waits for before anything happens, beside a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from bench import Row
from bench.spec import ROOT

ROUNDS = 15
MOST_MILLISECONDS = 100
_MAIN = "import sys; from jobman.cli.main import main; sys.exit(main())"

BARE = "python -c pass"
COMMANDS = {
    BARE: [sys.executable, "-c", "pass"],
    "jobman --version": [sys.executable, "-c", _MAIN, "--version"],
    "jobman --help": [sys.executable, "-c", _MAIN, "--help"],
    "jobman check examples/hello.yaml": [sys.executable, "-c", _MAIN, "check", "examples/hello.yaml"],
}
TARGETS = {"jobman --version": f"; target: ≤ {MOST_MILLISECONDS} ms more"}


def milliseconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - start)


def main() -> list[Row]:
    """Medians of processes run in turn; the first of each, which may compile, is not counted."""
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            found[name].append(milliseconds(command))
    medians = {name: median(times[1:]) for name, times in found.items()}
    bare = medians[BARE]
    return [
        Row(name, ours, "ms", BARE, bare, f"{ours - bare:.0f} ms more{TARGETS.get(name, '')}")
        for name, ours in medians.items()
        if name != BARE
    ]
