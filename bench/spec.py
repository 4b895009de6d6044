"""Reading large documents: load, check, plan and digest beside what libyaml needs to compose the same text.

Every measurement is made in a fresh process, so that neither memory nor garbage of one reaches another.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import Row

ROOT = Path(__file__).parents[1]
ROUNDS = 7
SMALL, LARGE = 1_000, 10_000
MOST_TIMES_LIBYAML = 5
MOST_MEMORY = 1024
_MIB = 2**10 if sys.platform == "linux" else 2**20  # ru_maxrss counts KiB on Linux, bytes on macOS

HEAD = """\
version: 1
name: survey
labels: {project: survey}
resources:
  small: {type: slot, count: 1, with: [{type: core, count: 1}]}
  wide: {type: slot, count: 8, with: [{type: core, count: 2}, {type: memory, count: 4Gi}]}
  fast: {type: node, count: 1, with: [{type: slot, count: 4, with: [{type: gpu, count: 1}]}]}
attributes: {duration: 48h, environment: {SURVEY: north}}
tasks:
"""


# -- the document -----------------------------------------------------------------------------------------


def document(tasks: int) -> str:
    """A document of so many tasks, about six lines each; the same text every time."""
    dice = random.Random(tasks)
    lines: list[str] = []
    for number in range(tasks):
        lines += _task(number, dice)
    return HEAD + "\n".join(lines) + "\n"


def _task(number: int, dice: random.Random) -> list[str]:
    lines = [f"- name: {_name(number)}", *_command(number, dice)]
    if number and dice.random() < 0.7:
        before = sorted({dice.randrange(max(0, number - 50), number) for _ in range(dice.randint(1, 3))})
        lines.append(f"  depends_on: [{', '.join(map(_name, before))}]")
    lines += [*_resources(dice), *_attributes(number, dice)]
    return lines + [dice.choice(choices) for choices in _RARE if dice.random() < 0.12]


def _name(number: int) -> str:
    return f"{('fetch', 'align', 'fold', 'score')[number % 4]}-{number:05}"


def _command(number: int, dice: random.Random) -> list[str]:
    forms = [
        [f'  command: [python3, -m, survey.align, --shard, "{number}", --out, results/{number:05}.npz]'],
        [f"  command: python3 -m survey.fold --shard {number} --levels 3"],
        ["  command:", "  - sh", "  - -c", f'  - "score --shard {number} > scores/{number:05}.txt"'],
    ]
    return dice.choices(forms, (45, 40, 15))[0]


def _resources(dice: random.Random) -> list[str]:
    if dice.random() < 0.8:
        return [f"  resources: {dice.choice(('small', 'small', 'wide', 'fast', 'fast|wide'))}"]
    count, cores, memory = dice.randint(1, 4), dice.choice((1, 2, 4)), dice.choice((2, 8))
    inside = f"[{{type: core, count: {cores}}}, {{type: memory, count: {memory}Gi}}]"
    if dice.random() < 0.5:
        return [f"  resources: {{type: slot, count: {count}, with: {inside}}}"]
    return ["  resources:", "    type: slot", f"    count: {count}", f"    with: {inside}"]


def _attributes(number: int, dice: random.Random) -> list[str]:
    duration = f"{dice.choice((5, 10, 30, 90))}m"
    environment = f'{{SHARD: "{number}", OMP_NUM_THREADS: {dice.choice((1, 2, 4))}}}'
    forms = [
        [f"  attributes: {{duration: {duration}}}"],
        [f"  attributes: {{duration: {duration}, environment: {environment}}}"],
        ["  attributes:", f"    duration: {duration}", f"    environment: {environment}"],
    ]
    return dice.choices(forms, (40, 30, 30))[0]


_RARE = [
    ["  retries: {limit: 3, delay: 10s, factor: 2}", "  retries: 2"],
    ["  requires: {hardware.gpu.available: true, io.archspec: {cpu.target: x86_64}}"],
    ["  replicas: 4", "  replicas: 4\n  parallelism: 2"],
]


@contextmanager
def written(tasks: int) -> Iterator[Path]:
    """The document as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{tasks}.yaml"
        path.write_text(document(tasks), "utf-8")
        yield path


