"""Kubernetes: reading a long list beside the stock client, and pods that get their nodes beside plain Jobs.

JOBMAN_BENCH_SCALE=0.1 makes everything a tenth as large.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench import Row, _kwok, _managed
from bench.spec import Measured, best, interleaved, measured, peak, typical

SCALE = float(os.environ.get("JOBMAN_BENCH_SCALE", "1"))
PODS, NODES, SINGLES, GANGS = (max(1, round(SCALE * size)) for size in (10_000, 1_000, 10_000, 500))
GANG = 16
PLAIN = "plain Jobs"
ROUNDS = 5
_POD = Path(__file__).with_name("pod.json")


def main() -> list[Row]:
    """The list first, then the pods."""
    return [*_lists(), *_bindings()]


# -- a long list ---------------------------------------------------------------------------------------------


@contextmanager
def _written() -> Iterator[Path]:
    """A list of pods that differ in their names, as the API server sends it; each was a real one."""
    pod = _POD.read_text("utf-8").strip()
    name, uid = (json.loads(pod)["metadata"][key] for key in ("name", "uid"))
    items = (
        pod.replace(name, f"training-0-{number:05}").replace(uid, f"{number:08x}{uid[8:]}")
        for number in range(PODS)
    )
    with tempfile.TemporaryDirectory(prefix="jobman-bench-") as folder:
        path = Path(folder) / "pods.json"
        head = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
        path.write_text(head + ",".join(items) + "]}", "utf-8")
        yield path


def ours(path: Path) -> Callable[[], object]:
    """As every list is read."""
    from jobman.engines.kubernetes.kinds import PODS

    data = path.read_bytes()
    return lambda: PODS.page.decode(data)


def stock(path: Path) -> Callable[[], object]:
    """As the Python client of the Kubernetes project reads what came."""
    from kubernetes.client import ApiClient

    client, text = ApiClient(), path.read_text("utf-8")

    def read(text: str) -> object:
        return client.deserialize(text, "V1PodList", "application/json")

    read(f'{{"items": [{_POD.read_text("utf-8")}]}}')  # it makes its models when they are used first
    return lambda: read(text)


def plain(path: Path) -> Callable[[], object]:
    """Into dictionaries, by Python's own library."""
    data = path.read_bytes()
    return lambda: json.loads(data)


WORK = {work.__name__: work for work in (ours, stock, plain)}


def _lists() -> Iterator[Row]:
    with _written() as path:
        found = interleaved("bench.kubernetes", list(WORK), path, ROUNDS)
        size = path.stat().st_size / 1e6
    version = importlib.import_module("kubernetes").__version__
    what = f"read a list of {PODS:,} pods ({size:.0f} MB)"
    peers = {
        "stock": (f"kubernetes {version}", "target: ≤ 0.05"),
        "plain": ("json.loads", "dictionaries only"),
    }
    for name, (peer, note) in peers.items():
        for word, pick in (("median", typical), ("best", best)):
            yield Row(f"{what}, {word}", pick(found["ours"]), "s", peer, pick(found[name]), note)
    yield _memory(found)


def _memory(found: dict[str, list[Measured]]) -> Row:
    return Row("peak memory of that", peak(found["ours"]), "MiB", "the stock client", peak(found["stock"]))


# -- pods and nodes ------------------------------------------------------------------------------------------


def _bindings() -> Iterator[Row]:
    """Ours after theirs, each on a cluster of its own."""
    if why := _kwok.reason():
        yield Row("pods from submit to bound", 0.0, "pods/s", note=why)
        return
    yield from _load(f"{SINGLES:,} jobs of one pod", SINGLES, 1)
    yield from _load(f"{GANGS:,} gangs of {GANG}", GANGS, GANG)


def _load(what: str, jobs: int, pods: int) -> Iterator[Row]:
    with _kwok.cluster(NODES) as kubeconfig:
        theirs, used = _kwok.bind_plain(kubeconfig, [_kwok.plain_job(number, pods) for number in range(jobs)])
    with _kwok.cluster(NODES) as kubeconfig:
        found = _managed.measure(kubeconfig, jobs, pods)
    count = jobs * pods
    note = f"{NODES:,} simulated nodes; target: ≥ 1"
    yield Row(f"{what}, submit to bound", count / found.seconds, "pods/s", PLAIN, count / theirs, note)
    ours, plain = (1000 * sum(each.values()) / count for each in (found.processor, used))
    yield Row("processor time of all for a pod", ours, "ms", PLAIN, plain, _shares(found.processor, count))
    passes = [1000 * each for each in found.passes]
    yield Row("a pass of the planner, median", median(passes), "ms", note=f"of {len(passes)}")
    yield Row("the longest pass", max(passes), "ms")
    yield Row("memory of the service", found.memory, "MB", note=f"{count:,} pods run")
    yield Row("killed, to a new job's pod on its node", found.restart, "s", note="target: ≤ 10")


def _shares(processor: dict[str, float], count: int) -> str:
    """Who used how much of the processor for a pod, those with most first."""
    most = sorted(processor.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {1000 * seconds / count:.1f}" for name, seconds in most)


if __name__ == "__main__":
    print(json.dumps(measured(WORK[sys.argv[1]](Path(sys.argv[2])))))
