"""What Flux says of a job, carried into the keys of a document; of directives and of jobspecs alike."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime
from typing import Any, NamedTuple

from jobman.convert.outcome import as_name, is_name
from jobman.convert.remarks import Remarks
from jobman.convert.values import Wrong, alarm_of, duration_text
from jobman.convert.writing import Path
from jobman.spec.problems import Place

_FSD = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 10 * 366 * 86400
_PROPERTY = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_OURS = ("FLUX_", "JOBMAN_")
_OF_THE_SHELL = ("PWD", "OLDPWD", "SHLVL", "_")


class Told(NamedTuple):
    """Something that was written, as messages name it."""

    written: str
    place: Place | None
    line_text: str = ""


def seconds_of(text: str, plain: str = "s") -> float | None:
    """Seconds of `1.5h`; a bare number has the unit `plain`. None where there is no limit."""
    found = _FSD.fullmatch(text)
    if text in ("inf", "infinity", "0"):
        return None
    if not found:
        raise Wrong("it is no time", "a number with s, m, h or d, such as 30m or 1.5h")
    return float(found[1]) * _UNITS[found[2] or plain] or None


class FluxKeys:
    """Collects the keys; each method carries one thing."""

    def __init__(self, remarks: Remarks) -> None:
        self._remarks = remarks
        self._flags: list[str] = []
        self._attributes: dict[str, Any] = {}
        self.environment: dict[str, str] = {}
        self.seconds: float | None = None
        self.job_name = ""
        self.head: dict[str, Any] = {}
        self.task: dict[str, Any] = {}
        self.origins: dict[Path, Told] = {}

    @property
    def attributes(self) -> dict[str, Any]:
        found = dict(self._attributes)
        if self.environment:
            found["environment"] = self.environment
        if self._flags:
            found["flags"] = {"flux": self._flags}
        return found

    def keep(self, flag: str, told: Told, elsewhere: str) -> None:
        """Hand an option to Flux as it is."""
        self._flags.append(flag)
        self.tell("JC202", told, engine="Flux", elsewhere=elsewhere)

    def name(self, text: str, told: Told) -> None:
        self.job_name = text
        self.origins["name",] = told
        if not is_name(text):
            self.tell("JC207", told, text=text, name=as_name(text))

    def named(self, key: str, text: str, flag: str, told: Told) -> None:
        """A queue or a bank."""
        if is_name(text):
            self.head[key] = text
            self.origins[key,] = told
        else:
            self.keep(f"--{flag}={text}", told, f"there is no {key} of such a name")

    def duration(self, seconds: float | None, told: Told) -> None:
        self.seconds = seconds
        if seconds is not None and seconds > _LONGEST:
            self.leave(told, "a time limit is ten years at most", "write a shorter one, or none")
        elif seconds is not None:
            self._attributes["duration"] = duration_text(max(1, round(seconds)))
            self.origins["task", "attributes", "duration"] = told

    def begin(self, moment: float, told: Told) -> None:
        """A moment in seconds since 1970."""
        start = datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
        self.head["start"] = {"earliest": start}
        self.origins["start",] = told

    def earliest(self, moment: str, told: Told) -> None:
        self.head["start"] = {"earliest": moment}
        self.origins["start",] = told

    def cwd(self, text: str, told: Told) -> None:
        self._attributes["cwd"] = text
        self.origins["task", "attributes", "cwd"] = told

    def stream(self, key: str, path: str, told: Told) -> None:
        """Only a name without the job's id can be known beforehand."""
        if "{{" in path:
            self.leave(told, "the name is known only when the job runs", "`jobman logs` shows the output")
            return
        self._attributes[key] = path
        if key == "stdout":
            self._attributes.setdefault("stderr", path)
        self.origins["task", "attributes", key] = told

    def variable(self, name: str, value: str, told: Told) -> None:
        if name.startswith(_NOT_OURS) or name in _OF_THE_SHELL:
            return  # what Flux or the shell set for themselves is no wish of the user's
        if _VARIABLE.fullmatch(name):
            self.environment[name] = value
        else:
            self.leave(told, f"`{name}` can be no variable of a job", "choose another name")

    def properties(self, names: list[str], text: str, told: Told) -> None:
        if names and all(_PROPERTY.fullmatch(name) for name in names):
            self.head["requires"] = {**self.head.get("requires", {}), **dict.fromkeys(names, True)}
            self.origins["requires",] = told
        else:
            self.keep(f"--requires={text}", told, "any node will do")

    def alarm(self, text: str, seconds: float, told: Told) -> None:
        if self.seconds is None or self.seconds <= seconds:
            self.leave(told, "the time limit is not longer than that", "give it a time limit that is")
            return
        name = alarm_of(text).name
        self.task["signal"] = {"name": name, "before": duration_text(max(1, round(seconds)))}
        self.origins["task", "signal"] = told

    def leave(self, told: Told, reason: str, advice: str) -> None:
        self.tell("JC201", told, reason=reason, advice=advice)

    def tell(self, code: str, told: Told, **values: Any) -> None:
        self._remarks.add(code, told.place, told.line_text, option=told.written, **values)


USR1 = signal.SIGUSR1.value
