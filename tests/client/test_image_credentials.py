"""Logins for registries: where they come from, and that their secrets are shown nowhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from jobman.client.images.credentials import Login, auth_files, host_of, login_for
from jobman.settings.registries import Registry

HOST = "registry.example.org"
REGISTRY = Registry(name="lab", url=f"https://{HOST}")


def entry(name: str = "ada", password: str = "pa55") -> dict[str, Any]:
    return {"auth": base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".docker").mkdir()
    return tmp_path


def kept(home: Path, data: Any) -> Login:
    (home / ".docker" / "config.json").write_text(data if isinstance(data, str) else json.dumps(data))
    return login_for(REGISTRY, {"HOME": str(home), "PATH": str(home)})


@pytest.mark.parametrize("key", [HOST, f"https://{HOST}", f"https://{HOST}/v1/", f"{HOST}/v2"])
def test_a_login_is_found_however_its_host_is_written(home, key):
    found = kept(home, {"auths": {"other.example.org": entry("bob"), key: entry()}})
    assert (found.username, found.password) == ("ada", "pa55")
    assert found.source == f"the login in {home}/.docker/config.json"


@pytest.mark.parametrize("key", [f"{HOST}.evil.org", f"{HOST}:5000", f"{HOST}/lab", f"evil/{HOST}"])
def test_the_login_of_another_host_is_not_taken(home, key):
    assert not kept(home, {"auths": {key: entry()}})


@pytest.mark.parametrize(
    "data",
    [
        "",
        "no json",
        "[]",
        '{"auths": []}',
        {"auths": {HOST: "x"}},
        {"auths": {HOST: {"auth": "%"}}},
        {"auths": {HOST: {"auth": base64.b64encode(b"nocolon").decode()}}},
        {"auths": {HOST: {}}},
    ],
)
def test_a_file_that_cannot_be_read_is_no_login(home, data):
    assert not kept(home, data)


def test_a_password_may_have_colons_and_letters_of_any_kind(home):
    assert kept(home, {"auths": {HOST: entry("ada", "a:b:ü")}}).password == "a:b:ü"


def test_the_settings_go_before_what_docker_keeps(home):
    kept(home, {"auths": {HOST: entry("bob")}})
    (home / "password").write_text("s3cret\n")
    registry = Registry(
        name="lab", url=f"https://{HOST}", username="robot$lab+ci", password_file="~/password"
    )
    found = login_for(registry, {"HOME": str(home)})
    assert (found.username, found.password) == ("robot$lab+ci", "s3cret")


def test_a_token_of_docker_is_kept_as_one(home):
    found = kept(home, {"auths": {HOST: {"identitytoken": "t0ken"}}})
    assert (found.token, found.username, bool(found)) == ("t0ken", "", True)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo \'{"Username": "ada", "Secret": "pa55"}\'', ("ada", "pa55", "")),
        ('echo \'{"Username": "<token>", "Secret": "t0ken"}\'', ("", "", "t0ken")),
        ("echo credentials not found in native keychain; exit 1", ("", "", "")),
        ("echo no json", ("", "", "")),
        ("echo '[]'", ("", "", "")),
    ],
)
def test_a_helper_gives_a_login_or_none(home, script, expected):
    helper = home / "docker-credential-lab"
    helper.write_text(f"#!/bin/sh\n{script}\n")
    helper.chmod(0o755)
    found = kept(home, {"credHelpers": {HOST: "lab"}})
    assert (found.username, found.password, found.token) == expected
    assert "docker-credential-lab" in found.source


@pytest.mark.parametrize("name", ["../../bin/sh", "a b", "", "nowhere"])
def test_a_helper_that_cannot_be_asked_gives_nothing(home, name):
    assert not kept(home, {"credHelpers": {HOST: name}})


def test_a_store_is_not_asked_for_hosts_that_nobody_logged_in_to(home):
    helper = home / "docker-credential-lab"
    helper.write_text('#!/bin/sh\ntouch "$HOME/asked"\n')
    helper.chmod(0o755)
    kept(home, {"credsStore": "lab", "auths": {"other.example.org": {}}})
    assert not (home / "asked").exists()


def test_podman_goes_before_docker(tmp_path):
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/7"}
    assert [str(path) for path in auth_files(environment)] == [
        "/run/user/7/containers/auth.json",
        f"{tmp_path}/.config/containers/auth.json",
        f"{tmp_path}/.docker/config.json",
    ]
    assert list(auth_files({**environment, "REGISTRY_AUTH_FILE": "/a.json"})) == [Path("/a.json")]
    assert list(auth_files({"HOME": "/h", "DOCKER_CONFIG": "/d"}))[-1] == Path("/d/config.json")


def test_a_login_shows_no_secret():
    assert "pa55" not in repr(Login("ada", "pa55", "t0ken", "somewhere")) + str(Login("ada", "pa55"))


def test_a_host_is_the_same_in_any_case():
    assert host_of("https://Registry.Example.ORG/v1/") == HOST
