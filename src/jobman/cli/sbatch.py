"""`jobman sbatch`: a batch script of Slurm, submitted to any engine with the options of sbatch."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jobman.cli.commands import trailing
from jobman.cli.state import Chosen, ExitCode, State, check_engine, misused, say
from jobman.convert.options import Given, Option, Table, Where
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch_options import FATES, SBATCH, VARIABLES
from jobman.convert.words import Word

if TYPE_CHECKING:
    from jobman.client import Client
    from jobman.control.answers import Submission, Submitted
    from jobman.convert import Converted

OWN = (
    Option("engine", words="where the job runs; as `-e` before the command"),
    Option("image", words="the container image of the script"),
    Option("virtual", words="emulated nodes for this job, such as 4x4"),
    Option("no-container", takes="nothing", words="run without a container, whatever the settings say"),
)
"""Options that are jobman's; short ones would be in the way of sbatch's."""
TABLE = Table((*SBATCH.options, *OWN))
_WRAPPED = "#!/bin/sh\n# This script was made of --wrap.\n\n{}\n"
_STDIN = "-"
_ELSEWHERE = ("JC202", "JC205")
"""What is told of other engines than Slurm."""


class Call(NamedTuple):
    """The words of one call, understood."""

    given: tuple[Given, ...]
    script: str | None
    arguments: tuple[str, ...]

    def value(self, name: str) -> str | None:
        return next((one.value for one in reversed(self.given) if one.option.name == name), None)

    def has(self, name: str) -> bool:
        return any(one.option.name == name for one in self.given)


def _declared(function: Callable[..., None]) -> Callable[..., None]:
    """Declare the options of the table, for the help and for completion."""
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    script = _parameter(
        "script",
        Annotated[
            list[str] | None,
            typer.Argument(metavar="FILE [ARGUMENT…]", help="The script and its arguments; else stdin."),
        ],
    )
    parameters = [context, script, *map(_option, TABLE.options)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    return function


def _option(option: Option) -> inspect.Parameter:
    names = [*([f"-{option.short}"] if option.short else []), f"--{option.name}"]
    names += [f"--{name}" for name in option.also]
    panel = "jobman's own" if option in OWN else _capital(FATES[option.fate])
    takes = option.takes != "nothing"
    shown = typer.Option(
        *names, metavar="VALUE" if takes else None, help=_capital(option.words), rich_help_panel=panel
    )
    name = f"option_{option.name.replace('-', '_')}"
    return _parameter(name, Annotated[str | None if takes else bool, shown], None if takes else False)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


@_declared
def sbatch(context: typer.Context, **_declared_only: object) -> None:
    """Submit a batch script of Slurm to any engine: `#SBATCH` lines and the options of sbatch are read.

    Options stand before the script and win over its lines; one that is given nothing (`--constraint=`) takes
    a line back. What cannot be carried over is told on stderr.
    """
    from jobman.cli.convert import tell_remarks

    state: State = context.obj
    form = state.format(None)
    call = _read(trailing(context) or [])
    _answer_at_once(call, context)
    if (engine := call.value("engine")) is not None:
        state.choose(check_engine(engine))
    name, text = _script(call, form)
    found = _converted(name, text, call, state, form)
    tell_remarks(found, form)
    _submit(found, name, call, state, form)


# -- the words ----------------------------------------------------------------------------------------------


def _read(words: list[str]) -> Call:
    remarks = Remarks()
    given, rest = TABLE.read([Word(word, 0, 0) for word in words], Where(), remarks, stops=True)
    if remarks.have_errors():
        for problem in remarks.in_order():
            say(problem.message, problem.advice)
        raise typer.Exit(ExitCode.USAGE)
    words = [word.text for word in rest]
    script = words[0] if words else None
    call = Call(tuple(given), script, tuple(words[1:]))
    if script == ":":
        misused("parts of a heterogeneous job are written as `#SBATCH hetjob` lines", ":")
    if script is not None and call.has("wrap"):
        misused("with it there is no script, and no arguments", "--wrap")
    return call


def _answer_at_once(call: Call, context: typer.Context) -> None:
    if call.has("help") or call.has("usage"):
        typer.echo(context.get_help())
        raise typer.Exit
    if call.has("version"):
        from jobman.version import __version__

        typer.echo(f"jobman {__version__}")
        raise typer.Exit


def _script(call: Call, form: str) -> tuple[str, str]:
    """The name and the text of the script; without a file it is read from standard input."""
    from jobman.cli.submission import read_text

    wrapped = call.value("wrap")
    if wrapped is not None:
        return "wrap", _WRAPPED.format(wrapped)
    if call.script is None or call.script == _STDIN:
        return "sbatch", read_text(_STDIN, form)
    return call.script, read_text(_found(call.script), form)


def _found(script: str) -> str:
    """A script of the folder, or else one on the PATH."""
    import shutil

    if "/" in script or os.path.exists(script):  # noqa: PTH110 - no object is needed for a question
        return script
    return shutil.which(script, mode=os.R_OK) or script


# -- the document -------------------------------------------------------------------------------------------


def _converted(name: str, text: str, call: Call, state: State, form: str) -> Converted:
    from datetime import datetime

    from jobman.convert import convert_sbatch

    is_here = Chosen.engine == "local" and not os.environ.get("JOBMAN_SERVER")
    found = convert_sbatch(
        name,
        text,
        datetime.now().astimezone(),
        arguments=call.arguments,
        given=[*_from_the_shell(), *(one for one in call.given if one.option not in OWN)],
        refused=_refused(Chosen.engine),
        queues=tuple(state.settings(form).site().queues) if is_here else None,
        submit_dir=os.getcwd(),  # noqa: PTH109 - as it is named there
    )
    if Chosen.engine == "slurm":
        found = found._replace(problems=[each for each in found.problems if each.code not in _ELSEWHERE])
    if found.document is not None and (image := call.value("image")):
        found = found._replace(document={"version": 1, "image": image, **found.document})
    return found


def _from_the_shell() -> Iterator[Given]:
    """Options by variables such as SBATCH_PARTITION. One that takes no value is given by any but 0."""
    for name, option in VARIABLES.items():
        value = os.environ.get(name)
        if value is None or (option.takes == "nothing" and value in ("", "0", "no")):
            continue
        is_switch = option.takes == "nothing" or (option.takes == "maybe" and value in ("", "1", "yes"))
        yield Given(option, None if is_switch else value, f"{name}={value}")


def _refused(engine: str) -> dict[str, str]:
    """What the engine does not do at all, with its reason. A shared service has engines of its own."""
    from jobman.engines.matrix import MATRIX

    if os.environ.get("JOBMAN_SERVER") or engine not in MATRIX:
        return {}
    return {name: one.note for name, one in MATRIX[engine].items() if one.how == "refused"}


# -- the job ------------------------------------------------------------------------------------------------


def _submit(found: Converted, name: str, call: Call, state: State, form: str) -> None:
    from jobman.cli.calls import Calling
    from jobman.cli.submission import tell

    asked = found.asked
    if "verbose" in asked:
        sys.stderr.write(found.text())
    request = _request(found, name, call, state, form)
    with Calling(form) as client:
        submitted = client.submit(request)
        if "quiet" not in asked:
            tell(submitted)
        _announce(submitted, asked, form)
        if "wait" in asked and not request.dry_run:
            raise typer.Exit(_await(client, submitted))


def _request(found: Converted, name: str, call: Call, state: State, form: str) -> Submission:
    from msgspec.structs import replace

    from jobman.cli.submission import Wishes, request_of

    wishes = Wishes(
        virtual=call.value("virtual"),
        no_container=call.has("no-container"),
        dry_run="test-only" in found.asked,
    )
    request = request_of(found.text(), f"{name} (converted)", wishes, state, form)
    if Chosen.engine == "slurm" or request.environment is None:
        return request
    # What Slurm told this shell is about another job.
    told = {key: value for key, value in request.environment.items() if not key.startswith("SLURM_")}
    return replace(request, environment=told)


def _announce(submitted: Submitted, asked: Any, form: str) -> None:
    from jobman.cli.state import emit

    if form != "table":
        emit(submitted, form)
        return
    for job in submitted.jobs:
        if "test-only" in asked:
            say(f"{job.name} would be submitted; nothing was")
        elif "parsable" in asked:
            sys.stdout.write(f"{job.id}\n")
        elif "quiet" not in asked:
            sys.stdout.write(f"Submitted batch job {job.id}\n")
    sys.stdout.flush()


def _await(client: Client, submitted: Submitted) -> int:
    from jobman.cli.jobs import exit_code_of

    return max((exit_code_of(client.wait(job.id)) for job in submitted.jobs), default=0)
