"""The server of an installation on a real cluster: with no rights but its own, and with another beside it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.client import Client
from jobman.control.answers import Submission
from jobman.engines.kubernetes.installation.site import Site
from tests.control.api.world import until
from tests.control.servers import PATIENCE, Server, Turns
from tests.engines.kubernetes.cluster import image, kubectl_json
from tests.engines.kubernetes.installed import a_site, as_the_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.component("kubernetes"),
    pytest.mark.component("postgres"),
    pytest.mark.lab("it makes roles of the cluster as a whole"),
]

SLOT = "{type: slot, count: 1, with: [{type: core, count: 1}]}"


def a_document(script: str, more: str = "") -> str:
    return f"""\
version: 1
{more}
tasks:
- name: main
  image: {image()}
  command: [sh, -c, "{script}"]
  resources: {SLOT}
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with a_site() as found:
        yield found


@pytest.fixture
def turns(site: Site, tmp_path: Path, postgres_url: str) -> Iterator[Turns]:
    config = as_the_server(site, tmp_path / "kubeconfig")
    words = ("--engine", "kubernetes", "--namespace", site.jobs_namespace, "--advertise", "jobman")
    found = Turns(tmp_path, postgres_url, site.namespace, config, *words)
    yield found
    found.end()


def pods_of(site: Site, job: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = kubectl_json(
        "get", "pods", "-n", site.jobs_namespace, "-l", f"jobman.io/job={job}"
    )["items"]
    return items


def is_running(site: Site, job: str) -> bool:
    return [pod["status"].get("phase") for pod in pods_of(site, job)] == ["Running"]


def endpoints_of(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kubectl_json(
        "get", "endpointslices", "-n", site.namespace, "-l", "kubernetes.io/service-name=jobman"
    )["items"]
    return found


def output_of(client: Client, job: str) -> str:
    return "\n".join(line.text for line in client.logs(job))


def submitted(server: Server, token: str, document: str) -> str:
    with Client.connect(server.url, token) as client:
        return str(client.submit(Submission(document=document)).jobs[0].id)


def ended(server: Server, token: str, job: str, state: str = "succeeded") -> None:
    with Client.connect(server.url, token) as client:
        until(lambda: client.details(job).state in ("succeeded", "failed", "cancelled"), PATIENCE)
        assert client.details(job).state == state


def test_the_rights_of_the_installation_are_enough_for_all_kinds_of_jobs(turns, site):
    server = turns.start()
    until(server.is_ready, PATIENCE)
    token = server.token
    until(lambda: bool(endpoints_of(site)), PATIENCE)
    (found,) = endpoints_of(site)
    assert found["endpoints"][0]["addresses"] == ["10.1.2.3"], "the leader is the only endpoint"

    plain = submitted(server, token, a_document("echo plain"))
    several = submitted(
        server,
        token,
        f"""\
version: 1
tasks:
- name: main
  image: {image()}
  command: [sh, -c, "echo copy"]
  resources: {{type: slot, count: 2, with: [{{type: core, count: 1}}]}}
""",
    )
    written = submitted(
        server,
        token,
        f"""\
version: 1
tasks:
- name: main
  image: {image()}
  steps: [{{name: write, path: /tmp/word, content: from a file}}]
  command: [cat, /tmp/word]
  resources: {SLOT}
""",
    )
    broken = submitted(server, token, a_document("exit 3"))
    missing = submitted(server, token, a_document("echo never").replace(image(), "localhost/none:1"))
    for job in (plain, several, written):
        ended(server, token, job)
    ended(server, token, broken, "failed")
    with Client.connect(server.url, token) as client:
        assert client.why(missing) is not None
        client.cancel(missing)
        assert output_of(client, plain) == "plain"
        assert output_of(client, several) == "copy\ncopy"
        assert output_of(client, written) == "from a file"
    ended(server, token, missing, "cancelled")
    until(lambda: not any(pods_of(site, job) for job in (plain, several, written, broken, missing)), PATIENCE)
    assert "may not" not in server.said, "nothing was refused by the cluster"
    assert "orbidden" not in server.said


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_what_runs_goes_on_under_another_server_and_runs_once(turns, site, end):
    leader, other = turns.both()
    token = leader.token
    job = submitted(leader, token, a_document("echo once; sleep 20; echo done"))
    until(lambda: is_running(site, job), PATIENCE)
    (pod,) = pods_of(site, job)
    leader.process.send_signal(end)
    until(other.is_ready, PATIENCE)
    if end is signal.SIGSTOP:
        leader.process.send_signal(signal.SIGCONT)
        assert leader.process.wait(PATIENCE) == 1
    seen = {each["metadata"]["uid"] for each in pods_of(site, job)}
    assert seen <= {pod["metadata"]["uid"]}, "no second pod was made"
    ended(other, token, job)
    with Client.connect(other.url, token) as client:
        assert output_of(client, job).split() == ["once", "done"]
        assert len(list(client.attempts(job))) == 1
    assert turns.lease["spec"]["holderIdentity"] == other.identity
