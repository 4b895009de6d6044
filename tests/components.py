"""Tests on real components: run where the component is, and always accounted for at the end of the run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from lab.components import Component, State, discover, state

PROPERTY = "component"
_LATE_AT_TIMES = frozenset(("kubernetes", "slurm", "flux", "podman"))
"""Many processes on one busy machine: a test on them has a second try, which the report counts."""
_LAST = 25
"""Lines of what went wrong at the first try."""
OWN_CLUSTER = "JOBMAN_LAB_OWN_CLUSTER"
"""What the lab says of a cluster that is somebody's own, in the place of the lab's."""


class Components:
    """The components of the lab as one run of pytest meets them."""

    def __init__(self, folder: Path) -> None:
        self.known = discover(folder)
        self._states: dict[str, State] = {}
        self._ran: Counter[str] = Counter()
        self._skipped: dict[str, Counter[str]] = {}
        self._own_clusters: dict[str, str] = {}
        self._second_tries: list[str] = []

    def state(self, component: Component) -> State:
        if component.name not in self._states:
            self._states[component.name] = state(component)
        return self._states[component.name]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # Properties travel with the reports, also from the processes of pytest-xdist to the one that prints.
        for item in items:
            names = self._asked_for(item)
            item.user_properties.extend((PROPERTY, name) for name in names)
            if _LATE_AT_TIMES.intersection(names) and item.get_closest_marker("flaky") is None:
                item.add_marker(pytest.mark.flaky(reruns=1))

    def _asked_for(self, item: pytest.Item) -> list[str]:
        names = [name for mark in item.iter_markers("component") for name in mark.args]
        for name in names:
            if name not in self.known:
                raise pytest.UsageError(f"{item.nodeid} asks for the component {name!r}, unknown to lab/")
        return names

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        for name in self._asked_for(item):
            here = self.state(self.known[name])
            if not here.ready:
                pytest.skip(here.reason)
            os.environ.update(here.environment)
            if (own := here.environment.get(OWN_CLUSTER)) is not None:
                item.user_properties.append((_own_cluster_of(name), own))
                _skip_if_only_for_the_lab(item)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == "rerun":
            why = report.longreprtext.splitlines()[-_LAST:]
            self._second_tries += [f"second try of {report.nodeid}", *why]
        told = dict(report.user_properties)
        for name in (str(value) for key, value in report.user_properties if key == PROPERTY):
            if (own := told.get(_own_cluster_of(name))) is not None:
                self._own_clusters[name] = f" on {own}"
            if _ran(report):
                self._ran[name] += 1
            elif report.skipped:
                self._skipped.setdefault(name, Counter())[_reason(report)] += 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        # Outermost, so that it prints after pytest's own last line.
        result = yield
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")  # workers have none
        if terminal and self.known and not session.config.option.collectonly:
            for line in (*self._second_tries, "real components", *self.lines()):
                terminal.write_line(line)
        return result

    def lines(self) -> list[str]:
        """One line per component of the lab."""
        width = max(map(len, self.known))
        return [f"  {name:<{width}}  {self._outcome(each)}" for name, each in self.known.items()]

    def _outcome(self, component: Component) -> str:
        ran, skipped = self._ran[component.name], self._skipped.get(component.name, Counter())
        reasons = "; ".join(skipped)
        where = self._own_clusters.get(component.name, "")
        if ran and skipped:
            return f"ran ({_tests(ran)}){where}, and {_tests(skipped.total())} not run: {reasons}"
        if ran:
            return f"ran ({_tests(ran)}){where}"
        return f"not run: {reasons or self.state(component).reason or 'no selected test asks for it'}"


def _own_cluster_of(component: str) -> str:
    """The property of a test that says on which cluster it met its component, if that is somebody's own."""
    return f"own cluster of {component}"


def _skip_if_only_for_the_lab(item: pytest.Item) -> None:
    """A test needs nothing of a cluster but a namespace, unless it says what keeps it in the lab."""
    if (mark := item.get_closest_marker("lab")) is not None:
        pytest.skip(f"for the lab's cluster alone: {mark.args[0]}")


def _ran(report: pytest.TestReport) -> bool:
    """Whether the test met its component: its body was run, or it broke on the way there."""
    if report.when == "call":
        return not report.skipped or hasattr(report, "wasxfail")
    return report.when == "setup" and report.failed


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", "")) or "skipped without a reason"


def _tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "component(name): needs this real component of lab/")
    config.addinivalue_line("markers", "lab(why): is for the lab's own cluster, and nobody else's")
    config.pluginmanager.register(Components(config.rootpath / "lab"), "components")
