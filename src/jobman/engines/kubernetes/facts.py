"""Which labels a pod asks of its node, and which of them no node has. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jobman.engines.kubernetes.objects import Node, Pod, Requirement

Alternative = list[Requirement]


def alternatives(pod: Pod) -> list[Alternative]:
    """What a node must be like; one of the alternatives is enough. None where any node will do."""
    always = [
        Requirement(key=key, operator="In", values=[value]) for key, value in pod.spec.node_selector.items()
    ]
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    choice = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if choice is None:
        return [always] if always else []
    return [[*always, *term.match_expressions] for term in choice.node_selector_terms]


def matches(node: Node, alternative: Alternative) -> bool:
    """Whether a node is of this kind."""
    return all(meets(node, requirement) for requirement in alternative)


def meets(node: Node, requirement: Requirement) -> bool:
    """Whether a node has one label as it is asked for."""
    return _OPERATORS.get(requirement.operator, _unknown)(node.metadata.labels, requirement)


def unmet(wanted: Sequence[Alternative], nodes: Sequence[Node]) -> list[str]:
    """What no node has, if every alternative needs such a thing."""
    missing = [
        [one for one in alternative if not any(meets(node, one) for node in nodes)] for alternative in wanted
    ]
    return list(dict.fromkeys(written(one) for found in missing for one in found)) if all(missing) else []


def written(requirement: Requirement) -> str:
    """A requirement as people write it."""
    key, values = requirement.key, requirement.values
    if requirement.operator == "In":
        return f"{key}={'|'.join(values)}"
    return {
        "NotIn": f"{key}!={'|'.join(values)}",
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "Gt": f"{key}>{''.join(values)}",
        "Lt": f"{key}<{''.join(values)}",
    }.get(requirement.operator, f"{key} {requirement.operator} {','.join(values)}")


Labels = Mapping[str, str]


def _compares(labels: Labels, requirement: Requirement, right: Callable[[int, int], bool]) -> bool:
    try:
        return right(int(labels[requirement.key]), int(requirement.values[0]))
    except (KeyError, ValueError, IndexError):
        return False


def _unknown(_: Labels, requirement: Requirement) -> bool:
    """What we do not understand is not what we blame."""
    return bool(requirement.key)


_OPERATORS: dict[str, Callable[[Labels, Requirement], bool]] = {
    "In": lambda labels, one: labels.get(one.key) in one.values,
    "NotIn": lambda labels, one: labels.get(one.key) not in one.values,
    "Exists": lambda labels, one: one.key in labels,
    "DoesNotExist": lambda labels, one: one.key not in labels,
    "Gt": lambda labels, one: _compares(labels, one, lambda has, least: has > least),
    "Lt": lambda labels, one: _compares(labels, one, lambda has, most: has < most),
}
