"""`jobman connect` to copies on a real cluster: through a service, and with nothing but a kubeconfig."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from jobman.client import Unreachable
from tests.cli.forwards import forwarding
from tests.control.cluster_service import ClusterService, a_cluster_service, until
from tests.engines.kubernetes.cluster import a_namespace, image, kubeconfig, on_a_real_cluster

pytestmark = [on_a_real_cluster, pytest.mark.slow]
DOCUMENT = """\
version: 1
name: web
resources:
  one: {{type: slot, count: 1, with: [{{type: memory, count: 16Mi}}]}}
tasks:
- name: serve
  image: {image}
  resources: one
  replicas: 2
  grace: 1s
  command: [sh, -c, "cd /tmp; echo $JOBMAN_REPLICA >index.html; httpd -p 8080 -h /tmp; sleep 600"]
"""


class Answer(NamedTuple):
    code: int
    out: bytes
    err: str


class Site(NamedTuple):
    """A job of two replicas that runs, and how commands find it."""

    environment: dict[str, str]
    words: tuple[str, ...]

    def connect(self, *words: str, stdin: bytes = b"") -> Answer:
        command = [sys.executable, "-m", "jobman.cli.main", *self.words, "connect", "web", *words]
        done = subprocess.run(command, input=stdin, capture_output=True, env=self.environment, timeout=120)
        return Answer(done.returncode, done.stdout, done.stderr.decode())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    with a_cluster_service(tmp_path_factory.mktemp("managed")) as made:
        job = made.submit(DOCUMENT.format(image=image()))
        until(lambda: len(made.client.copies(job)) == 2, "that both replicas run")
        yield made


@pytest.fixture(scope="module")
def managed(service: ClusterService) -> Site:
    (token,) = re.findall(r"jobman_[\w-]+", service.said)
    return Site({**os.environ, "JOBMAN_SERVER": service.url, "JOBMAN_TOKEN": token}, ())


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("direct")
    (folder / "web.yaml").write_text(DOCUMENT.format(image=image()))
    with a_namespace() as namespace:
        config = yaml.safe_load(kubeconfig().read_text())
        config["contexts"][0]["context"]["namespace"] = namespace
        (folder / "config").write_text(yaml.safe_dump(config))
        # There is no kubectl to be found.
        environment = {"PATH": "/nowhere", "HOME": str(folder), "KUBECONFIG": str(folder / "config")}
        environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        site = Site(environment, ("-e", "kubernetes"))
        command = [sys.executable, "-m", "jobman.cli.main", *site.words, "submit", str(folder / "web.yaml")]
        subprocess.run(command, env=environment, check=True, timeout=120)
        until(lambda: site.connect("--replica", "0", "--", "true").code == 0, "that the first runs")
        until(lambda: site.connect("--replica", "1", "--", "true").code == 0, "that the second runs")
        yield site


@pytest.fixture(scope="module", params=["managed", "direct"])
def site(request: pytest.FixtureRequest) -> Site:
    found: Site = request.getfixturevalue(request.param)
    return found


def test_a_command_has_its_input_its_output_and_its_exit_code(site: Site) -> None:
    script = "cat; echo $JOBMAN_REPLICA >&2; exit 3"
    given = bytes(range(256)) * 400
    assert site.connect("--replica", "1", "--", "sh", "-c", script, stdin=given) == Answer(3, given, "1\n")


def test_a_command_that_reads_late_gets_all_of_its_input(site: Site) -> None:
    much = bytes(5_000_000)
    answer = site.connect("--replica", "1", "--", "sh", "-c", "sleep 3; wc -c", stdin=much)
    assert (answer.code, answer.out.split()) == (0, [b"5000000"])


def test_without_a_command_it_is_a_shell(site: Site) -> None:
    answer = site.connect("--replica", "serve.0", stdin=b"echo this is $JOBMAN_REPLICA\nexit 7\n")
    assert (answer.code, answer.out) == (7, b"this is 0\n")
    assert "this is serve.0/0" in answer.err


def test_a_program_that_is_not_there_is_told(site: Site) -> None:
    answer = site.connect("--replica", "0", "--", "no-such-program")
    assert (answer.code, answer.out) == (4, b"")
    assert 'exec: "no-such-program"' in answer.err


def test_of_several_copies_one_must_be_chosen(site: Site) -> None:
    answer = site.connect()
    assert answer.code == 2
    assert "serve.0/0, serve.1/0" in answer.err
    assert "running: serve.0/0, serve.1/0" in site.connect("--replica", "5").err


def test_a_port_here_leads_to_a_port_of_the_copy(site: Site) -> None:
    words = (*site.words, "connect", "web", "--replica", "1", "--port", "0:8080")
    with forwarding(*words, **site.environment) as here:
        for _ in range(3):
            with socket.create_connection(here, 60) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                said = b""
                while part := connection.recv(4096):
                    said += part
            assert said.endswith(b"\r\n\r\n1\n")


def test_a_port_at_which_nobody_listens_is_told(site: Site) -> None:
    words = (*site.words, "connect", "web", "--replica", "1", "--port", "0:9")
    with forwarding(*words, **site.environment) as here:
        with socket.create_connection(here, 60) as connection:
            assert connection.recv(100) == b""
        assert "nobody listens at port 9 there" in here.said()


def test_others_cannot_enter(service: ClusterService, managed: Site) -> None:
    made = service.client.make_token("of-eve", "eve")
    eve = managed._replace(environment={**managed.environment, "JOBMAN_TOKEN": made.token})
    answer = eve.connect("--replica", "0", "--", "true")
    assert (answer.code, answer.out) == (1, b"")
    assert "There is no job" in answer.err


def test_a_session_ends_when_its_job_is_cancelled(service: ClusterService) -> None:
    job = service.submit(DOCUMENT.format(image=image()).replace("web", "brief"))
    copy = until(lambda: service.client.copies(job), "a copy that runs")[0]
    session = service.client.enter(job, copy, command=["sh", "-c", "echo up; sleep 600"])
    output = session.output()
    assert next(output) == ("stdout", b"up\n")
    service.client.cancel(job)
    assert list(output) == []
    assert session.exit_code != 0


def test_a_service_that_is_killed_leaves_a_clear_word(tmp_path: Path) -> None:
    with a_cluster_service(tmp_path) as service:
        job = service.submit(DOCUMENT.format(image=image()))
        copy = until(lambda: service.client.copies(job), "a copy that runs")[0]
        session = service.client.enter(job, copy, command=["sh", "-c", "echo up; sleep 600"])
        output = session.output()
        assert next(output) == ("stdout", b"up\n")
        service.kill()
        service.start()
        with pytest.raises(Unreachable, match="started again"):
            next(output)
        until(lambda: service.client.copies(job), "that the copy is seen again")
