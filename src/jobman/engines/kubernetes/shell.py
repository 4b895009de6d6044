"""What the cluster cannot do around a command and a shell of the image can.

A task that needs none of it is run as it is written, so that images without a shell work. The shell gives way
to the command where nothing is left to do after it, and otherwise passes on the request to stop.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from math import ceil

import msgspec

from jobman.engines.kubernetes.endings import BEFORE, IGNORED, LAUNCH, NOT_STARTED
from jobman.engines.kubernetes.failures import Forgiven
from jobman.engines.kubernetes.kept_logs import END
from jobman.plan.model import Unit
from jobman.spec.lifecycle import Hooks
from jobman.spec.ranges import Span

_NO_HOOKS = Hooks()
_LAST_WORDS = "/dev/termination-log"
_LISTEN = """\
child= early=
trap 'if [ "$child" ]; then kill -TERM "$child"; else early=1; fi 2>/dev/null' TERM INT QUIT"""
"""A request to stop may come before there is anything to pass it on to."""
_START = """\
"$@" &
child=$!
if [ "$early" ]; then sleep 1; kill -TERM "$child"; fi"""
"""What has just begun does not hear yet: some shells lose a signal between the fork and the command."""
_COUNT = """\
starts="${JOBMAN_SCRATCH:-/tmp}/.jobman-starts"
echo x >>"$starts" && export JOBMAN_ATTEMPT=$(wc -l <"$starts" | tr -d ' ')"""
"""Scratch space stays when a container is started again in its pod."""
_PATIENCE = 60
"""Seconds for which a copy that has ended waits until its output is in a store."""
_LEAVE = """\
leave() {
  exec >&- 2>&-
  (sleep 2; kill $tees) &
  wait $tees
%s  exit "$1"
}"""
"""What was written last is still on its way; who holds a pipe open behind our back is not waited for."""
_CARRIED = f"""\
  left={_PATIENCE}
  true >{END} || left=0
  while [ "$left" -gt 0 ] && [ -e {END} ]; do
    sleep 1
    left=$((left - 1))
  done
"""
"""Who carries the output away says that it is done by removing a file."""
_FOUND = f"""\
command -v "$1" >/dev/null 2>&1 || {{ echo "{NOT_STARTED}$1" >{_LAST_WORDS}; exit {LAUNCH}; }}"""
"""A command that is not there could not be started, also where a shell would have started it."""
_REAP = """\
while :; do
  wait "$child" 2>/dev/null
  code=$?
  kill -0 "$child" 2>/dev/null || break
done"""


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done around a command."""

    calculated: Mapping[str, str] = {}
    """Variables that are sums, as a shell calculates them."""
    counts: bool = False
    """Whether it is started again in place, and has to count that itself."""
    umask: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    kept: str | None = None
    """The beginning of the name of a file that has all it writes; replica, rank and attempt follow."""
    carried: bool = False
    """Whether somebody carries that file to a store, and is waited for."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    signal: str | None = None
    signal_after: float = 0.0
    forgiven: tuple[Forgiven, ...] = ()
    notes: bool = True
    """Whether the last words of the container are ours, and not those of a result file."""

    @property
    def is_needed(self) -> bool:
        return any(
            (self.calculated, self.counts, self.umask, self.before, self.stays),
        )

    @property
    def stays(self) -> bool:
        """Whether something is left to do while the command runs or after it."""
        return bool(self.after or self.signal or self.forgiven or self.copies_output)

    @property
    def copies_output(self) -> bool:
        return bool(self.stdout or self.stderr or self.kept)


def around(
    unit: Unit,
    calculated: Mapping[str, str],
    forgiven: tuple[Forgiven, ...],
    kept: str | None = None,
) -> Around:
    """What the shell has to do for a task."""
    policies = unit.policies
    hooks = policies.hooks or _NO_HOOKS
    warning = policies.signal
    duration = unit.duration or 0.0
    return Around(
        calculated=calculated,
        counts=policies.restart == "on-failure",
        umask=policies.security.umask if policies.security is not None else None,
        stdout=unit.stdout,
        stderr=unit.stderr,
        kept=kept,
        before=hooks.before,
        after=hooks.after,
        signal=warning.name if warning is not None and duration else None,
        signal_after=max(0.0, duration - warning.before) if warning is not None else 0.0,
        forgiven=forgiven,
        notes=policies.result_file is None,
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
    if wanted.counts:
        yield _COUNT
    if wanted.umask is not None:
        yield f"umask {wanted.umask.lower().replace('o', '')}"
    yield from _copied(wanted)
    if wanted.before or wanted.stays:
        yield _LISTEN
    if wanted.before:
        yield f"{shlex.join(wanted.before)} || {_given_up(wanted)}"
        yield f'[ ! "$early" ] || {_end(wanted, "143")}'
    if wanted.notes:
        yield _FOUND
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
        yield f"if {_condition(each)}; then {_noted(wanted, IGNORED)}{_end(wanted, '0')}; fi"
    yield _end(wanted, '"$code"')


def _copied(wanted: Around) -> Iterator[str]:
    """Let everything that is written go to files, too."""
    if not wanted.copies_output:
        return
    if wanted.kept is not None:
        folder = shlex.quote(posixpath.dirname(wanted.kept))
        yield f"log={shlex.quote(wanted.kept)}.$JOBMAN_REPLICA-$JOBMAN_RANK-$JOBMAN_ATTEMPT.log"
        yield f"mkdir -p {folder} || exit"
    log = ['"$log"'] if wanted.kept is not None else []
    out, err = ([*([shlex.quote(name)] if name else []), *log] for name in (wanted.stdout, wanted.stderr))
    for name in dict.fromkeys([*out, *err]):
        yield f": >>{name} || exit"
    yield 'tees= pipe="${JOBMAN_SCRATCH:-/tmp}/jobman-$$"'
    if out:
        yield _piped("out", out, "")
    if err and err != out:
        yield _piped("err", err, " >&2")
    # One pipe for both keeps them in order.
    ways = [*(['>"$pipe.out"'] if out else []), *(["2>&1" if err == out else '2>"$pipe.err"'] if err else [])]
    yield f"exec {' '.join(ways)}"
    yield 'rm -f "$pipe.out" "$pipe.err"'
    yield _LEAVE % (_CARRIED if wanted.carried else "")


def _piped(stream: str, files: list[str], to: str) -> str:
    pipe = f'"$pipe.{stream}"'
    return f'mkfifo {pipe} || exit\ntee -a {" ".join(files)} <{pipe}{to} & tees="$tees $!"'


def _end(wanted: Around, code: str) -> str:
    return f"leave {code}" if wanted.copies_output else f"exit {code}"


def _given_up(wanted: Around) -> str:
    if not wanted.notes and not wanted.copies_output:
        return "exit"
    end = _end(wanted, '"$code"')
    return f"{{ code=$?; {_noted(wanted, BEFORE)}{end}; }}"


def _noted(wanted: Around, what: str) -> str:
    """Leave word of what the exit code does not tell."""
    return f'echo "{what}$code" >{_LAST_WORDS}; ' if wanted.notes else ""


def _condition(forgiven: Forgiven) -> str:
    tests = [_within("code", forgiven.codes)]
    if forgiven.replicas:
        tests.append(_within("JOBMAN_REPLICA", forgiven.replicas))
    return " && ".join(tests)


def _within(variable: str, spans: tuple[Span, ...]) -> str:
    tests = [f'{{ [ "${variable}" -ge {low} ] && [ "${variable}" -le {high} ]; }}' for low, high in spans]
    return tests[0] if len(tests) == 1 else f"{{ {' || '.join(tests)}; }}"
