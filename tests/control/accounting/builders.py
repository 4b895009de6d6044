"""What is charged, with whatever is left out filled in."""

from jobman.control.accounting.book import Grant
from jobman.control.accounting.ledger import Metered
from jobman.plan.model import Plan, Unit
from jobman.plan.nodes import ClusterNode
from jobman.sched.allocation import Allocation, Held, Slot
from jobman.spec.shapes import Flavor, Part
from tests.control.store.builders import NOON, job

GIB = 2**30
NODES = {
    "n1": ClusterNode(name="n1", amounts={"core": 8, "memory": 32 * GIB, "gpu": 2}),
    "n2": ClusterNode(name="n2", amounts={"core": 8, "memory": 32 * GIB, "gpu": 2}),
    "big": ClusterNode(name="big", amounts={"core": 64, "memory": 256 * GIB}),
}
PLAN = Plan(version=1, name="train", digest="", units=())


def metered(**values):
    """One core for one unit an hour."""
    known = {
        "job": job().id,
        "key": "train.0",
        "attempt": 1,
        "start": NOON,
        "price": 1.0,
        "owner": "ada",
        "account": "default",
        "amounts": {"core": 1.0, "node": 1.0},
    }
    return Metered(**{**known, **values})


def part(copies=1, flavor=None, **each):
    named = None if flavor is None else Flavor(flavor)
    return Part(slots=copies, each=each or {"core": 1}, flavor=named)


def holding(parts, *nodes, whole=False):
    """Slots of parts on nodes in turn, with what they hold there; whole nodes where it says so."""
    slots: list[Slot] = []
    held: dict[str, dict[str, float]] = {}
    for one in parts:
        for number in range(one.copies):
            node = nodes[number % len(nodes)]
            slots.append(Slot(node, amounts=one.each))
            mine = held.setdefault(node, {})
            for kind, amount in one.each.items():
                mine[kind] = mine.get(kind, 0) + amount
    amounts = {name: NODES[name].amounts if whole else mine for name, mine in held.items()}
    return Allocation(
        0, tuple(Held(name, amounts=mine, whole=whole) for name, mine in amounts.items()), tuple(slots)
    )


def grant(record=None, parts=None, node="n1", **values):
    parts = parts or (part(),)
    known = {
        "record": record or job(),
        "plan": PLAN,
        "unit": Unit(id="train", name="train", alternatives=(tuple(parts),)),
        "key": "train.0",
        "attempt": 1,
        "allocation": holding(parts, node),
        "nodes": NODES,
        "at": NOON,
    }
    return Grant(**{**known, **values})
