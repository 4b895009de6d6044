"""`jobman completion`: scripts for bash, zsh and fish, made from the commands themselves.

The scripts know every command and option by heart, so that a press of the tab key starts no Python; only for
the names of jobs do they ask `jobman __jobs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

import typer

from jobman.cli.state import ENGINES, FORMATS

Kind = Literal["words", "jobs", "files", "nothing"]
"""What may stand at a place of the command line."""
_WORDS = {
    "--output": FORMATS,
    "--engine": ENGINES,
    "--role": ("admin", "user"),
    ("list", "--state"): ("waiting", "running", "succeeded", "failed", "cancelled"),
}
_FILES = ("FILE", "FOLDER", "NODES", "OUT", "FLAVOR")
_JOBS = "jobman __jobs 2>/dev/null"


class _Option(NamedTuple):
    names: tuple[str, ...]
    takes_value: bool
    kind: Kind
    words: tuple[str, ...]
    help: str


class _Command(NamedTuple):
    """A command; one inside others is known by all names, as in `gate open` and `task dead list`."""

    name: str
    help: str
    options: tuple[_Option, ...]
    kind: Kind
    words: tuple[str, ...]


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell to complete in.")],
) -> None:
    """Print a completion script: `source <(jobman completion bash)`."""
    from jobman.cli.app import app

    write = _WRITERS.get(shell)
    if write is None:
        raise typer.BadParameter(f"'{shell}' is not one of {', '.join(_WRITERS)}", param_hint="SHELL")
    root: Any = typer.main.get_command(app)
    commands = [
        described
        for name, sign in root.commands.items()
        if not sign.hidden
        for described in _family(name, root.load(name))
    ]
    typer.echo("\n".join(write(_describe("", root), commands)))


def _family(name: str, command: Any) -> Iterator[_Command]:
    """A command and those inside it, however deep."""
    yield _describe(name, command)
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from _family(f"{name} {inner_name}", inner)


def _describe(name: str, command: Any) -> _Command:
    options = tuple(_option(name, param) for param in command.params if param.param_type_name == "option")
    words = _argument_words(name, command)
    arguments = [param.metavar for param in command.params if param.param_type_name != "option"]
    kind: Kind = "words" if words else _kind_of(*arguments)
    return _Command(name, (command.help or "").split("\n")[0].rstrip("."), options, kind, words)


def _argument_words(name: str, command: Any) -> tuple[str, ...]:
    if name == "help":
        from jobman.spec.codes import CODES

        return tuple(CODES)
    if name == "completion":
        return tuple(_WRITERS)
    return tuple(command.commands) if name and hasattr(command, "commands") else ()


def _option(command: str, param: Any) -> _Option:
    names = tuple(param.opts)
    keys = [*((command, name) for name in names), *names]
    words = next((_WORDS[key] for key in keys if key in _WORDS), ())
    kind: Kind = "words" if words else _kind_of(param.metavar)
    return _Option(names, not param.is_flag, kind, words, (param.help or "").rstrip("."))


def _kind_of(*metavars: str | None) -> Kind:
    """What stands at a place, by the name that its help gives it."""
    for metavar in filter(None, metavars):
        if metavar.startswith("JOB"):
            return "jobs"
        if metavar.startswith(_FILES):
            return "files"
    return "nothing"


def _groups(commands: list[_Command]) -> list[_Command]:
    """The commands that have commands of their own."""
    return [command for command in commands if _inside(command, commands)]


def _inside(command: _Command, commands: list[_Command]) -> list[_Command]:
    """The commands that a command has."""
    return [each for each in commands if each.name.rpartition(" ")[0] == command.name]


def _skipped(root: _Command, commands: list[_Command]) -> list[str]:
    """Where the next word is the value of an option, and no command: what was typed, and the option."""
    return [
        f"{command.name},{name}" for command in (root, *_groups(commands)) for name in _value_names(command)
    ]


# -- bash ---------------------------------------------------------------------------------------------------


def _bash(root: _Command, commands: list[_Command]) -> Iterator[str]:
    skipped = "|".join(f'"{place}"' for place in _skipped(root, commands))
    inside = "|".join(f'"{group.name},"*' for group in _groups(commands))
    yield "_jobman() {"
    yield '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" i'
    yield "  for ((i = 1; i < COMP_CWORD; i++)); do"
    yield '    case "$command,${COMP_WORDS[i]}" in'
    yield f"      {skipped}) ((i++)) ;;"
    yield "      *,-*) ;;"
    yield '      ,*) command="${COMP_WORDS[i]}" ;;'
    yield f"      {inside})"
    yield '        command+=" ${COMP_WORDS[i]}" ;;'
    yield "      *) break ;;"
    yield "    esac"
    yield "  done"
    yield '  case "$command,$before" in'
    for command in (root, *commands):
        for option in command.options:
            if option.takes_value:
                places = "|".join(f'"{command.name},{name}"' for name in option.names)
                yield f"    {places}) {_bash_reply(option.kind, option.words)}; return ;;"
    yield "  esac"
    yield '  case "$command,$current" in'
    for command in (root, *commands):
        yield f'    "{command.name},"-*) {_bash_reply("words", _names(command))} ;;'
    top = [command.name for command in commands if " " not in command.name]
    yield f"    ,*) {_bash_reply('words', top)} ;;"
    for command in commands:
        yield f'    "{command.name},"*) {_bash_reply(command.kind, command.words)} ;;'
    yield "  esac"
    yield "}"
    yield "complete -o filenames -o bashdefault -F _jobman jobman"


def _bash_reply(kind: Kind, words: Iterable[str]) -> str:
    if kind == "files":
        return 'mapfile -t COMPREPLY < <(compgen -f -- "$current")'
    if kind == "jobs":
        return f'COMPREPLY=($(compgen -W "$({_JOBS})" -- "$current"))'
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current"))'


def _names(command: _Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def _value_names(command: _Command) -> list[str]:
    return [name for option in command.options if option.takes_value for name in option.names]


# -- zsh ----------------------------------------------------------------------------------------------------


_ZSH_JOBS = """\
_jobman_jobs() {
  local -a jobs
  jobs=(${(f)"$(%s)"})
  compadd -a jobs
}"""


def _zsh(root: _Command, commands: list[_Command]) -> Iterator[str]:
    yield "#compdef jobman"
    yield from (_ZSH_JOBS % _JOBS).splitlines()
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
        if " " not in command.name:
            yield f"        {_single(f'{command.name}:{_plain(command.help)}')}"
    yield "      )"
    yield "      _describe command commands ;;"
    yield "    argument)"
    yield "      case ${line[1]} in"
    for command in commands:
        if " " not in command.name:
            yield from _zsh_command(command, commands, "        ")
    yield "      esac ;;"
    yield "  esac"
    yield "}"
    yield "compdef _jobman jobman"


def _zsh_command(command: _Command, commands: list[_Command], indent: str) -> Iterator[str]:
    name = command.name.rpartition(" ")[2]
    inner = _inside(command, commands)
    options = " ".join(["_arguments", *map(_zsh_option, command.options)])
    if not inner:
        yield f"{indent}{name}) {options} '*:word:{_zsh_action(command.kind, command.words)}' ;;"
        return
    yield f"{indent}{name})"
    # What the command above has left there is not ours.
    yield f"{indent}  state="
    yield f"{indent}  {options} -C '1:command:({' '.join(command.words)})' '*::argument:->inner'"
    yield f"{indent}  if [[ $state == inner ]]; then"
    yield f"{indent}    case ${{line[1]}} in"
    for one in inner:
        yield from _zsh_command(one, commands, f"{indent}      ")
    yield f"{indent}    esac"
    yield f"{indent}  fi ;;"


def _zsh_option(option: _Option) -> str:
    value = f":value:{_zsh_action(option.kind, option.words)}" if option.takes_value else ""
    text = f"[{_plain(option.help)}]{value}"
    if len(option.names) == 1:
        return f"{_single(option.names[0] + text)}"
    return f"{{{','.join(option.names)}}}{_single(text)}"


def _zsh_action(kind: Kind, words: tuple[str, ...]) -> str:
    return {"words": f"({' '.join(words)})", "jobs": "_jobman_jobs", "files": "_files", "nothing": " "}[kind]


# -- fish ---------------------------------------------------------------------------------------------------


_FISH_COMMAND = """\
function __jobman_command
    set -l skip 0
    set -l command
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- "$command,$word" {skipped}
            set skip 1
        else if not string match -q -- '-*' $word
            set -a command $word
            if not contains -- "$command" {groups}
                break
            end
        end
    end
    echo "$command"
