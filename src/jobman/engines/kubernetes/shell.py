"""What the cluster cannot do around a command and a shell of the image can.

A task that needs none of it is run as it is written, so that images without a shell work. The shell gives way
to the command where nothing is left to do after it, and otherwise passes on the request to stop.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

import msgspec

from jobman.engines.kubernetes.failures import Forgiven
from jobman.plan.model import Unit
from jobman.spec.lifecycle import Hooks
from jobman.spec.ranges import Span

_NO_HOOKS = Hooks()
_LISTEN = """\
child= early=
trap 'if [ "$child" ]; then kill -TERM "$child"; else early=1; fi 2>/dev/null' TERM INT QUIT"""
"""A request to stop may come before there is anything to pass it on to."""
_START = """\
"$@" &
child=$!
if [ "$early" ]; then sleep 1; kill -TERM "$child"; fi"""
"""What has just begun does not hear yet: some shells lose a signal between the fork and the command."""
_REAP = """\
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done"""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done around a command."""

    calculated: Mapping[str, str] = {}
    """Variables that are sums, as a shell calculates them."""
    umask: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    signal: str | None = None
    signal_after: float = 0.0
    forgiven: tuple[Forgiven, ...] = ()

    @property
    def is_needed(self) -> bool:
        return any(
            (self.calculated, self.umask, self.stdout, self.stderr, self.before, self.stays),
        )

    @property
    def stays(self) -> bool:
        """Whether something is left to do while the command runs or after it."""
        return bool(self.after or self.signal or self.forgiven)


def around(unit: Unit, calculated: Mapping[str, str], forgiven: tuple[Forgiven, ...]) -> Around:
    """What the shell has to do for a task."""
    policies = unit.policies
    hooks = policies.hooks or _NO_HOOKS
    warning = policies.signal
    duration = unit.duration or 0.0
    return Around(
        calculated=calculated,
        umask=policies.security.umask if policies.security is not None else None,
        stdout=unit.stdout,
        stderr=unit.stderr,
        before=hooks.before,
        after=hooks.after,
        signal=warning.name if warning is not None and duration else None,
        signal_after=max(0.0, duration - warning.before) if warning is not None else 0.0,
        forgiven=forgiven,
    )


def command(argv: Iterable[str], wanted: Around) -> list[str]:
    """The argument vector of the container."""
    if not wanted.is_needed:
        return [verbatim(word) for word in argv]
    script = "\n".join(_script(wanted))
    return ["/bin/sh", "-c", verbatim(script), "sh", *(verbatim(word) for word in argv)]


def verbatim(text: str) -> str:
    """A text that the cluster hands on as it is: it would put variables in for `$(NAME)`."""
    return re.sub(r"\$+(?=\()|\${2,}", lambda run: run[0] * 2, text)


def _script(wanted: Around) -> Iterator[str]:
    for name, expression in wanted.calculated.items():
        yield f"export {name}=$(({expression}))"
    if wanted.umask is not None:
        yield f"umask {wanted.umask.lower().replace('o', '')}"
    if wanted.stdout is not None:
        yield f"exec >>{shlex.quote(wanted.stdout)} || exit"
    if wanted.stderr is not None:
        yield f"exec 2>>{shlex.quote(wanted.stderr)} || exit"
    if wanted.before or wanted.stays:
        yield _LISTEN
    if wanted.before:
        yield f"{shlex.join(wanted.before)} || exit"
        yield '[ ! "$early" ] || exit 143'
    if not wanted.stays:
        if wanted.before:
            yield "trap - TERM INT QUIT"
        yield 'exec "$@"'
        return
    yield _START
    if wanted.signal is not None:
        yield f'(sleep {ceil(wanted.signal_after)}; kill -{wanted.signal} "$child") 2>/dev/null &'
    yield _REAP
    if wanted.after:
        yield shlex.join(wanted.after)
    for each in wanted.forgiven:
        yield f"if {_condition(each)}; then exit 0; fi"
    yield 'exit "$code"'


def _condition(forgiven: Forgiven) -> str:
    tests = [_within("code", forgiven.codes)]
    if forgiven.replicas:
        tests.append(_within("JOBMAN_REPLICA", forgiven.replicas))
    return " && ".join(tests)


def _within(variable: str, spans: tuple[Span, ...]) -> str:
    tests = [f'{{ [ "${variable}" -ge {low} ] && [ "${variable}" -le {high} ]; }}' for low, high in spans]
    return tests[0] if len(tests) == 1 else f"{{ {' || '.join(tests)}; }}"
