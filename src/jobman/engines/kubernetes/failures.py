"""What follows a failure, as rules of a Job: pod failure policy, limits of retries, success policy.

A Job sees exit codes and disruptions, nothing else. A kill looks the same whoever did it: a signal, too much
memory, a time limit, a failed check. So a rule names all of these that can occur, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from jobman.engines.kubernetes.surroundings import groups_around
from jobman.plan.model import Plan, Unit
from jobman.spec.failures import FailureRule, Retries
from jobman.spec.ranges import Span

RETRIES_OF_A_RULE = 3
"""How often a rule with `retry` tries again where nothing else is said."""
_ALL_CODES = frozenset(range(1, 256))
_LAUNCH = frozenset({128})
_KILLED = frozenset(range(129, 193))
_DISRUPTIONS = ("node-lost", "preempted")
_FIRST_WAIT, _LONGEST_WAIT = 10.0, 360.0
_JOB_ACTIONS = {"retry": "Count", "fail-task": "FailJob", "fail-job": "FailJob"}


class Match(msgspec.Struct, frozen=True):
    """The failures a rule is for."""

    codes: frozenset[int]
    disrupted: bool = False


class Forgiven(msgspec.Struct, frozen=True):
    """Exit codes that count as success, for all replicas or for some."""

    codes: tuple[Span, ...]
    replicas: tuple[Span, ...] = ()


def rules_of(plan: Plan, unit: Unit) -> tuple[FailureRule, ...]:
    """The rules that hold for a task: its own, then those of what surrounds it."""
    found = list(unit.policies.on_failure)
    for group in groups_around(plan, unit):
        found += group.policies.on_failure
    return (*found, *plan.policies.on_failure)


def match_of(exit_codes: Iterable[Span], reasons: tuple[str, ...], unit: Unit) -> Match | str:
    """What a Job can see of the failures meant; a text says why it cannot."""
    written = frozenset(code for low, high in exit_codes for code in range(low, high + 1))
    if not reasons:
        return Match(written or _ALL_CODES, disrupted=not written)
    named = set(reasons)
    codes: frozenset[int] = frozenset()
    if "exit" in named:
        codes |= _ALL_CODES - _KILLED - _LAUNCH
    if "launch-failed" in named:
        codes |= _LAUNCH
    if killed := named & set(_killers(unit)):
        missing = [reason for reason in _killers(unit) if reason not in killed]
        if missing and not written:
            return (
                f"a Job cannot tell {' and '.join(_killers(unit))} apart; name also {' and '.join(missing)}"
            )
        codes |= _KILLED
    disrupted = named & set(_DISRUPTIONS)
    if disrupted and len(disrupted) < len(_DISRUPTIONS):
        return f"a Job cannot tell {' and '.join(_DISRUPTIONS)} apart; name both"
    found = Match(codes & written if written else codes, bool(disrupted) and not written)
    if not found.codes and not found.disrupted:
        return f"a Job never sees {' and '.join(reasons)}; leave the rule out here"
    return found


def _killers(unit: Unit) -> tuple[str, ...]:
    """The reasons that show as a kill and can occur."""
    checks = unit.policies.checks
    is_watched = checks is not None and (checks.alive is not None or checks.started is not None)
    possible = {
        "signal": True,
        "out-of-memory": True,
        "timeout": unit.duration is not None,
        "unhealthy": is_watched,
    }
    return tuple(reason for reason, can_occur in possible.items() if can_occur)


def waits_long_enough(retries: Retries) -> bool:
    """Whether the cluster's own waits between retries are at least as long as those asked for."""
    asked, own = retries.delay, _FIRST_WAIT
    for _ in range(min(retries.limit, 64)):
        if asked > own:
            return False
        asked, own = asked * retries.factor, min(own * 2, _LONGEST_WAIT)
    return True


def limit_of(plan: Plan, unit: Unit) -> int:
    """How often a replica is tried again."""
    if unit.policies.retries is not None:
        return unit.policies.retries.limit
    has_rule = any(rule.action == "retry" for rule in rules_of(plan, unit))
    return RETRIES_OF_A_RULE if has_rule else 0


