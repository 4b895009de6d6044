"""The way of a copy from fork to exec, and of its hooks: streams, limits, rights, steps, command."""

from __future__ import annotations

import errno
import os
import signal
import stat
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from jobman.engines.endings import why
from jobman.engines.local import records
from jobman.engines.local.cgroups import Cage, enter
from jobman.engines.local.limits import drop_privileges, missing_cores, pin, set_umask, user_groups
from jobman.engines.local.orders import CannotRun, Order
from jobman.engines.local.records import Refusal, Started, path_of
from jobman.engines.local.steps import carry_out
from jobman.engines.local.trees import MARKER, Process, own_process

NOT_FOUND = 127
NOT_RUNNABLE = 126
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

_OFTEN_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
_STREAM = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY


def start_copy(order: Order, shim: Process, notices: int) -> int:
    """Fork the process of a copy and return its pid; whether it won the right to start is in its records."""
    return os.fork() or _copy(order, shim, notices)


def start_hook(order: Order, argv: tuple[str, ...]) -> int:
    """Fork a hook of a copy, with the copy's streams, limits and rights, and return its pid."""
    return os.fork() or _hook(order, argv)


def _hook(order: Order, argv: tuple[str, ...]) -> NoReturn:
    try:
        _detach()
        _settle(order)
        execute(argv, order)
    except CannotRun as problem:
        os.write(2, f"{problem.message}\n".encode())
        os._exit(problem.exit_code)
    except BaseException:
        _fail()


def _copy(order: Order, shim: Process, notices: int) -> NoReturn:
    try:
        started = _started(order, shim)
        descriptor = records.start(order.folder, started)
        if descriptor is None:
            os._exit(NOT_RUNNABLE)
        _tell(notices, started)
        _detach()
        try:
            _live(order)
        except CannotRun as problem:
            records.refuse(descriptor, Refusal(problem.reason, problem.message))
            os._exit(problem.exit_code)
    except BaseException:
        _fail()


def _fail() -> NoReturn:
    os.write(2, traceback.format_exc().encode())
    os._exit(NOT_RUNNABLE)


def _detach() -> None:
    os.setsid()
    # What is caught exec undoes, but not what a shell that went to the background, nohup or Python ignores.
    for number in _OFTEN_IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _started(order: Order, shim: Process) -> Started:
    notes = []
    if lacking := missing_cores(order):
        notes.append(f"not pinned to cores that are not available here: {', '.join(map(str, lacking))}")
    cage = Cage(None, None) if order.cgroup is None else enter(order.cgroup, order.memory)
    at, clock = records.now()
    pid, ticks = own_process()
    return Started(
        id=order.id,
        copy=order.copy,
        pid=pid,
        ticks=ticks,
        boot=records.boot_id(),
        shim=shim,
        at=at,
        clock=clock,
        memory_cgroup=str(cage.memory) if cage.memory else None,
        freezer_cgroup=str(cage.freezer) if cage.freezer else None,
        notes=tuple(notes),
    )


def _tell(notices: int, started: Started) -> None:
    with suppress(OSError):  # the launcher is dead or behind; it will find the record
        os.write(notices, b'{"started":' + records.encode(started) + b"}\n")


def _live(order: Order) -> NoReturn:
    _settle(order)
    carry_out(order.steps, order.cwd)
    if order.before:
        _run_before(order)
    if not order.argv:
        os._exit(0)
    execute(order.argv, order)


def _settle(order: Order) -> None:
    """Everything between a fork of the shim and a process of the copy."""
    pin(order)
    set_umask(order)
    streams = [_own_stream(order, kind) for kind in ("out", "err")]
    if order.scratch is not None:
        _make_scratch(order, order.scratch)
    drop_privileges(order)
    try:
        os.chdir(order.cwd)
    except OSError as error:
        raise CannotRun(f"the folder to run in, {order.cwd}, cannot be entered: {why(error)}") from None
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    opened = [null, *(own if own is not None else _named_stream(order, n) for n, own in enumerate(streams))]
    for number, descriptor in enumerate(opened):
        os.dup2(descriptor, number)


def _own_stream(order: Order, kind: str) -> int | None:
    """The file in the copy's folder, opened with our rights and given to the copy's user."""
    if (order.stdout if kind == "out" else order.stderr) is not None:
        return None
    path = path_of(order.folder, order.copy, kind)
    descriptor = _open_stream(path)
    if order.uid is not None and os.geteuid() == 0:
        os.fchown(descriptor, order.uid, user_groups(order)[0])
    return descriptor


