"""Options of sbatch that are no resources, carried into the keys of a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from jobman.convert.allocation import ABOUT_SHAPES, tell_wrong
from jobman.convert.moments import moment_of
from jobman.convert.options import Given
from jobman.convert.outcome import as_name, is_name
from jobman.convert.outputs import file_name
from jobman.convert.remarks import Remarks
from jobman.convert.values import Indexes, Wrong, alarm_of, duration_text, indexes_of, seconds_of
from jobman.convert.wrapper import Form
from jobman.convert.writing import Path
from jobman.spec.suggest import listing

_LONGEST = 10 * 366 * 86400
_FEATURES = re.compile(r"[A-Za-z0-9_-]+(?:[&,][A-Za-z0-9_-]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEAVE_IT = "nothing else changes"


class Site(NamedTuple):
    """Where and when the job is submitted; `refused` are features with the engine's reason."""

    now: datetime
    refused: Mapping[str, str] = {}
    queues: tuple[str, ...] | None = None
    submit_dir: str | None = None


class Carrying:
    """Reads the options of one script; what they become is in the fields."""

    def __init__(self, given: Mapping[str, Given], site: Site, remarks: Remarks) -> None:
        self._given = given
        self._now = site.now
        self._refused = site.refused
        self._queues = site.queues
        self._remarks = remarks
        self._seconds: int | None = None
        self._flags: list[str] = []
        self._environment: dict[str, str] = {}
        self._attributes: dict[str, Any] = {}
        self._redirections: list[str] = []
        self._told: dict[str, str] = {}
        self.job_name = ""
        self.array: Indexes | None = None
        self.head: dict[str, Any] = {}
        self.task: dict[str, Any] = {}
        self.origins: dict[Path, Given] = {}

    def read(self, title: str) -> None:
        """Read every option; `title` names a job that has no name of its own."""
        self._name(title)
        for name, one in self._given.items():
            if one.option.fate == "engine":
                self.keep(one)
                self._tell("JC202", one, engine="Slurm", elsewhere=one.option.words)
            elif one.option.fate == "left":
                self._leave(one, one.option.words, one.option.advice.format())
            elif name in _CARRY:
                try:
                    _CARRY[name](self, one)
                except Wrong as wrong:
                    tell_wrong(one, wrong, self._remarks)

    @property
    def attributes(self) -> dict[str, Any]:
        found = dict(self._attributes)
        if self._environment:
            found["environment"] = self._environment
        if self._flags:
            found["flags"] = {"slurm": self._flags}
        return found

    @property
    def has_cwd(self) -> bool:
        return "cwd" in self._attributes

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._told.items())

    @property
    def redirections(self) -> tuple[str, ...]:
        return tuple(self._redirections)

    def keep(self, one: Given) -> None:
        """Hand an option to Slurm as it is."""
        long = f"--{one.option.name}" + ("" if one.value is None else f"={one.value}")
        if long not in self._flags:
            self._flags.append(long)

    def tell_of_part(self, given: Mapping[str, Given]) -> None:
        """The further parts of a heterogeneous job have shapes of their own, and nothing else."""
        for name, one in given.items():
            if name not in ABOUT_SHAPES:
                self._leave(
                    one, "what holds for the first part holds for all", "write it before the first part ends"
                )

    def check(self, form: Form) -> None:
        """What can be told only when the form of the script is known."""
        one = self._given.get("signal")
        if one is None or "signal" not in self.task or form == "copies":
            return
        if not alarm_of(one.value or "").to_script:
            self._differs(one, "the script itself gets the signal, too", "have the script `trap` it")

    # -- one option each -----------------------------------------------------------------------------------

    def _name(self, title: str) -> None:
        one = self._given.get("job-name")
        self.job_name = (one.value if one else None) or title
        if one is not None:
            self.origins["name",] = one
        if one is not None and not is_name(self.job_name):
            self._tell("JC207", one, text=self.job_name, name=as_name(self.job_name))

    def _account(self, one: Given) -> None:
        self._told["SLURM_JOB_ACCOUNT"] = one.value or ""
        self._named("account", one)

    def _partition(self, one: Given) -> None:
        self._told["SLURM_JOB_PARTITION"] = one.value or ""
        if self._queues is None or one.value in self._queues or "queue" in self._refused:
            self._named("queue", one)
            return
        there = f"there are {listing(self._queues)}" if self._queues else "there is none"
        self._tell("JC206", one, reason=f"there is no queue of that name; {there}", advice=_LEAVE_IT)

    def _named(self, key: str, one: Given) -> None:
        if reason := self._refused.get(key):
            self._tell("JC206", one, reason=reason, advice=_LEAVE_IT)
        elif is_name(one.value or ""):
            self.head[key] = one.value
            self.origins[key,] = one
        else:
            self._keep_alone(one, f"there is no {key} of such a name")

    def _array(self, one: Given) -> None:
        self.array = indexes_of(one.value or "")
        self.task["replicas"] = len(self.array.numbers)
        if self.array.at_once:
            self.task["parallelism"] = self.array.at_once
        self.origins["task", "replicas"] = one

    def _begin(self, one: Given) -> None:
        self._start("earliest", moment_of(one.value or "", self._now), one)

    def _deadline(self, one: Given) -> None:
        seconds = self._limit()
        if seconds is None:
            self._leave(one, "without a time limit nobody knows when it has to start", "add `--time`")
            return
        latest = moment_of(one.value or "", self._now, timedelta(seconds=seconds))
        if latest == "+0s":
            raise Wrong("it is earlier than the job could end", "a later moment, or a shorter `--time`")
        self._start("latest", latest, one)

    def _start(self, key: str, moment: str, one: Given) -> None:
        if reason := self._refused.get(f"start.{key}"):
            self._tell("JC206", one, reason=reason, advice=_LEAVE_IT)
            return
        start = self.head.setdefault("start", {})
        start[key] = moment
        self.origins["start",] = one
        if len(start) == 2 and _is_before(start["latest"], start["earliest"]):
            del start[key]
            self._leave(
                one, "the job could never start in time", "give it an earlier begin or a later deadline"
            )

    def _chdir(self, one: Given) -> None:
        self._attributes["cwd"] = one.value
        self.origins["task", "attributes", "cwd"] = one

    def _comment(self, one: Given) -> None:
        self.head["annotations"] = {"comment": one.value}
        self.origins["annotations",] = one

    def _constraint(self, one: Given) -> None:
        if _FEATURES.fullmatch(one.value or ""):
            self.head["requires"] = dict.fromkeys(re.split("[&,]", one.value or ""), True)
            self.origins["requires",] = one
        else:
            self._keep_alone(one, "any node will do")

    def _output(self, one: Given) -> None:
        """Without a file of its own, what goes to stderr goes where stdout goes."""
        keys = ("stdout",) if "error" in self._given else ("stdout", "stderr")
        self._stream(one, keys, ">>", " 2>&1" if len(keys) == 2 else "")

    def _error(self, one: Given) -> None:
        self._stream(one, ("stderr",), "2>>", "")

    def _stream(self, one: Given, keys: tuple[str, ...], sign: str, more: str) -> None:
        name = file_name(one.value or "", self.job_name)
        if not name.is_made:
            self._attributes.update(dict.fromkeys(keys, name.text))
            self.origins["task", "attributes", keys[0]] = one
            return
        self._redirections.append(f'{sign}"{name.text}"{more}')
        self._differs(
            one,
            "the script writes to that file itself, and `jobman logs` does not show it",
            "leave the option out to have it in `jobman logs`, or write a name without the job's number",
        )

    def _input(self, one: Given) -> None:
        name = file_name(one.value or "", self.job_name)
        text = name.text if name.is_made else re.sub(r'([$`"\\])', r"\\\1", name.text)
        self._redirections.append(f'<"{text}"')

    def _export(self, one: Given) -> None:
        words = _by_commas(one.value or "")
        for word in words:
            name, equals, value = word.partition("=")
            if equals and _VARIABLE.fullmatch(name) and not name.startswith("JOBMAN_"):
                self._environment[name] = value.strip("'\"")
            elif equals:
                self._leave(one, f"`{name}` can be no variable of a job", "choose another name")
        if "ALL" not in words:
            self._differs(
                one, "the rest of the environment of submission comes, too", "`unset` it in the script"
            )

    def _hold(self, one: Given) -> None:
        self.head["hold"] = True
        self.origins["hold",] = one

    def _no_requeue(self, one: Given) -> None:
        self.task["on_failure"] = [{"reasons": ["node-lost", "preempted"], "action": "fail-task"}]
        self.origins["task", "on_failure"] = one

    def _signal(self, one: Given) -> None:
        seconds, alarm = self._limit(), alarm_of(one.value or "")
        if seconds is None or seconds <= alarm.seconds or not alarm.seconds:
            self._leave(one, "the time limit is not longer than that", "add a `--time` that is")
            return
        self.task["signal"] = {"name": alarm.name, "before": duration_text(alarm.seconds)}
        self.origins["task", "signal"] = one

    def _limit(self) -> int | None:
        """The time limit in seconds, where there is one that a job may have."""
        one = self._given.get("time")
        seconds = seconds_of(one.value or "") if one else None
        return None if seconds is None or seconds > _LONGEST else seconds

    def _time(self, one: Given) -> None:
        seconds = seconds_of(one.value or "")
        if seconds is not None and seconds > _LONGEST:
            self._leave(one, "a time limit is ten years at most", "write a shorter one, or none")
        elif seconds is not None:
            self._attributes["duration"] = duration_text(seconds)
            self.origins["task", "attributes", "duration"] = one

    # -- telling -------------------------------------------------------------------------------------------

    def _keep_alone(self, one: Given, elsewhere: str) -> None:
        self.keep(one)
        self._tell("JC202", one, engine="Slurm", elsewhere=elsewhere)

    def _leave(self, one: Given, reason: str, advice: str) -> None:
        self._tell("JC201", one, reason=reason, advice=advice)

    def _differs(self, one: Given, difference: str, advice: str) -> None:
        self._tell("JC203", one, difference=difference, advice=advice)

    def _tell(self, code: str, one: Given, **values: Any) -> None:
        self._remarks.add(code, one.place, one.line_text, option=one.written, **values)


