"""The script of the registry, with a cache of the test's own."""

import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lab.components import FOLDER, MISSING

pytestmark = [pytest.mark.slow, pytest.mark.component("registry")]


class Script:
    """`lab/registry` far from the one that other tests use."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def __call__(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "JOBMAN_LAB_CACHE": str(self.cache)}
        return subprocess.run(
            [FOLDER / "registry", command], env=environment, capture_output=True, text=True, timeout=120
        )

    def told(self) -> dict[str, str]:
        answer = self("status")
        assert answer.returncode == 0, answer.stdout
        return dict(line.split("=", 1) for line in answer.stdout.splitlines())


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    here = Script(tmp_path / "a folder")
    assert here("up").returncode == 0
    yield here
    assert here("down").returncode == 0


def test_it_is_there_for_those_who_know_the_password_and_its_authority(script):
    told = script.told()
    url, verify = (
        told["JOBMAN_LAB_REGISTRY"],
        ssl.create_default_context(cafile=told["JOBMAN_LAB_REGISTRY_CA"]),
    )
    login = (told["JOBMAN_LAB_REGISTRY_USER"], Path(told["JOBMAN_LAB_REGISTRY_PASSWORD_FILE"]).read_text())
    with httpx.Client(verify=verify, trust_env=False) as client:
        assert client.get(f"{url}/v2/", auth=login).status_code == 200
        assert client.get(f"{url}/v2/").status_code == 401
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.ConnectError):
        client.get(f"{url}/v2/")


def test_up_leaves_a_running_registry_alone_and_down_stops_it(script):
    before = script.told()
    assert script("up").returncode == 0
    assert script.told() == before
    assert (script("down").returncode, script("down").returncode) == (0, 0)
    absent = script("status")
    assert (absent.returncode, absent.stdout) == (MISSING, "the registry is not running (lab/up starts it)\n")
    assert script("up").returncode == 0
    again = script.told()
    assert Path(again["JOBMAN_LAB_REGISTRY_CA"]).read_bytes()
