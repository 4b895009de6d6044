"""An installation as its page tells to make it: servers are pods of the cluster, used through its Service."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.control.api.world import until
from tests.control.conftest import new_postgres
from tests.control.servers import PATIENCE
from tests.engines.kubernetes.cluster import image, kubeconfig, kubectl, kubectl_json
from tests.engines.kubernetes.installed import let_go

pytestmark = [
    pytest.mark.slow,
    *(pytest.mark.component(name) for name in ("kubernetes", "postgres", "services")),
]
SERVERS = "app.kubernetes.io/name=jobman"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


class Deployed:
    """An installation in two namespaces of its own, and a pod in a third from which somebody uses it."""

    def __init__(self, folder: Path, database: str) -> None:
        name = f"test-{secrets.token_hex(4)}"
        self.name, self.jobs, self.outside = name, f"{name}-jobs", f"{name}-people"
        self._folder, self._database = folder, database
        self.image = _run(os.environ["JOBMAN_LAB_SERVICES"], "image").strip()

    def install(self) -> None:
        """The steps of docs/install.md."""
        kubectl("create", "namespace", self.name)
        (self._folder / "url.txt").write_text(self._database)
        secret = ("-n", self.name, "create", "secret")
        kubectl(*secret, "generic", "jobman-database", f"--from-file=url={self._folder / 'url.txt'}")
        certificate, key = self._certificate()
        kubectl(*secret, "tls", "jobman-tls", f"--cert={certificate}", f"--key={key}")
        self.apply()
        kubectl("-n", self.name, "rollout", "status", "deployment/jobman", f"--timeout={PATIENCE}s")

    def apply(self) -> str:
        return self._jobman("--apply")

    def remove(self) -> None:
        self._jobman("--to", "site")
        kubectl("delete", "-k", str(self._folder / "site"), f"--timeout={PATIENCE}s")

    def _jobman(self, *words: str) -> str:
        names = ("--namespace", self.name, "--jobs-namespace", self.jobs, "--image", self.image)
        command = (sys.executable, "-m", "jobman.cli.main", "install", "kubernetes", *names, *words)
        return _run(*command, cwd=self._folder, KUBECONFIG=str(kubeconfig()))

    def _certificate(self) -> tuple[Path, Path]:
        files = self._folder / "cert.pem", self._folder / "key.pem"
        words = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
        )
        names = f"subjectAltName=DNS:jobman.{self.name}.svc"
        _run(*words.split(), "-addext", names, "-out", str(files[0]), "-keyout", str(files[1]))
        return files

    def servers(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = kubectl_json("get", "pods", "-n", self.name, "-l", SERVERS)["items"]
        return items

    def leader(self) -> str:
        """The name of the pod that the Service leads to, if there is one."""
        slices = kubectl_json(
            "get", "endpointslices", "-n", self.name, "-l", "kubernetes.io/service-name=jobman"
        )
        addresses = [
            each for one in slices["items"] for end in one["endpoints"] or () for each in end["addresses"]
        ]
        found = [pod["metadata"]["name"] for pod in self.servers() if pod["status"].get("podIP") in addresses]
        return str(found[0]) if len(found) == len(addresses) == 1 else ""

    def said(self) -> str:
        return kubectl("-n", self.name, "logs", "-l", SERVERS, "--tail=-1")

    def pods_of(self, job: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = kubectl_json(
            "get", "pods", "-n", self.jobs, "-l", f"jobman.io/job={job}"
        )["items"]
        return items

    def evict(self, name: str) -> None:
        words = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = f"/api/v1/namespaces/{self.name}/pods/{name}/eviction"
        kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(words))

    # -- somebody in the cluster --------------------------------------------------------------------------

    def let_somebody_in(self) -> None:
        """A pod with the command line, the address of the Service, a token and the certificate."""
        token = until(lambda: re.findall(r"jobman_[\w-]+", self.said()), PATIENCE)[0]
        until(self.leader, PATIENCE)
        kubectl("create", "namespace", self.outside)
        kubectl(
            "-n", self.outside, "create", "configmap", "trust", f"--from-file={self._folder / 'cert.pem'}"
        )
        environment = {
            "JOBMAN_SERVER": f"https://jobman.{self.name}.svc:7070",
            "JOBMAN_TOKEN": token,
            "SSL_CERT_FILE": "/trust/cert.pem",
        }
        container = {
            "name": "main",
            "image": self.image,
            "command": ["python", "-c", "import signal; signal.pause()"],
            "env": [{"name": name, "value": value} for name, value in environment.items()],
            "volumeMounts": [{"name": "trust", "mountPath": "/trust"}],
            "securityContext": RESTRICTED,
        }
        spec = {
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": [{"name": "trust", "configMap": {"name": "trust"}}],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "somebody"}, "spec": spec}
        kubectl("-n", self.outside, "create", "-f", "-", stdin=json.dumps(pod))
        kubectl("-n", self.outside, "wait", "--for=condition=Ready", "pod/somebody", f"--timeout={PATIENCE}s")
        until(lambda: self.knows(token, "admin"), PATIENCE)

    def knows(self, token: str, name: str) -> bool:
        """Whether a token opens the door to a list of tokens with this one; a busy service may be late."""
        with suppress(AssertionError):
            return name in self.jobman_with(token, "token", "list").split()
        return False

    def jobman(self, *words: str, stdin: str = "") -> str:
        return self._as_somebody("jobman", *words, stdin=stdin)

    def jobman_with(self, token: str, *words: str) -> str:
        given = "os.environ['JOBMAN_TOKEN'] = sys.argv[1]; os.execvp('jobman', ['jobman', *sys.argv[2:]])"
        return self._as_somebody("python", "-c", f"import os, sys; {given}", token, *words)

    def new_token(self) -> str:
        """For an administrator who has lost theirs."""
        words = ("exec", "deploy/jobman", "--", "jobman", "server", "--new-token")
        return kubectl("-n", self.name, *words).strip()

    def attempts_of(self, job: str) -> int:
        ask = "from jobman.client import Client; print(len(list(Client.usual().attempts(sys.argv[1]))))"
        return int(self._as_somebody("python", "-c", f"import sys; {ask}", job))

    def _as_somebody(self, *words: str, stdin: str = "") -> str:
        return kubectl("-n", self.outside, "exec", "-i", "somebody", "--", *words, stdin=stdin)

    def submitted(self, script: str) -> str:
        document = f"""\