end"""


def _fish(root: _Command, commands: list[_Command]) -> Iterator[str]:
    yield "complete -c jobman -e"
    known = {
        "skipped": " ".join(map(_single, _skipped(root, commands))),
        "groups": " ".join(_single(group.name) for group in _groups(commands)),
    }
    yield from _FISH_COMMAND.format(**known).splitlines()
    for option in root.options:
        yield f"complete -c jobman -n 'test -z (__jobman_command)' {_fish_option(option)}"
    for command in commands:
        if " " not in command.name:
            described = f"{command.name} -d {_single(_plain(command.help))}"
            yield f"complete -c jobman -f -n 'test -z (__jobman_command)' -a {described}"
    for command in commands:
        seen = f"-n 'test (__jobman_command) = \"{command.name}\"'"
        if command.kind != "files":
            yield f"complete -c jobman -f {seen} {_fish_words(command.kind, command.words)}".rstrip()
        for option in command.options:
            yield f"complete -c jobman {seen} {_fish_option(option)}"


def _fish_option(option: _Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = ""
    if option.takes_value:
        value = " -r" if option.kind == "files" else f" -x {_fish_words(option.kind, option.words)}"
    return f"{names}{value.rstrip()} -d {_single(_plain(option.help))}"


def _fish_words(kind: Kind, words: tuple[str, ...]) -> str:
    if kind == "jobs":
        return f"-a '({_JOBS})'"
    return f"-a {_single(' '.join(words))}" if words else ""


def _plain(text: str) -> str:
    """Help text without the characters that shells give a meaning."""
    return text.translate({ord(character): " " for character in "[]:`'\"\\$\n"})


def _single(text: str) -> str:
    return f"'{text}'"


_WRITERS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
