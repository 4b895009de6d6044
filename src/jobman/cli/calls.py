"""Calling the service: which one, and what a person is told when it refuses or does not answer."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from jobman.cli.state import INTERRUPTED, Chosen, ExitCode, aimed, emit, say, stop
from jobman.client import Client, Refused, Unreachable

if TYPE_CHECKING:
    from types import TracebackType

    from jobman.control.answers import Failure
    from jobman.settings.kubernetes import Cluster


class Calling:
    """`with Calling(form) as client:` ends the command in the right way where a call does not succeed."""

    def __init__(self, form: str = "table", *, start: bool = True) -> None:
        self._form = form
        self._start = start

    def __enter__(self) -> Client:
        try:
            return open_client(start=self._start)
        except Unreachable as error:
            unreachable(error)
        except Refused as error:
            refused(error.failure, self._form)

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, Refused):
            refused(error.failure, self._form)
        if isinstance(error, Unreachable):
            unreachable(error)
        if isinstance(error, KeyboardInterrupt):
            sys.stderr.write("\n")
            raise SystemExit(INTERRUPTED)


def open_client(*, start: bool = True) -> Client:
    """The shared service that the environment names, or this user's own, which may have to be started.

    With another engine there is no service: then it is the cluster itself.
    """
    if Chosen.engine == "kubernetes":
        return _direct()
    if Chosen.engine in ("slurm", "flux"):
        return _batch()
    return Client.usual() if os.environ.get("JOBMAN_SERVER") else Client.embedded(start=start)


def _direct() -> Client:
    try:
        from jobman.client.direct import DirectClient
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        say("the kubernetes engine needs the package httpx", "pip install 'jobman[kubernetes]'")
        raise SystemExit(ExitCode.UNABLE) from None
    cluster = _cluster()
    path = None if cluster.kubeconfig is None else os.path.expanduser(cluster.kubeconfig)  # noqa: PTH111
    return DirectClient(path, cluster.context, namespace=cluster.namespace)


def _batch() -> Client:
    from jobman.client.batch_opening import open_batch
    from jobman.settings import load_settings
    from jobman.spec.problems import SpecError

    try:
        return open_batch(Chosen.engine, load_settings(Chosen.settings_file).values)
    except SpecError as error:
        stop(error.problems, "table")


def _cluster() -> Cluster:
    from jobman.settings import load_settings
    from jobman.settings.kubernetes import cluster_of
    from jobman.spec.problems import SpecError

    try:
        return cluster_of(load_settings(Chosen.settings_file).values)
    except SpecError as error:
        stop(error.problems, "table")


def refused(failure: Failure, form: str) -> NoReturn:
    """End the command because the service will not or cannot do what was asked."""
    if form != "table":
        failure.message, failure.advice = aimed(failure.message), aimed(failure.advice)
        emit(failure, form)
    elif failure.problems:
        print_found(failure.problems)
    else:
        say(failure.message, failure.advice)
    raise SystemExit(failure.exit)


def unreachable(error: Unreachable) -> NoReturn:
    """End the command because no service answers."""
    say(error.message, error.advice)
    raise SystemExit(ExitCode.UNREACHABLE)


def print_found(problems: list[dict[str, object]]) -> None:
    """Print problems that a service found, as `jobman check` prints its own."""
    import msgspec

    from jobman.cli.problems import print_problems
    from jobman.spec.problems import Problem

    print_problems(msgspec.convert(problems, list[Problem]), error=True)