# -- one measurement, in its own process ------------------------------------------------------------------


class Measured(NamedTuple):
    """Seconds and MiB; the memory is the highest that the whole process ever held."""

    seconds: float
    memory: float


def compose(path: Path) -> Callable[[], object]:
    """What libyaml needs, as every user of PyYAML has it."""
    import yaml

    text = path.read_text("utf-8")
    return lambda: yaml.compose(text, Loader=yaml.CSafeLoader)


def compose_without_collector(path: Path) -> Callable[[], object]:
    """What libyaml needs when Python's cycle collector does not walk the growing tree."""
    gc.disable()
    return compose(path)


def plan(path: Path) -> Callable[[], object]:
    """Load, check, plan and digest; the collector is as the user has it, that is, on."""
    import jobman.api
    import jobman.plan.build  # Before the clock starts: importing is measured by bench.startup.

    settings = path.with_name("settings.yaml")
    settings.write_text("")  # neither the template nor the user's own
    return lambda: jobman.api.load(path, settings=settings).plan()


def measured(work: Callable[[], object]) -> Measured:
    """The time of one call; throwing its result away is not counted."""
    start = time.perf_counter()
    _result = work()
    seconds = time.perf_counter() - start
    return Measured(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB)


def in_fresh_process(module: str, name: str, path: Path) -> Measured:
    """Run `python -m module name path`, which answers with its measurement."""
    command = [sys.executable, "-m", module, name, str(path)]
    answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return Measured(*json.loads(answer.stdout))


def interleaved(module: str, names: list[str], path: Path, rounds: int = ROUNDS) -> dict[str, list[Measured]]:
    """All of them in every round, so that a slow moment of the machine meets all alike."""
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(in_fresh_process(module, name, path))
    return found


def typical(results: list[Measured]) -> float:
    return median(result.seconds for result in results)


def best(results: list[Measured]) -> float:
    return min(result.seconds for result in results)


def peak(results: list[Measured]) -> float:
    return max(result.memory for result in results)


# -- the rows ---------------------------------------------------------------------------------------------

WORK = {work.__name__: work for work in (plan, compose, compose_without_collector)}
PEERS = {"compose": "libyaml, collector on", "compose_without_collector": "libyaml, collector off"}


def main() -> list[Row]:
    """Time and memory for both sizes, and how they grow."""
    results: dict[int, dict[str, list[Measured]]] = {}
    for tasks in (SMALL, LARGE):
        with written(tasks) as path:
            results[tasks] = interleaved("bench.spec", list(WORK), path)
    return [
        *_times(SMALL, results[SMALL]),
        *_times(LARGE, results[LARGE]),
        _memory(results[LARGE]),
        *_growth(results),
    ]


def _times(tasks: int, results: dict[str, list[Measured]]) -> list[Row]:
    return [
        Row(
            f"plan of {tasks:,} tasks, {word}",
            pick(results["plan"]),
            "s",
            peer,
            pick(results[name]),
            f"target: ratio ≤ {MOST_TIMES_LIBYAML}",
        )
        for name, peer in PEERS.items()
        for word, pick in (("median", typical), ("best", best))
    ]


def _memory(results: dict[str, list[Measured]]) -> Row:
    ours, theirs = peak(results["plan"]), peak(results["compose"])
    target = f"target: ≤ {MOST_MEMORY:,} MiB"
    return Row(f"peak memory, {LARGE:,} tasks", ours, "MiB", "libyaml", theirs, target)


def _growth(results: dict[int, dict[str, list[Measured]]]) -> list[Row]:
    def growth(name: str) -> float:
        return best(results[LARGE][name]) / best(results[SMALL][name]) / (LARGE / SMALL)

    what = f"growth {SMALL:,} → {LARGE:,} tasks, by {LARGE // SMALL}"
    return [
        Row(what, growth("plan"), "", peer, growth(name), "target: near 1, of the best times")
        for name, peer in PEERS.items()
    ]


if __name__ == "__main__":
    print(json.dumps(measured(WORK[sys.argv[1]](Path(sys.argv[2])))))
