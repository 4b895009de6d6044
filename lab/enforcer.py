"""Holds the pods of the lab to the NetworkPolicies of their cluster, by a table of nftables.

It watches the cluster. No packet waits for it: while it is away the last rules stand.
"""

from __future__ import annotations

import argparse
import json
import os
import socketserver
import subprocess
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from lab.cluster_watch import Server, Watch, Written
from lab.network_policies import Address, Cluster, NamedPort, Pod, isolations, read_pod, ruleset, settled

PATIENCE = 10.0  # of a pod that waits for its rules before it starts
Key = tuple[str, str]
_KINDS = {
    "pods": "/api/v1/pods",
    "namespaces": "/api/v1/namespaces",
    "policies": "/apis/networking.k8s.io/v1/networkpolicies",
}
# What is kept of an object; that anything else of it changes means nothing to policies.
_KEPT: dict[str, Callable[[Written], Any]] = {
    "pods": read_pod,
    "namespaces": lambda written: written["metadata"].get("labels") or {},
    "policies": lambda written: {
        "metadata": {"namespace": written["metadata"]["namespace"]},
        "spec": written["spec"],
    },
}


@dataclass(frozen=True)
class Announcement:
    """A pod is about to start with this address, which its status will only tell later."""

    namespace: str
    name: str
    uid: str
    address: str


class Knowledge:
    """What is known of the cluster, and of how much of it the rules stand."""

    def __init__(self, stand_ins: tuple[Pod, ...] = ()) -> None:
        self._stand_ins = stand_ins
        self._changed = threading.Condition()
        self._known: dict[str, dict[Key, Any]] = {}
        self._announced: dict[str, Announcement] = {}
        self._news = False
        self._covered: frozenset[tuple[str, Address]] = frozenset()

    def everything(self, kind: str, objects: list[Written]) -> None:
        known = {_key(each): _KEPT[kind](each) for each in objects}
        with self._changed:
            before = self._known.get(kind, {})
            self._known[kind] = known
            for key in before.keys() - known.keys():
                self._forget(before[key])
            self._tell()

    def one(self, kind: str, written: Written, gone: bool) -> None:
        key, kept = _key(written), None if gone else _KEPT[kind](written)
        with self._changed:
            before = self._known[kind].pop(key, None)
            if kept is not None:
                self._known[kind][key] = kept
            else:
                self._forget(before)
            if kept != before:
                self._tell()

    def announce(self, announcement: Announcement, patience: float = PATIENCE) -> bool:
        """Whether the rules for it were in place in time."""
        claim = announcement.uid, Address(announcement.address)
        with self._changed:
            self._announced.pop(announcement.uid, None)  # so that the last to claim an address comes last
            self._announced[announcement.uid] = announcement
            self._tell()
            return self._changed.wait_for(lambda: claim in self._covered, patience)

    def news(self) -> Cluster:
        """Everything, as soon as something changed."""
        with self._changed:
            self._changed.wait_for(lambda: self._news and len(self._known) == len(_KINDS))
            self._news = False
            return Cluster(
                pods=(*self._pods(), *self._stand_ins),
                namespaces={name: labels for (_, name), labels in self._known["namespaces"].items()},
                policies=tuple(self._known["policies"].values()),
            )

    @property
    def quiet(self) -> bool:
        """Whether nothing changed since the last news."""
        return not self._news

    def cover(self, cluster: Cluster) -> None:
        """Rules for it are in place now."""
        with self._changed:
            self._covered = frozenset((pod.uid, address) for pod in cluster.pods for address in pod.addresses)
            self._changed.notify_all()

    def again(self) -> None:
        """Rules could not be put in place, which is to be tried once more."""
        with self._changed:
            self._tell()

    def _pods(self) -> tuple[Pod, ...]:
        known: dict[str, Pod] = {pod.uid: pod for pod in self._known["pods"].values()}
        announced = {
            uid: each for uid, each in self._announced.items() if uid in known and not known[uid].ended
        }
        told = [pod for uid, pod in known.items() if uid not in announced]
        return settled(
            [
                *sorted(told, key=lambda pod: pod.started),
                *(replace(known[uid], addresses=(Address(each.address),)) for uid, each in announced.items()),
            ]
        )

    def _forget(self, known: object) -> None:
        if isinstance(known, Pod):
            self._announced.pop(known.uid, None)

    def _tell(self) -> None:
        self._news = True
        self._changed.notify_all()


