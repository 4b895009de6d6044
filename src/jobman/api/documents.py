"""Documents: reading them, and their problems and plans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jobman.garbage import collector_paused
from jobman.settings import Settings, load_settings
from jobman.spec.load import load_jobs
from jobman.spec.problems import Place, Problem, Problems, SpecError
from jobman.spec.resolve import Job
from jobman.spec.source import Source, read_source

if TYPE_CHECKING:
    from jobman.plan.model import Plan


class JobSpec:
    """A document that was read, with everything that is wrong with it."""

    def __init__(self, source: Source | None, job: Job | None, problems: Problems) -> None:
        self.source = source
        self.job = job
        self._problems = problems

    @property
    def problems(self) -> list[Problem]:
        """Errors and warnings, in the order of the file."""
        return self._problems.in_order()

    @property
    def ok(self) -> bool:
        """Whether there is a plan: warnings do not count."""
        return self.job is not None and not self._problems.has_errors

    def plan(self) -> Plan:
        """The resolved plan; raises SpecError with all problems where there are errors."""
        from jobman.plan.build import build

        if self.job is None or self._problems.has_errors:
            raise SpecError(self.problems)
        with collector_paused():
            return build(self.job)


def load(
    path: str | Path,
    *,
    settings: Settings | str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    strict: bool = False,
) -> JobSpec:
    """Read one document from a file, or from standard input for `-`. Never raises for a wrong document."""
    specs = load_all(path, settings=settings, parameters=parameters, strict=strict)
    if len(specs) == 1:
        return specs[0]
    problems = Problems(strict=strict)
    problems.add("JS115", Place(str(path), 1, 1, 1, 1), count=len(specs))
    return JobSpec(specs[0].source, None, problems)


def load_all(
    path: str | Path,
    *,
    settings: Settings | str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    strict: bool = False,
) -> list[JobSpec]:
    """Read every document of a file; a file that cannot be read is one document with problems."""
    problems = Problems(strict=strict)
    source = read_source(path, problems)
    if source is None:
        return [JobSpec(None, None, problems)]
    return _load_source(source, problems, settings, parameters)


def load_source(
    source: Source,
    *,
    settings: Settings | str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    strict: bool = False,
) -> list[JobSpec]:
    """Read every document of a text that is there already."""
    return _load_source(source, Problems(strict=strict), settings, parameters)


def loads(
    text: str,
    *,
    name: str = "<text>",
    settings: Settings | str | Path | None = None,
    parameters: Mapping[str, object] | None = None,
    strict: bool = False,
) -> JobSpec:
    """Read one document from a text."""
    problems = Problems(strict=strict)
    specs = _load_source(Source(name, text), problems, settings, parameters)
    if len(specs) > 1:
        problems.add("JS115", Place(name, 1, 1, 1, 1), count=len(specs))
    return specs[0]


def _load_source(
    source: Source,
    problems: Problems,
    settings: Settings | str | Path | None,
    parameters: Mapping[str, object] | None,
) -> list[JobSpec]:
    if not isinstance(settings, Settings):
        settings = load_settings(settings)
    overrides = {name: _as_typed(value) for name, value in (parameters or {}).items()}
    with collector_paused():
        jobs = load_jobs(source, settings.site(), problems, overrides)
    return [JobSpec(source, job, problems) for job in jobs] or [JobSpec(source, None, problems)]


def _as_typed(value: object) -> str:
    """A parameter as it would stand behind `--set name=`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