def _named_stream(order: Order, number: int) -> int:
    """A file that the order names, opened with the rights of the copy's user."""
    path = Path(order.cwd) / str((order.stdout, order.stderr)[number])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRun(f"cannot write output to {path}: {why(error)}") from None
    return _open_stream(str(path))


def _open_stream(path: str) -> int:
    try:
        descriptor = os.open(path, _STREAM, 0o666)
    except OSError as error:
        raise CannotRun(f"cannot write output to {path}: {why(error)}") from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode) and _is_full(descriptor):
        raise CannotRun(f"cannot write output to {path}: {os.strerror(errno.ENOSPC).lower()}")
    return descriptor


def _is_full(descriptor: int) -> bool:
    system = os.fstatvfs(descriptor)
    free = system.f_bfree if os.geteuid() == 0 else system.f_bavail
    return system.f_blocks > 0 and free == 0


def _make_scratch(order: Order, scratch: str) -> None:
    try:
        Path(scratch).mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not by its name: somebody might have put a link to another folder there.
        folder = os.open(scratch, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.fchmod(folder, 0o700)
        if order.uid is not None and os.geteuid() == 0:
            os.fchown(folder, order.uid, user_groups(order)[0])
        os.close(folder)
    except OSError as error:
        raise CannotRun(f"the scratch folder {scratch} cannot be made: {why(error)}") from None


def _run_before(order: Order) -> None:
    pid = os.fork()
    if not pid:
        try:
            execute(order.before, order)
        except CannotRun as problem:
            os.write(2, f"{problem.message}\n".encode())
            os._exit(problem.exit_code)
        except BaseException:
            _fail()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        name = signal.Signals(-code).name
        raise CannotRun(f"the `before` hook ({order.before[0]}) was ended by {name}", exit_code=128 - code)
    if code:
        raise CannotRun(f"the `before` hook ({order.before[0]}) ended with exit code {code}", exit_code=code)


def execute(argv: tuple[str, ...], order: Order) -> NoReturn:
    """Become the command; raises CannotRun, in a user's words, where that cannot be."""
    variables = {**order.environment, MARKER: order.id}
    arguments = [_bytes(argument) for argument in argv]
    environment = {_bytes(name): _bytes(value) for name, value in variables.items()}
    search = order.environment.get("PATH", DEFAULT_PATH)
    failure: tuple[str, OSError] | None = None
    for path in _candidates(argv[0], search):
        try:
            os.execve(_bytes(path), arguments, environment)
        except OSError as error:
            # What is there and cannot be run says more than the places where nothing is.
            if failure is None and (
                os.access(path, os.F_OK) or ("/" in argv[0] and error.errno != errno.ENOENT)
            ):
                failure = path, error
        except ValueError as error:
            raise CannotRun(f"the command `{argv[0]}` cannot be run: {error}") from None
    if failure is None:
        raise CannotRun(_not_found(argv[0], order.cwd, search), exit_code=NOT_FOUND)
    raise CannotRun(_not_runnable(*failure), exit_code=NOT_RUNNABLE)


def _candidates(name: str, search: str) -> list[str]:
    if "/" in name:
        return [name]
    return [f"{folder or '.'}/{name}" for folder in search.split(":")] if name else []


def _not_found(name: str, cwd: str, search: str) -> str:
    if not name:
        return "the command is an empty text"
    if "/" in name:
        return f"the command `{name}` does not exist" + ("" if name.startswith("/") else f" in {cwd}")
    return f"the command `{name}` was not found in PATH ({search})"


_ADVICE = {
    errno.EACCES: "may not be executed; `chmod +x` would allow it",
    errno.ENOEXEC: "is not a program; a script begins with a line such as `#!/bin/sh`",
    errno.ENOENT: "names an interpreter that does not exist; see its first line",
    errno.E2BIG: "was given more arguments and variables than the system allows",
    errno.ETXTBSY: "is being written to",
}


def _not_runnable(path: str, error: OSError) -> str:
    if Path(path).is_dir():
        return f"the command `{path}` is a folder"
    return f"the command `{path}` " + _ADVICE.get(error.errno or 0, f"cannot be run: {why(error)}")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
