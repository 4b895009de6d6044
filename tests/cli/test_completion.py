"""`jobman completion`: the scripts, tried in the shells they are for. And the reader on the real libyaml."""

# ruff: noqa: E501 - a document stands in one line

import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from jobman.cli.commands import FAMILIES

COMMANDS = {name for family in FAMILIES.values() for name in family}
JOBS = {"sweep", "0f3a91c2d4e5"}
FORMS = {"table", "json", "yaml"}


@pytest.fixture(autouse=True)
def documents():
    Path("job.yaml").touch()
    Path("jobs").mkdir()
    Path("notes.txt").touch()


@pytest.fixture(autouse=True)
def known_jobs(tmp_path, monkeypatch):
    """A `jobman` that knows two jobs; the scripts may ask it for nothing else."""
    program = tmp_path / "bin" / "jobman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntest "$*" = __jobs && printf "%s\\n" {" ".join(JOBS)}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(jobman, shell):
    answer = jobman("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert [command for command in COMMANDS if command not in answer.out] == []


def test_another_shell_is_a_wrong_use(jobman):
    answer = jobman("completion", "tcsh")
    assert (answer.code, answer.out) == (2, "")
    assert "'tcsh' is not one of bash, zsh, fish" in answer.err


def run(shell, script, **environment):
    program = os.environ.get(f"JOBMAN_LAB_{shell.upper()}", shell)
    flags = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[shell]
    process = subprocess.run(
        [program, *flags, script],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
        env={**os.environ, "TERM": "dumb", **environment},
    )
    assert process.stderr == ""
    return process.stdout


# Words of a command line, the last one being completed, and what it may become.
CASES = {
    "commands": (["jobman", ""], COMMANDS),
    "the start of a command": (
        ["jobman", "s"],
        {"sbatch", "schema", "satisfy", "settings", "simulate", "submit", "service", "server"},
    ),
    "a command behind a global option": (["jobman", "-o", "json", "ch"], {"check"}),
    "options of a command": (["jobman", "check", "--s"], {"--strict", "--set"}),
    "global options": (["jobman", "--ver"], {"--version"}),
    "forms of the answer": (["jobman", "check", "-o", ""], FORMS),
    "forms by the long name": (["jobman", "check", "--output", "j"], {"json"}),
    "forms before the command": (["jobman", "-o", ""], FORMS),
    "files": (["jobman", "check", "jo"], {"job.yaml", "jobs"}),
    "a second file": (["jobman", "check", "job.yaml", "no"], {"notes.txt"}),
    "files behind an option": (["jobman", "satisfy", "job.yaml", "--nodes", "no"], {"notes.txt"}),
    "settings before the command": (["jobman", "-s", "no"], {"notes.txt"}),
    "shells": (["jobman", "completion", ""], {"bash", "zsh", "fish"}),
    "codes": (["jobman", "help", "JS42"], {"JS420", "JS421", "JS422", "JS423"}),
    "jobs": (["jobman", "logs", ""], JOBS),
    "the start of a job": (["jobman", "wait", "sw"], {"sweep"}),
    "a second job": (["jobman", "cancel", "sweep", "0f"], {"0f3a91c2d4e5"}),
    "a job behind an option": (["jobman", "logs", "-f", "-j", "s"], {"sweep"}),
    "a job behind a global option": (["jobman", "-o", "json", "details", "s"], {"sweep"}),
    "a command inside a command": (["jobman", "service", ""], {"status", "start", "stop"}),
    "options of a command inside a command": (["jobman", "service", "stop", "--f"], {"--force"}),
    "a job of a command inside a command": (["jobman", "gate", "open", "s"], {"sweep"}),
    "a command two levels down": (["jobman", "task", "dead", "r"], {"retry"}),
    "options of a command two levels down": (
        ["jobman", "task", "dead", "list", "--"],
        {"--limit", "--broker", "--token", "--tenant", "--ca-file", "--output"},
    ),
    "forms of a command two levels down": (["jobman", "task", "dead", "list", "-o", "j"], {"json"}),
    "files of a command two levels down": (
        ["jobman", "task", "types", "add", "price", "--ca-file", "no"],
        {"notes.txt"},
    ),
    "options of a command that has commands": (
        ["jobman", "task", "types", "--t"],
        {"--token", "--tenant"},
    ),
    "a command behind an option of the one it is in": (
        ["jobman", "task", "types", "--broker", "./there", "a"],
        {"add"},
    ),
    "options behind an option of the command above": (
        ["jobman", "task", "types", "--broker", "./there", "add", "--on"],
        {"--on-port"},
    ),
    "states": (["jobman", "list", "--state", "s"], {"succeeded"}),
    "engines": (["jobman", "submit", "-e", "l"], {"local"}),
    "a folder that has the name of an option with words": (
        ["jobman", "server", "--state", "jo"],
        {"job.yaml", "jobs"},
    ),
    "engines to render for": (["jobman", "render", "job.yaml", "--engine", "k"], {"kubernetes"}),
    "a folder to render into": (["jobman", "render", "--to", "jo"], {"job.yaml", "jobs"}),
    "a document to run": (["jobman", "run", "job."], {"job.yaml"}),
}
# -- bash ---------------------------------------------------------------------------------------------------


def complete_in_bash(script, words):
    Path("completion.bash").write_text(script)
    quoted = " ".join(f"'{word}'" for word in words)
    return run(
        "bash",
        f"source ./completion.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _jobman; "
        'printf "%s\\n" "${COMPREPLY[@]}"; complete -p jobman >/dev/null',
    ).splitlines()


@pytest.mark.component("bash")
@pytest.mark.parametrize(("words", "wanted"), CASES.values(), ids=list(CASES))
def test_bash_completes(jobman, words, wanted):
    assert set(complete_in_bash(jobman("completion", "bash").out, words)) == wanted


@pytest.mark.component("bash")
def test_bash_completes_a_file_with_a_space_in_its_name(jobman):
    Path("my job.yaml").touch()
    assert complete_in_bash(jobman("completion", "bash").out, ["jobman", "check", "my"]) == ["my job.yaml"]


# -- fish ---------------------------------------------------------------------------------------------------


def complete_in_fish(script, words):
    Path("completion.fish").write_text(script)
    printed = run("fish", f"source ./completion.fish; complete -C '{' '.join(words)}'")
    return {line.split("\t")[0].rstrip("/") for line in printed.splitlines()}


@pytest.mark.component("fish")
@pytest.mark.parametrize(("words", "wanted"), CASES.values(), ids=list(CASES))
def test_fish_completes(jobman, words, wanted):
    assert complete_in_fish(jobman("completion", "fish").out, words) == wanted


@pytest.mark.component("fish")
def test_fish_says_what_a_command_does(jobman):
    Path("completion.fish").write_text(jobman("completion", "fish").out)
    printed = run("fish", "source ./completion.fish; complete -C 'jobman chec'")
    assert printed.startswith("check\tCheck documents")


# -- zsh ----------------------------------------------------------------------------------------------------

# A real press of the tab key in an interactive zsh; what completion adds is also written to a file.
ZSHRC = r"""
autoload -Uz compinit && compinit -u -D
source ./completion.zsh
compadd() {
  if [[ ${@[(I)-[OAD]*]} == 0 ]]; then
    local -a found
    builtin compadd -O found "$@"
    print -rl -- $found >>matches
  fi
  builtin compadd "$@"
}
finish() { : >finished }
zle -N finish
bindkey '^I' complete-word '^X' finish
zle-line-init() { : >ready }
zle -N zle-line-init
"""


def wait_for(path, process, seconds=20):
    end = time.monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, "zsh has ended"
        assert time.monotonic() < end, f"zsh never made {path}"
        time.sleep(0.01)


def complete_in_zsh(script, words):
    for name in ("completion.zsh", ".zshrc"):
        Path(name).write_text(ZSHRC if name == ".zshrc" else script)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [os.environ.get("JOBMAN_LAB_ZSH", "zsh"), "-d", "-i"],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ZDOTDIR": os.getcwd(), "TERM": "dumb"},  # noqa: PTH109
        start_new_session=True,
    )
    os.close(theirs)
    try:
        wait_for(Path("ready"), process)
        os.write(ours, " ".join(words).encode() + b"\t\x18")
        wait_for(Path("finished"), process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return set(Path("matches").read_text().split()) if Path("matches").exists() else set()


@pytest.mark.component("zsh")
def test_zsh_loads_the_script(jobman):
    Path("completion.zsh").write_text(jobman("completion", "zsh").out)
    printed = run(
        "zsh",
        "autoload -Uz compinit && compinit -u -D; source ./completion.zsh; whence -w _jobman; echo $_comps[jobman]",
    )
    assert printed.splitlines() == ["_jobman: function", "_jobman"]


@pytest.mark.component("zsh")
@pytest.mark.parametrize(("words", "wanted"), CASES.values(), ids=list(CASES))
def test_zsh_completes(jobman, words, wanted):
    assert complete_in_zsh(jobman("completion", "zsh").out, words) == wanted


# -- the reader ---------------------------------------------------------------------------------------------


@pytest.mark.component("libyaml")
def test_documents_are_read_by_libyaml():
    from yaml._yaml import CParser

    from jobman.spec.yaml import _Loader

    assert issubclass(_Loader, CParser)


@pytest.mark.component("libyaml")
def test_reading_a_document_runs_no_parser_written_in_python(monkeypatch):
    import yaml

    from jobman.api import loads

    def refuse(*_, **__):
        raise AssertionError("the parser written in Python was used")

    for cls in (yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer):
        monkeypatch.setattr(cls, "__init__", refuse)
    assert loads("version: 1\ntasks: [{command: a, resources: {type: node, count: 1}}]\n").ok
