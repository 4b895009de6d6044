"""Submitting documents and commands: the request is made here, and the answer printed.

This is the quickest way through jobman. The text of a document goes to the service as it is and is read
there; here the language is imported only where something is wrong, or where `-r` is more than a name.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from jobman.cli.calls import Calling, print_found
from jobman.cli.draft import SOURCE, draft
from jobman.cli.state import State, emit, misused, say, stop, typed
from jobman.control.answers import Submission, Submitted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobman.client import Client

_LONGEST = 16 * 1024 * 1024
_STDIN = "-"
_OF_A_COMMAND = {
    "-i": "image",
    "-r": "flavor",
    "--duration": "duration",
    "--queue": "queue",
    "--account": "account",
}
_MOST_TOLD = 10
"""Jobs of one submission whose start is told one by one."""


class Wishes(NamedTuple):
    """What was asked for on the command line of `submit` or `run`."""

    files: tuple[str, ...] = ()
    command: list[str] | None = None
    image: str | None = None
    flavor: str | None = None
    duration: str | None = None
    queue: str | None = None
    account: str | None = None
    name: str | None = None
    parameters: Mapping[str, str] = {}
    virtual: str | None = None
    hold: bool = False
    no_container: bool = False
    dry_run: bool = False
    reservation: str | None = None
    what_if: bool = False
    keep_logs: str | None = None


def requests(wishes: Wishes, state: State, form: str) -> list[Submission]:
    """The requests to the service, one per document."""
    if (wrong := mistake(wishes)) is not None:
        misused(*wrong)
    common = _common(wishes, state, form)
    if wishes.command:
        return [_command(wishes, common, state, form)]
    return [
        Submission(
            document=read_text(path, form),
            file="<stdin>" if path == _STDIN else path,
            parameters=dict(wishes.parameters),
            **common,
        )
        for path in wishes.files
    ]


def request_of(document: str, file: str, wishes: Wishes, state: State, form: str) -> Submission:
    """The request for a document that another command made; messages name it by its file."""
    return Submission(document=document, file=file, **_common(wishes, state, form))


def send(client: Client, wanted: list[Submission], *, driven: bool = False) -> list[Submitted]:
    """Submit everything, or nothing where one of several is refused; `driven` by us, if need be."""
    if len(wanted) > 1 and not (wanted[0].dry_run or wanted[0].what_if):
        for one in wanted:
            client.submit(_as_trial(one))
    return [client.submit(one, driven=driven) for one in wanted]


def submit(wishes: Wishes, state: State, form: str) -> list[Submitted]:
    """Do what `jobman submit` does, but for following the output."""
    wanted = requests(wishes, state, form)
    with Calling(form) as client:
        found = send(client, wanted)
    tell(*found)
    if form != "table":
        emit(found[0] if len(found) == 1 else found, form)
    elif wishes.what_if:
        _print_outlook(found)
    elif wishes.dry_run:
        _print_trial(wanted, found)
    else:
        announce(found)
    return found


def tell(*found: Submitted) -> None:
    """Print warnings and notes of the service, which are not the answer."""
    for answer in found:
        if answer.warnings:
            print_found(answer.warnings)
    for note in dict.fromkeys(note for answer in found for note in answer.notes):
        say(note)


def announce(found: list[Submitted]) -> None:
    """Print the jobs that were made, and what to do next."""
    jobs = [job for answer in found for job in answer.jobs]
    sys.stdout.write("".join(f"{job.id}  {job.name}\n" for job in jobs))
    sys.stdout.flush()
    foretell(found)
    if len(jobs) == 1:
        say(f"follow it with `{typed(f'logs -f {jobs[0].id}')}`")


def foretell(found: list[Submitted], *, also_now: bool = True) -> None:
    """Print when jobs start, as far as the service could say; `also_now` of those that do not wait at all."""
    from jobman.cli.estimates import is_now, sentence

    names, now = _names(found), time.time()
    told = [estimate for answer in found for estimate in answer.estimates]
    estimates = [estimate for estimate in told if also_now or not is_now(estimate, now)]
    for estimate in estimates[:_MOST_TOLD]:
        say(sentence(estimate) if len(names) == 1 else f"{names[estimate.job]}: {sentence(estimate)}")
    if len(estimates) > _MOST_TOLD:
        say(f"… and {len(estimates) - _MOST_TOLD:,} more; `jobman why JOB` says when each of them starts")


def _print_outlook(found: list[Submitted]) -> None:
    """When jobs would start, and what would make it sooner."""
    from jobman.cli.estimates import sentence
    from jobman.cli.tables import Cell, print_facts

    names = _names(found)
    for estimate in (estimate for answer in found for estimate in answer.estimates):
        title, words = names.get(estimate.job, "job"), sentence(estimate, would=True)
        print_facts([(title, words), ("try", Cell(estimate.suggestion, "cyan"))])


def _names(found: list[Submitted]) -> dict[str, str]:
    return {job.id: job.name for answer in found for job in answer.jobs}


def _print_trial(wanted: list[Submission], found: list[Submitted]) -> None:
    """The document of a command, and in words what would happen."""
    for one, answer in zip(wanted, found, strict=True):
        if one.file == SOURCE:
            sys.stdout.write(one.document)
        for job in answer.jobs:
            replicas = sum(count for state, count in job.counts.items() if state != "retried")
            size = f" with {replicas:,} replica{'s' * (replicas != 1)}" if replicas else ""
            say(f"{job.name}{size} would be submitted; nothing was{_because(job.reason)}")


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


# -- requests -----------------------------------------------------------------------------------------------


def mistake(wishes: Wishes) -> tuple[str, str] | None:
    """What was used wrongly, and the option; None for a sound use."""
    if wishes.files and wishes.command is not None:
        return "give a document, or a command behind --, not both", "FILE"
    if not wishes.files and not wishes.command:
        return "give a document, or a command behind --", "FILE"
    if wishes.files and (
        given := [option for option, field in _OF_A_COMMAND.items() if getattr(wishes, field)]
    ):
        return "it is for a command behind --; a document says this itself", ", ".join(given)
    if len(wishes.files) > 1 and wishes.name:
        return "one name is not enough for several documents", "-j"
    if wishes.what_if and (wishes.dry_run or wishes.hold):
        return "nothing is submitted, so --dry-run and --hold have no meaning with it", "--what-if"
    return None


def _common(wishes: Wishes, state: State, form: str) -> dict[str, Any]:
    text = None if state.settings_file is None else _read_settings(state, form)
    return {
        "settings": text,
        "settings_file": state.settings_file,
        "name": None if wishes.command else wishes.name,
        "cwd": os.getcwd(),  # noqa: PTH109 - pathlib costs more than all the rest of this function
        "environment": environment(),
        "virtual": wishes.virtual,
        "hold": wishes.hold,
        "no_container": wishes.no_container,
        "dry_run": wishes.dry_run,
        "reservation": wishes.reservation,
        "what_if": wishes.what_if,
        "keep_logs": wishes.keep_logs,
    }


def environment() -> dict[str, str] | None:
    """The environment of submission, for a service of this very user; another one must not see it."""
    if os.environ.get("JOBMAN_SERVER"):
        return None
    return {name: value for name, value in os.environ.items() if _is_text(name) and _is_text(value)}


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _command(wishes: Wishes, common: dict[str, Any], state: State, form: str) -> Submission:
    from jobman.cli.flavors import default_flavor, written_flavor

    flavor = wishes.flavor
    if flavor is not None and (written := written_flavor(flavor, state, form)) is not None:
        flavor = written.name
        common |= {"settings": written.settings, "settings_file": "-r"}
    document = draft(
        wishes.command or [],
        name=wishes.name,
        image=wishes.image,
        flavor=flavor,
        duration=wishes.duration,
        queue=wishes.queue,
        account=wishes.account,
        default_flavor=flavor is None and default_flavor(state, form),
        parameters=wishes.parameters,
    )
    return Submission(document=document, file=SOURCE, **common)


def _as_trial(one: Submission) -> Submission:
    from msgspec.structs import replace

    return replace(one, dry_run=True)


# -- files --------------------------------------------------------------------------------------------------


def read_text(path: str, form: str) -> str:
    """The text of a document; what is no text ends the command with the message that `check` would give."""
    data = _read_bytes(path)
    text = None if data is None else _decoded(data)
    if text is None:
        _unreadable(path, data, form)
    return text


def _decoded(data: bytes) -> str | None:
    if len(data) > _LONGEST or b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _read_bytes(path: str) -> bytes | None:
    if path == _STDIN:
        return sys.stdin.buffer.read(_LONGEST + 1)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - without pathlib, for the same reason as above
            return file.read(_LONGEST + 1)
    except (OSError, ValueError):
        return None


def _unreadable(path: str, data: bytes | None, form: str) -> NoReturn:
    from jobman.spec.problems import Problems
    from jobman.spec.source import decode_source, read_source

    problems = Problems()
    if data is None:
        read_source(path, problems)
    else:
        decode_source("<stdin>" if path == _STDIN else path, data, problems)
    stop(problems.in_order(), form)


def _read_settings(state: State, form: str) -> str:
    data = _read_bytes(str(state.settings_file))
    text = None if data is None else _decoded(data)
    if text is None:
        state.settings(form)
        raise AssertionError("settings that cannot be read have ended the command")
    return text
