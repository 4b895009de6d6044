"""Why the cluster does not let a Job make pods: quotas, missing classes and accounts, admission. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from jobman.engines.kubernetes.blockers import Trouble
from jobman.engines.kubernetes.objects import Quota
from jobman.engines.kubernetes.quantities import Amounts, named, parse_amounts, parse_quantity, spoken

_EXCEEDED = re.compile(r"exceeded quota: (\S+), requested: (.+), used: (.+), limited: (.+)")
_UNSAID = re.compile(r"failed quota: (\S+): must specify (.+)")
_POD_SECURITY = re.compile(r'violates PodSecurity "([^"]+)": (.+)', re.DOTALL)
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request:? ?(.*)', re.DOTALL)
_NAMED = {
    r'service account \S*?/(\S+?): serviceaccount "\S+" not found': (
        "there is no service account {} in its namespace",
        "create it, or leave out `identity`",
    ),
    r"no PriorityClass with name (\S+) was found": (
        "the cluster has no priority class {}",
        "use one that `kubectl get priorityclasses` lists as `priority`",
    ),
    r'RuntimeClass "([^"]+)" not found': (
        "the cluster has no runtime class {}",
        "use one that `kubectl get runtimeclasses` lists under `runtime: {class: …}`",
    ),
}


def why_refused(message: str, quotas: Sequence[Quota]) -> Trouble:
    """What is behind the event of a Job that could not make a pod."""
    for pattern, explain in _EXPLANATIONS.items():
        if match := pattern.search(message):
            return explain(match, quotas)
    for beginning, (words, advice) in _NAMED.items():
        if found := re.search(beginning, message):
            return Trouble("refused", words.format(found[1]), advice)
    said = message.removeprefix("Error creating: ").partition(" is forbidden: ")[2] or message
    return Trouble("refused", f"the cluster does not take its pods: {said}")


def _exceeded(match: re.Match[str], quotas: Sequence[Quota]) -> Trouble:
    name, asked = match[1], _amounts(match[2])
    used, limits = _now(name, _amounts(match[3]), _amounts(match[4]), quotas)
    never = [resource for resource, amount in asked.items() if amount > limits.get(resource, amount)]
    told = [
        f"it asks for {named(resource, amount)}, and {spoken(resource, used.get(resource, Fraction(0)))} of "
        f"{spoken(resource, limits[resource])} are in use"
        for resource, amount in asked.items()
        if resource in limits
    ]
    message = f"the quota {name} is too small for it: {'; '.join(told)}"
    if never:
        most = " and ".join(named(resource, limits[resource]) for resource in never)
        return Trouble("never", message, f"ask for at most {most}, or ask for a larger quota")
    return Trouble("limit", message, "wait until others in the namespace end, or ask for a larger quota")


def _now(name: str, used: Amounts, limits: Amounts, quotas: Sequence[Quota]) -> tuple[Amounts, Amounts]:
    """How far a quota is used; the event tells how it was when somebody last tried."""
    for quota in quotas:
        if quota.metadata.name == name:
            return parse_amounts(quota.status.used), parse_amounts(quota.status.hard)
    return used, limits


def _amounts(written: str) -> Amounts:
    pairs = (pair.strip().partition("=") for pair in written.split(","))
    return {name: parse_quantity(quantity) for name, _, quantity in pairs}


def _unsaid(match: re.Match[str], _: Sequence[Quota]) -> Trouble:
    resources = match[2].partition(" for: ")[0].replace(",", " and ")
    message = f"the quota {match[1]} of its namespace wants every pod to say its {resources}"
    return Trouble("limit", message, "name them under `resources`, or use a flavor that does")


def _insecure(match: re.Match[str], _: Sequence[Quota]) -> Trouble:
    message = f"the namespace allows pods of the level {match[1]} only: {match[2]}"
    return Trouble("refused", message, "look at `security` and `volumes`, or use another namespace")


def _denied(match: re.Match[str], _: Sequence[Quota]) -> Trouble:
    message = f"the cluster's own check {match[1]} does not allow it: {match[2].strip()}"
    return Trouble("refused", message, "change what it names, or ask who runs the cluster")


_EXPLANATIONS: dict[re.Pattern[str], Callable[[re.Match[str], Sequence[Quota]], Trouble]] = {
    _EXCEEDED: _exceeded,
    _UNSAID: _unsaid,
    _POD_SECURITY: _insecure,
    _WEBHOOK: _denied,
}