version: 1
tasks:
- name: main
  image: {image()}
  command: [sh, -c, "{script}"]
  resources: {{type: slot, count: 1, with: [{{type: core, count: 1}}]}}
"""
        return self.jobman("submit", "-", stdin=document).split()[0]

    def state_of(self, job: str) -> str:
        return str(json.loads(self.jobman("details", job, "-o", "json"))["state"])


def _run(*command: str, cwd: Path | None = None, **environment: str) -> str:
    given = {**os.environ, "JOBMAN_LAB_PYTHON": sys.executable, **environment}
    done = subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployed]:
    with new_postgres() as url:
        inside = f"{os.environ['JOBMAN_LAB_POSTGRES_INSIDE'].rpartition('/')[0]}/{url.rpartition('/')[2]}"
        found = Deployed(tmp_path, inside.replace("+psycopg", ""))
        try:
            yield found
        finally:
            names = (found.name, found.jobs, found.outside)
            kubectl("delete", "namespace", *names, "--wait=false", "--ignore-not-found")
            let_go(found.jobs)
            for kind in ("clusterrole", "clusterrolebinding"):
                kubectl("delete", kind, f"jobman-{found.name}", "--ignore-not-found")


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


@pytest.fixture
def somebody_in(deployed: Deployed) -> Deployed:
    deployed.install()
    deployed.let_somebody_in()
    return deployed


def ready(deployed: Deployed) -> list[bool]:
    return [is_ready(pod) for pod in deployed.servers()]


def test_pods_serve_jobs_and_take_over_from_each_other_and_nothing_is_left(somebody_in: Deployed) -> None:
    deployed = somebody_in
    assert ready(deployed) == [True, True]
    assert len({pod["spec"]["nodeName"] for pod in deployed.servers()}) == 2
    assert "created" not in deployed.apply(), "it may be repeated"
    token = deployed.new_token()
    until(lambda: deployed.knows(token, "admin-2"), PATIENCE)

    plain = deployed.submitted("echo from a pod")
    deployed.jobman("wait", plain)
    assert deployed.state_of(plain) == "succeeded"
    assert "from a pod" in deployed.jobman("logs", plain)

    long = deployed.submitted("echo once; until test -e /tmp/go; do sleep 1; done; echo done")
    until(lambda: [pod["status"]["phase"] for pod in deployed.pods_of(long)] == ["Running"], PATIENCE)
    (running,) = deployed.pods_of(long)
    for take_away in (evict, destroy):
        hand_over(deployed, take_away)
        until(lambda: deployed.state_of(long) == "running", PATIENCE)
        assert {pod["metadata"]["uid"] for pod in deployed.pods_of(long)} == {running["metadata"]["uid"]}
    roll_out(deployed)
    assert {pod["metadata"]["uid"] for pod in deployed.pods_of(long)} == {running["metadata"]["uid"]}
    kubectl("-n", deployed.jobs, "exec", running["metadata"]["name"], "--", "touch", "/tmp/go")
    deployed.jobman("wait", long)
    assert deployed.state_of(long) == "succeeded"
    assert deployed.attempts_of(long) == 1
    assert deployed.jobman("logs", long).count("once") == 1

    until(lambda: ready(deployed) == [True, True], PATIENCE)
    assert not re.search(r"orbidden|may not|Traceback", deployed.said())
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in deployed.servers()] == [0, 0]
    until(lambda: not deployed.pods_of(plain) + deployed.pods_of(long), PATIENCE)
    deployed.remove()
    left = kubectl("get", "namespaces,clusterroles,clusterrolebindings", "-o", "name").split()
    assert [name for name in left if deployed.name in name and deployed.outside not in name] == []


def hand_over(deployed: Deployed, take_away: Callable[[Deployed, str], None]) -> None:
    """Take the leader away, and wait until the one that stood by leads."""
    until(lambda: ready(deployed) == [True, True], PATIENCE)
    leader = deployed.leader()
    (standing_by,) = {pod["metadata"]["name"] for pod in deployed.servers()} - {leader}
    take_away(deployed, leader)
    until(lambda: deployed.leader() == standing_by, PATIENCE)


def roll_out(deployed: Deployed) -> None:
    """Put new servers into the place of all, as a renewed certificate needs it."""
    until(lambda: ready(deployed) == [True, True], PATIENCE)
    old = {pod["metadata"]["name"] for pod in deployed.servers()}
    kubectl("-n", deployed.name, "rollout", "restart", "deployment/jobman")
    kubectl("-n", deployed.name, "rollout", "status", "deployment/jobman", f"--timeout={PATIENCE}s")
    until(lambda: deployed.leader() not in {"", *old}, PATIENCE)


def evict(deployed: Deployed, name: str) -> None:
    """As whoever drains a node does; the other one may not go at the same time."""
    other = next(pod["metadata"]["name"] for pod in deployed.servers() if pod["metadata"]["name"] != name)
    deployed.evict(name)
    with pytest.raises(AssertionError, match="disruption budget"):
        deployed.evict(other)


def destroy(deployed: Deployed, name: str) -> None:
    """Without a moment to give anything back, as where a machine dies; its processes are of this one."""
    (uid,) = [pod["metadata"]["uid"] for pod in deployed.servers() if pod["metadata"]["name"] == name]
    killed = [process for process in Path("/proc").glob("[0-9]*") if is_a_server(process, uid)]
    assert killed
    for process in killed:
        os.kill(int(process.name), signal.SIGKILL)
    kubectl("delete", "pod", name, "-n", deployed.name, "--grace-period=0", "--force")


def is_a_server(process: Path, pod: str) -> bool:
    """Whether a process is of that pod, and not what holds its network."""
    with suppress(OSError):
        return (
            f"pod{pod}/" in (process / "cgroup").read_text()
            and b"jobman\0server\0" in (process / "cmdline").read_bytes()
        )
    return False
