"""`jobman completion`: scripts for bash, zsh and fish, made from the commands themselves.

The scripts know every command and option by heart, so that a press of the tab key starts no Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import typer

from jobman.cli.state import FORMATS

_BASH_FILES = 'mapfile -t COMPREPLY < <(compgen -f -- "$current")'
_WORDS = {"--output": FORMATS}


def register(app: typer.Typer) -> None:
    app.command("completion")(completion)


class _Option(NamedTuple):
    names: tuple[str, ...]
    takes_value: bool
    words: tuple[str, ...]
    help: str


class _Command(NamedTuple):
    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete in.")],
) -> None:
    """Print a completion script: `source <(jobman completion bash)`."""
    from jobman.cli.main import app

    write = _WRITERS.get(shell)
    if write is None:
        raise typer.BadParameter(f"'{shell}' is not one of {', '.join(_WRITERS)}", param_hint="SHELL")
    group: Any = typer.main.get_command(app)
    commands = [_describe(name, command) for name, command in group.commands.items() if not command.hidden]
    typer.echo("\n".join(write(_describe("", group), commands)))


def _describe(name: str, command: Any) -> _Command:
    options = tuple(_option(param) for param in command.params if param.param_type_name == "option")
    words = {"completion": tuple(_WRITERS), "help": _codes()}.get(name, ())
    return _Command(name, (command.help or "").split("\n")[0].rstrip("."), options, words)


def _option(param: Any) -> _Option:
    names = tuple(param.opts)
    words = next((_WORDS[name] for name in names if name in _WORDS), ())
    return _Option(names, not param.is_flag, words, (param.help or "").rstrip("."))


def _codes() -> tuple[str, ...]:
    from jobman.spec.codes import CODES

    return tuple(CODES)


# -- bash ---------------------------------------------------------------------------------------------------


def _bash(root: _Command, commands: list[_Command]) -> Iterator[str]:
    yield "_jobman() {"
    yield '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" i'
    yield "  for ((i = 1; i < COMP_CWORD; i++)); do"
    yield '    case "${COMP_WORDS[i]}" in'
    yield f"      {'|'.join(_value_names(root))}) ((i++)) ;;"
    yield "      -*) ;;"
    yield '      *) command="${COMP_WORDS[i]}"; break ;;'
    yield "    esac"
    yield "  done"
    yield '  case "$before" in'
    yield f"    -o|--output) {_bash_reply(FORMATS)}; return ;;"
    yield f"    {'|'.join(_file_names(root, commands))}) {_BASH_FILES}; return ;;"
    yield "  esac"
    yield '  case "$command,$current" in'
    for command in (root, *commands):
        yield f"    {command.name},-*) {_bash_reply(_names(command))} ;;"
    yield f"    ,*) {_bash_reply(command.name for command in commands)} ;;"
    for command in commands:
        if command.words:
            yield f"    {command.name},*) {_bash_reply(command.words)} ;;"
    yield f"    *) {_BASH_FILES} ;;"
    yield "  esac"
    yield "}"
    yield "complete -o filenames -o bashdefault -F _jobman jobman"


def _bash_reply(words: Iterable[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current"))'


def _file_names(root: _Command, commands: list[_Command]) -> list[str]:
    """The options whose value may be a file."""
    options = [option for command in (root, *commands) for option in command.options]
    names = [name for option in options if option.takes_value and not option.words for name in option.names]
    return list(dict.fromkeys(names))


def _names(command: _Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def _value_names(command: _Command) -> list[str]:
    return [name for option in command.options if option.takes_value for name in option.names]


# -- zsh ----------------------------------------------------------------------------------------------------


def _zsh(root: _Command, commands: list[_Command]) -> Iterator[str]:
    yield "#compdef jobman"
    yield "_jobman() {"
    yield "  local context state line"
    yield "  typeset -A opt_args"
    yield "  _arguments -C \\"
    for option in root.options:
        yield f"    {_zsh_option(option)} \\"
    yield "    '1:command:->command' '*::argument:->argument'"
    yield "  case $state in"
    yield "    command)"
    yield "      local -a commands=("
    for command in commands:
        yield f"        {_single(f'{command.name}:{_plain(command.help)}')}"
    yield "      )"
    yield "      _describe command commands ;;"
    yield "    argument)"
    yield "      case ${line[1]} in"
    for command in commands:
        options = " ".join(_zsh_option(option) for option in command.options)
        what = f"'*:word:({' '.join(command.words)})'" if command.words else "'*:file:_files'"
        yield f"        {command.name}) _arguments {options} {what} ;;"
    yield "      esac ;;"
    yield "  esac"
    yield "}"
    yield "compdef _jobman jobman"


def _zsh_option(option: _Option) -> str:
    value = (
        f":value:({' '.join(option.words)})"
        if option.words
        else ":value:_files"
        if option.takes_value
        else ""
    )
    text = f"[{_plain(option.help)}]{value}"
    if len(option.names) == 1:
        return f"{_single(option.names[0] + text)}"
    return f"{{{','.join(option.names)}}}{_single(text)}"


# -- fish ---------------------------------------------------------------------------------------------------


_FISH_COMMAND = """\
function __jobman_command
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $word {values}
            set skip 1
        else if not string match -q -- '-*' $word
            echo $word
            return
        end
    end
    echo ''
end"""


def _fish(root: _Command, commands: list[_Command]) -> Iterator[str]:
    yield "complete -c jobman -e"
    yield from _FISH_COMMAND.format(values=" ".join(_value_names(root))).splitlines()
    for option in root.options:
        yield f"complete -c jobman -n 'test -z (__jobman_command)' {_fish_option(option)}"
    for command in commands:
        described = f"{command.name} -d {_single(_plain(command.help))}"
        yield f"complete -c jobman -f -n 'test -z (__jobman_command)' -a {described}"
    for command in commands:
        seen = f"-n 'test (__jobman_command) = {command.name}'"
        if command.words:
            yield f"complete -c jobman -f {seen} -a {_single(' '.join(command.words))}"
        for option in command.options:
            yield f"complete -c jobman {seen} {_fish_option(option)}"


def _fish_option(option: _Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = (
        f" -x -a {_single(' '.join(option.words))}" if option.words else " -r" if option.takes_value else ""
    )
    return f"{names}{value} -d {_single(_plain(option.help))}"


def _plain(text: str) -> str:
    """Help text without the characters that shells give a meaning."""
    return text.translate({ord(character): " " for character in "[]:`'\"\\$\n"})


def _single(text: str) -> str:
    return f"'{text}'"


_WRITERS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