def _key(written: Written) -> Key:
    return written["metadata"].get("namespace", ""), written["metadata"]["name"]


class Rules:
    """The table as the kernel has it, changed as a whole or not at all."""

    def __init__(self, table: str, bridges: str) -> None:
        self._table, self._bridges = table, bridges
        self._standing = ""

    def put(self, cluster: Cluster) -> bool:
        """Whether they stand now."""
        found = isolations(cluster)
        text = ruleset(self._table, self._bridges, found)
        if text == self._standing:
            return True
        done = subprocess.run(["nft", "-f", "-"], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            say(f"nft refuses the rules: {done.stderr.strip()}")
            return False
        self._standing = text
        say(f"{len(found)} isolations by {len(cluster.policies)} policies among {len(cluster.pods)} pods")
        return True


class Counter(socketserver.ThreadingUnixStreamServer):
    """Where pods are announced: a line of JSON each, answered by a line when the pod may start."""

    daemon_threads = True

    def __init__(self, place: Path, knowledge: Knowledge) -> None:
        place.unlink(missing_ok=True)
        self.knowledge = knowledge
        super().__init__(str(place), Visit)
        place.chmod(0o600)


class Visit(socketserver.StreamRequestHandler):
    """One announcement."""

    server: Counter

    def handle(self) -> None:
        announcement = Announcement(**json.loads(self.rfile.readline()))
        ready = self.server.knowledge.announce(announcement)
        self.wfile.write(b"ready\n" if ready else b"the cluster does not tell of this pod\n")


def dns(address: str) -> Pod:
    """CoreDNS, a process of the machine, as policies meet it in other clusters."""
    ports = (NamedPort("dns", "UDP", 53), NamedPort("dns-tcp", "TCP", 53))
    labels = {"k8s-app": "kube-dns"}
    return Pod("kube-system", "coredns", "", labels, (Address(address),), ports, stand_in=True)


def say(words: str) -> None:
    print(time.strftime("%H:%M:%S"), words, flush=True)


def stop_all(failure: threading.ExceptHookArgs) -> None:
    """Better no enforcer, which is noticed, than one that no longer hears of a part of the cluster."""
    traceback.print_exception(failure.exc_type, failure.exc_value, failure.exc_traceback)
    os._exit(1)


def enforce(server: Server, knowledge: Knowledge, rules: Rules, counter: Path) -> None:
    """For ever; the counter opens when the first rules stand."""
    for kind, path in _KINDS.items():
        watch = Watch(server, path, partial(knowledge.everything, kind), partial(knowledge.one, kind), say)
        threading.Thread(target=watch.forever, daemon=True).start()
    opened = False
    while True:
        cluster = knowledge.news()
        if not rules.put(cluster):
            time.sleep(1)
            knowledge.again()
            continue
        knowledge.cover(cluster)
        if not opened:
            threading.Thread(target=Counter(counter, knowledge).serve_forever, daemon=True).start()
            opened = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubectl", type=Path, required=True)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--counter", type=Path, required=True, help="socket where pods are announced")
    parser.add_argument("--table", required=True, help="of nftables")
    parser.add_argument("--bridges", required=True, help="of the nodes, with * at the end")
    parser.add_argument("--dns", required=True, help="address of CoreDNS")
    given = parser.parse_args()
    threading.excepthook = stop_all
    server = Server.of_kubeconfig(given.kubectl, given.kubeconfig)
    enforce(server, Knowledge((dns(given.dns),)), Rules(given.table, given.bridges), given.counter)


if __name__ == "__main__":
    main()
