"""What others use of the nodes: every pod that is not ours, of whomever it is. Pure, and kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from jobman.engines.kubernetes.endings import is_over
from jobman.engines.kubernetes.managed.nodes import PODS
from jobman.engines.kubernetes.needs import needs_of
from jobman.engines.kubernetes.objects import Pod
from jobman.engines.kubernetes.quantities import Amounts

Place = tuple[str, str]


class Foreign:
    """Counts what pods ask for, node by node. `kind_of` names resources; None is not counted."""

    def __init__(self, kind_of: Callable[[str], str | None]) -> None:
        self._kind_of = kind_of
        self._counted: dict[Place, tuple[str, Amounts]] = {}
        self._sums: dict[str, Amounts] = {}

    def put(self, pod: Pod, *, is_ours: bool) -> set[str]:
        """A pod is as it is said here; returns the nodes of which others use more or less than before."""
        node = pod.spec.node_name
        wanted: tuple[str, Amounts] | None = None
        if node and not is_ours and not is_over(pod):
            wanted = node, {**needs_of(pod), PODS: Fraction(1)}
        return self._change((pod.metadata.namespace, pod.metadata.name), wanted)

    def drop(self, pod: Pod) -> set[str]:
        """A pod is gone."""
        return self._change((pod.metadata.namespace, pod.metadata.name), None)

    def of(self, node: str) -> Amounts:
        """What others use of a node, by kind."""
        found: Amounts = {}
        for resource, amount in self._sums.get(node, {}).items():
            kind = self._kind_of(resource)
            if kind is not None:
                found[kind] = found.get(kind, Fraction(0)) + amount
        return found

    def _change(self, place: Place, wanted: tuple[str, Amounts] | None) -> set[str]:
        known = self._counted.get(place)
        if known == wanted:
            return set()
        touched: set[str] = set()
        for entry, sign in ((known, -1), (wanted, 1)):
            if entry is not None:
                touched.add(entry[0])
                self._add(*entry, sign)
        if wanted is None:
            self._counted.pop(place, None)
        else:
            self._counted[place] = wanted
        return touched

    def _add(self, node: str, amounts: Amounts, sign: int) -> None:
        sums = self._sums.setdefault(node, {})
        for resource, amount in amounts.items():
            sums[resource] = sums.get(resource, Fraction(0)) + sign * amount
            if not sums[resource]:
                del sums[resource]
        if not sums:
            del self._sums[node]
