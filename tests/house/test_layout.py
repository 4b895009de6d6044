"""The rules of the house that no other check knows."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in (ROOT / "src" / "jobman").rglob("__init__.py"))

CATCH_ALL_NAMES = {"utils", "util", "helpers", "manager", "misc", "common"}

# Where packages come from is the machine's business. Put together here so that this file does not name them.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in [
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("proxy", "golang", "org"),
        ("deb", "debian", "org"),
    ]
)


def repository_files() -> list[Path]:
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    # The checkout may belong to another user than the one who tests it.
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), *listing]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [path for path in (ROOT / name for name in names.split("\0") if name) if path.is_file()]


def registry_hosts_in(content: bytes) -> list[str]:
    return [host for host in REGISTRY_HOSTS if host.encode() in content]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_package_says_what_it_is_for(package):
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))


def test_every_folder_of_modules_is_a_package():
    folders = {path.parent for path in (ROOT / "src" / "jobman").rglob("*.py")}
    assert folders == set(PACKAGES)


def test_no_module_has_a_name_that_catches_everything():
    named = [path for path in repository_files() if CATCH_ALL_NAMES & {path.stem, path.parent.name}]
    assert [str(path.relative_to(ROOT)) for path in named if path.suffix == ".py"] == []


def test_no_file_names_a_registry():
    named = {str(path.relative_to(ROOT)): registry_hosts_in(path.read_bytes()) for path in repository_files()}
    assert {name: hosts for name, hosts in named.items() if hosts} == {}


@pytest.mark.parametrize("host", REGISTRY_HOSTS)
def test_a_registry_would_be_noticed(host):
    assert host in registry_hosts_in(f"--index-url https://{host}/simple".encode())
