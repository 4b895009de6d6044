"""`jobman simulate`: a trace, or what the service has run, replayed under policies side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobman.cli.options import Output, a_moment
from jobman.cli.state import ExitCode, State, emit, misused, say, stop

if TYPE_CHECKING:
    from jobman.cli.simulated import Run
    from jobman.plan.nodes import ClusterNode
    from jobman.sched.queues import Queue
    from jobman.sim.cluster import Machine
    from jobman.sim.outcome import Outcome
    from jobman.sim.trace import Trace

RECORDED = "as it was"
_PICTURES = ".svg"


def simulate(
    context: typer.Context,
    trace: Annotated[
        str | None,
        typer.Argument(metavar="TRACE", help="A trace in SWF, gzipped or not; - is standard input."),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="fcfs, easy, easy-sjbf, conservative or hybrid:K; several are compared.",
        ),
    ] = None,
    processors: Annotated[
        int | None, typer.Option("--processors", metavar="N", min=1, help="Instead of what the trace says.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="FILE", help="Nodes to replay on, in a file.")
    ] = None,
    from_history: Annotated[
        bool, typer.Option("--from-history", help="Replay what the service has run.")
    ] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="Of the history: 30d, or 2026-03-01.")
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast/--no-forecast", help="Whether jobs are told what to expect.")
    ] = True,
    fairness: Annotated[bool, typer.Option("--fairness", help="Tell how each user fared.")] = False,
    starts: Annotated[
        Path | None, typer.Option("--starts", metavar="OUT.csv", help="Write the start of every job.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="OUT.svg", help="Draw use and queue over time.")
    ] = None,
    gantt: Annotated[
        Path | None, typer.Option("--gantt", metavar="OUT.svg", help="Draw which job ran where and when.")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="WHEN", help="Draw from here: 30d into the trace.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="WHEN", help="Draw until here.")] = None,
    output: Output = None,
) -> None:
    """Replay a trace with the scheduler: waits, slowdowns, utilisation, and what its promises were worth."""
    from jobman.cli.simulated import Run, data_of, print_runs, tell_left_out

    state: State = context.obj
    form = state.format(output)
    _check_use(trace, from_history, since, processors, cluster)
    _check_files(starts, plot, gantt)
    queues = _queues(policies or ["easy"])
    with _told():
        found = _history(since, state, form) if from_history else _read(trace or "-")
        machine = _machine(found, processors, cluster, form, from_history=from_history)
        window = _window(begin, end, found)
        runs = [
            Run.of(outcome, seconds, fairness=fairness)
            for outcome, seconds in _replays(
                found, machine, queues, keep_places=gantt is not None, forecast=forecast
            )
        ]
    if not runs[0].outcome.jobs:
        tell_left_out(found, runs)
        say("no job of it could ever start on this machine", "give it more processors, or larger nodes")
        raise typer.Exit(ExitCode.DOCUMENT)
    if processors is None and cluster is None:
        # On the machine of the trace, what really happened may stand beside the policies.
        runs = [*_recorded(runs[0].outcome, fairness=fairness), *runs]
    if form == "table":
        print_runs(found, machine, runs)
    else:
        emit(data_of(found, machine, runs), form)
    outcomes = [run.outcome for run in runs]
    if plot is not None or gantt is not None:
        _check_window(begin, window, outcomes)
    _write(found, outcomes, starts, plot, gantt, window)
    if any(run.summary.promises.broken for run in runs):
        say("the scheduler broke guarantees that it had given")
        raise typer.Exit(ExitCode.FAILED)


def _check_use(
    trace: str | None, from_history: bool, since: str | None, processors: int | None, cluster: str | None
) -> None:
    if from_history == (trace is not None):
        misused("give either a trace or --from-history", "TRACE")
    if since is not None and not from_history:
        misused("only a history has a since; --from and --to choose what is drawn of a trace", "--since")
    if processors is not None and cluster is not None:
        misused("give either --processors or --cluster", "--cluster")


def _check_files(starts: Path | None, plot: Path | None, gantt: Path | None) -> None:
    """Complain before a long replay, not behind it."""
    for picture, option in ((plot, "--plot"), (gantt, "--gantt")):
        if picture is not None and picture.suffix != _PICTURES:
            misused(f"the name must end in {_PICTURES}: pictures are drawn as SVG", option)
    for path in (starts, plot, gantt):
        if path is not None and not path.absolute().parent.is_dir():
            say(f"{path} cannot be written: there is no folder {path.parent}", "make it, or name another one")
            raise typer.Exit(ExitCode.FAILED)


def _queues(names: Sequence[str]) -> dict[str, Queue]:
    from jobman.sim.policies import policy
    from jobman.sim.trace import TraceError

    try:
        return {name: policy(name) for name in names}
    except TraceError as error:
        misused(f"{error.message}; {error.advice}", "--policy")


@contextmanager
def _told() -> Iterator[None]:
    """End the command where a trace cannot be used."""
    from jobman.sim.trace import TraceError

    try:
        yield
    except TraceError as error:
        say(error.message, error.advice)
        raise typer.Exit(ExitCode.DOCUMENT) from None


# -- what is replayed, and where ---------------------------------------------------------------------------


def _read(path: str) -> Trace:
    from jobman.sim.swf import read_swf

    return read_swf(path)


def _history(since: str | None, state: State, form: str) -> Trace:
    from jobman.api.history import read_history
    from jobman.cli.calls import Calling

    after = a_moment(since, "--since")
    with Calling(form) as client, _progress("reading", None) as tell:
        return read_history(client, since=after, settings=state.settings(form), tell=tell)


def _machine(
    trace: Trace, processors: int | None, path: str | None, form: str, *, from_history: bool
) -> Machine:
    from jobman.sim.cluster import cluster, machine_of, one_node

    if path is not None:
        return cluster(_nodes(path, form))
    if processors is not None:
        return one_node(processors)
    return cluster(_own_nodes(form)) if from_history else machine_of(trace)


def _nodes(path: str, form: str) -> list[ClusterNode]:
    from jobman.plan.nodes import read_nodes
    from jobman.spec.problems import SpecError

    try:
        return read_nodes(path)
    except SpecError as error:
        stop(error.problems, form)


def _own_nodes(form: str) -> list[ClusterNode]:
    """The nodes that the service has now."""
    from jobman.cli.calls import Calling
    from jobman.plan.nodes import ClusterNode

    with Calling(form) as client:
        return [
            ClusterNode(name=node.name, amounts=dict(node.amounts), facts=node.facts, labels=node.labels)
            for node in client.nodes()
        ]


def _window(begin: str | None, end: str | None, trace: Trace) -> tuple[float | None, float | None]:
    """The part of a trace that is drawn."""
    first, last = _into(begin, trace, "--from"), _into(end, trace, "--to")
    if first is not None and last is not None and first >= last:
        misused(f"{end} is not behind --from {begin}", "--to")
    return first, last


def _check_window(
    begin: str | None, window: tuple[float | None, float | None], outcomes: Sequence[Outcome]
) -> None:
    """Draw nothing where nothing is to be seen."""
    from jobman.cli.times import length

    first = min(outcome.span[0] for outcome in outcomes)
    last = max(outcome.span[1] for outcome in outcomes)
    if window[0] is not None and window[0] >= last:
        misused(
            f"{begin} is behind the end: the last job ended {length(last - first)} into the trace", "--from"
        )
    if window[1] is not None and window[1] <= first:
        misused("it is before the first job", "--to")


def _into(text: str | None, trace: Trace, option: str) -> float | None:
    """A moment of a trace: so far into it, or a date where it is known when it began."""
    from jobman.cli.times import parse_length

    if text is None:
        return None
    length = parse_length(text)
    if length is not None:
        return trace.jobs[0].submit + length
    if trace.began is None:
        misused(f"'{text}' is no length of time such as 30d, and the trace has no dates", option)
    return (a_moment(text, option) or 0.0) - trace.began


# -- replaying -----------------------------------------------------------------------------------------------


def _replays(
    trace: Trace, machine: Machine, queues: dict[str, Queue], *, keep_places: bool, forecast: bool
) -> Iterator[tuple[Outcome, float]]:
    """Each replay, and the seconds that it took; forecasts are made beside it."""
    from time import perf_counter

    from jobman.sim.expectations import foresee
    from jobman.sim.replay import replay

    for name, queue in queues.items():
        with _progress(name, len(trace.jobs)) as tell:
            began = perf_counter()
            outcome = replay(trace, machine, queue, policy=name, tell=tell, keep_places=keep_places)
            seconds = perf_counter() - began
        if forecast:
            with _progress(f"{name}, forecasts", len(outcome.jobs)) as tell:
                outcome.expectations = foresee(outcome, machine, queue, tell=tell)
        yield outcome, seconds


def _recorded(replayed: Outcome, *, fairness: bool) -> list[Run]:
    from jobman.cli.simulated import Run as Made
    from jobman.sim.outcome import recorded

    outcome = recorded(replayed, RECORDED)
    return [] if outcome is None else [Made.of(outcome, None, fairness=fairness)]


@contextmanager
def _progress(words: str, total: int | None) -> Iterator[Callable[[int], None] | None]:
    """A bar on stderr where a terminal shows it; what it is to be told, or None."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda done: bar.update(task, completed=done)


# -- files ---------------------------------------------------------------------------------------------------


def _write(
    trace: Trace,
    outcomes: Sequence[Outcome],
    starts: Path | None,
    plot: Path | None,
    gantt: Path | None,
    window: tuple[float | None, float | None],
) -> None:
    from jobman.sim.charts import chart
    from jobman.sim.gantt import gantt as drawn
    from jobman.sim.starts import starts_csv

    if starts is not None:
        _save(starts, starts_csv(outcomes))
    title = Path(trace.name).name
    if plot is not None:
        _save(plot, chart(outcomes, title, *window))
    if gantt is not None:
        replayed = [outcome for outcome in outcomes if outcome.policy != RECORDED]
        for outcome in replayed:
            path = gantt if len(replayed) == 1 else gantt.with_stem(f"{gantt.stem}-{_plain(outcome.policy)}")
            _save(path, drawn(outcome, title, *window))


def _plain(policy: str) -> str:
    return policy.replace(":", "-")


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        say(f"{path} cannot be written: {error.strerror}")
        raise typer.Exit(ExitCode.FAILED) from None
    say(f"wrote {path}")