_CARRY: dict[str, Callable[[Carrying, Given], None]] = {
    "account": Carrying._account,
    "array": Carrying._array,
    "begin": Carrying._begin,
    "chdir": Carrying._chdir,
    "comment": Carrying._comment,
    "constraint": Carrying._constraint,
    "deadline": Carrying._deadline,
    "error": Carrying._error,
    "export": Carrying._export,
    "hold": Carrying._hold,
    "input": Carrying._input,
    "no-requeue": Carrying._no_requeue,
    "output": Carrying._output,
    "partition": Carrying._partition,
    "signal": Carrying._signal,
    "time": Carrying._time,
}
CARRIED = frozenset((*_CARRY, *ABOUT_SHAPES, "job-name", "requeue", "wrap"))
"""Every option that somebody reads; a test compares it with the table."""


def _is_before(latest: str, earliest: str) -> bool:
    if latest.startswith("+") != earliest.startswith("+"):
        return False  # submission is not now
    if latest.startswith("+"):
        return int(latest[1:-1]) <= int(earliest[1:-1])
    return datetime.fromisoformat(latest) <= datetime.fromisoformat(earliest)


def _by_commas(text: str) -> list[str]:
    """Words between commas that are not in quotes."""
    return [word.strip() for word in re.findall(r"""(?:[^,'"]|'[^']*'|"[^"]*"|['"])+""", text)]
