"""Nothing slow at start-up: what the quick options may import."""

import subprocess
import sys

import pytest

from tests.cli.stub import make_job

SLOW = (
    "msgspec",
    "yaml",
    "pydantic",
    "jobman.spec",
    "jobman.plan",
    "jobman.settings",
    "jobman.api",
    "hypothesis",
)
FORBIDDEN = {"--version": (*SLOW, "rich", "typer"), "--help": SLOW}
LANGUAGE = ("yaml", "pydantic", "rich", "jobman.spec", "jobman.plan", "jobman.settings", "jobman.api")
QUICK = {
    "submit a document": ("submit", "job.yaml"),
    "submit a command": ("submit", "-r", "small", "--", "true"),
    "names for completion": ("__jobs",),
}
LIGHT = {
    "list": ("list", "-n", "5"),
    "why": ("why", "hello"),
    "logs": ("logs", "hello"),
    "details": ("details", "hello"),
    "cancel": ("cancel", "hello"),
    "run a command": ("run", "--", "true"),
}


def imported(*arguments):
    """The modules that a command imports, beyond those of a bare interpreter."""
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "jobman.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return [line.rpartition("|")[2].strip() for line in lines[1:]]


def intruders(modules, forbidden):
    return sorted(m for m in modules if any(m == name or m.startswith(f"{name}.") for name in forbidden))


@pytest.mark.parametrize("option", list(FORBIDDEN))
def test_a_quick_option_imports_nothing_slow(option):
    assert intruders(imported(option), FORBIDDEN[option]) == []


@pytest.mark.parametrize("arguments", QUICK.values(), ids=list(QUICK))
def test_what_stands_in_loops_imports_neither_the_language_nor_the_library_of_the_command_line(
    service, good, arguments
):
    assert intruders(imported(*arguments), (*LANGUAGE, "typer")) == []


@pytest.mark.parametrize("arguments", LIGHT.values(), ids=list(LIGHT))
def test_what_asks_the_service_imports_nothing_of_the_language(service, arguments):
    service.add(make_job("hello"))
    assert intruders(imported(*arguments), LANGUAGE) == []


def test_the_list_of_imports_is_really_one():
    modules = imported("schema")
    assert {"jobman.cli.schema", "jobman.spec.schema", "msgspec"} <= set(modules)


def test_the_package_itself_imports_nothing_of_its_own_before_it_is_used():
    code = "import sys, jobman; print(*sorted(m for m in sys.modules if m.startswith('jobman')))"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert process.stdout.split() == ["jobman", "jobman.version"]