def forgiven(plan: Plan, unit: Unit) -> tuple[Forgiven, ...]:
    """What the shell around the command turns into success: the rules with `ignore`, as they come in turn."""
    found = []
    taken: frozenset[int] = frozenset()
    for rule in rules_of(plan, unit):
        match = match_of(rule.exit_codes, rule.reasons, unit)
        if isinstance(match, str):
            continue
        if rule.action == "ignore" and (codes := match.codes - taken):
            found.append(Forgiven(_spans(codes), () if are_all(rule.replicas, unit) else rule.replicas))
        if rule.action != "ignore" or are_all(rule.replicas, unit):
            taken |= match.codes
    return tuple(found)


def pod_failure_policy(plan: Plan, unit: Unit) -> dict[str, Any]:
    """The rules in the order in which they are asked; what happens to the infrastructure never counts."""
    rules = list(_policy_rules(plan, unit))
    return {"rules": rules}


def _policy_rules(plan: Plan, unit: Unit) -> Iterator[dict[str, Any]]:
    written = list(_written_rules(plan, unit))
    if not any("onPodConditions" in rule for rule in written):
        yield {"action": "Ignore", **_on_disruption()}
    yield from written
    retries = unit.policies.retries
    if retries is not None and retries.on is not None:
        match = match_of(retries.on.exit_codes, retries.on.reasons, unit)
        if not isinstance(match, str) and match.codes:
            yield {"action": "Count", **_on_codes(match.codes)}
        yield {"action": "FailIndex", **_on_any_code()}
    elif retries is None and any(rule["action"] == "Count" for rule in written):
        yield {"action": "FailIndex", **_on_any_code()}


def _written_rules(plan: Plan, unit: Unit) -> Iterator[dict[str, Any]]:
    for rule in rules_of(plan, unit):
        match = match_of(rule.exit_codes, rule.reasons, unit)
        if isinstance(match, str) or rule.action not in _JOB_ACTIONS:
            continue
        action = _JOB_ACTIONS[rule.action]
        if match.disrupted:
            # To try again after a disruption costs nothing, whatever a rule says.
            yield {"action": "Ignore" if action == "Count" else action, **_on_disruption()}
        if match.codes:
            yield {"action": action, **_on_codes(match.codes)}


def _on_disruption() -> dict[str, Any]:
    return {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def _on_codes(codes: frozenset[int]) -> dict[str, Any]:
    """Whichever of the two forms is shorter."""
    others = _ALL_CODES - codes
    if not others:
        return _on_any_code()
    operator, values = ("In", codes) if len(codes) <= len(others) else ("NotIn", others)
    return {"onExitCodes": {"operator": operator, "values": sorted(values)}}


def _on_any_code() -> dict[str, Any]:
    return {"onExitCodes": {"operator": "NotIn", "values": [0]}}


def success_policy(unit: Unit) -> dict[str, Any]:
    """Done early: `success`, or else `completions`."""
    success, completions = unit.policies.success, unit.policies.completions
    if success is None and completions is None:
        return {}
    rule: dict[str, Any] = {}
    if success is not None and success.replicas:
        rule["succeededIndexes"] = index_list(success.replicas, unit.replicas)
    count = completions if success is None else success.count
    if count is not None:
        rule["succeededCount"] = count
    return {"rules": [rule]} if rule else {}


def max_failed(unit: Unit) -> int | None:
    """After how many failed replicas the Job gives up: as written, or because success is out of reach."""
    limits = [] if unit.policies.max_failed is None else [unit.policies.max_failed]
    success, completions = unit.policies.success, unit.policies.completions
    needed = completions if success is None else success.count if not success.replicas else None
    if needed is not None:
        limits.append(max(0, unit.replicas - needed))
    return min(limits, default=None)


def index_list(spans: Iterable[Span], count: int) -> str:
    """Indexes as a Job writes them: `0-4,7`."""
    kept = [(low, min(high, count - 1)) for low, high in spans if low < count]
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in kept)


def _spans(numbers: Iterable[int]) -> tuple[Span, ...]:
    found: list[Span] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def are_all(replicas: tuple[Span, ...], unit: Unit) -> bool:
    """Whether a rule is for every replica."""
    if not replicas:
        return True
    return any(low == 0 and high >= unit.replicas - 1 for low, high in replicas)


def fails_the_job(plan: Plan, unit: Unit) -> bool:
    """Whether every failure of a task ends the whole job."""
    codes: frozenset[int] = frozenset()
    for rule in rules_of(plan, unit):
        match = match_of(rule.exit_codes, rule.reasons, unit)
        if rule.action != "fail-job" or isinstance(match, str) or not are_all(rule.replicas, unit):
            return False
        codes |= match.codes
    return codes == _ALL_CODES
