"""A shared service: on TCP, with TLS and tokens, in a process of its own."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.client import Client, Refused, Unreachable
from jobman.control.answers import Submission
from jobman.control.background import idle_seconds
from jobman.control.embedded import read_running
from jobman.control.listening import Unsafe, check_safety, host_and_port, tcp_sockets
from jobman.control.places import Places
from jobman.control.serving import ServeOptions, serve
from tests.control.api.world import DOCUMENT, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SERVER = """
import sys
from pathlib import Path
from jobman.control.places import Places
from jobman.control.background import idle_seconds
from jobman.control.serving import ServeOptions, serve
from tests.control.api.scripted_service import build
cert = Path(sys.argv[3]) if len(sys.argv) > 3 else None
key = cert and cert.with_suffix(".key")
places = Places(Path(sys.argv[1]))
sys.exit(serve(ServeOptions(places, listen=sys.argv[2], tls_cert=cert, tls_key=key), build))
"""


class SharedService:
    """A service that was started as `jobman server` starts one."""

    def __init__(self, state: Path, listen: str = "127.0.0.1:0", certificate: Path | None = None) -> None:
        self.places = Places(state)
        self.output = state.with_suffix(f".{len(list(state.parent.iterdir()))}.out")
        more = [] if certificate is None else [str(certificate)]
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVER, str(state), listen, *more],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
            )

    @property
    def url(self) -> str:
        def found() -> str:
            assert self.process.poll() is None, self.output.read_text()
            running = read_running(self.places)
            return running.listen if running is not None and running.pid == self.process.pid else ""

        return until(found, 60)

    @property
    def token(self) -> str:
        return str(re.findall(r"jobman_[\w-]+", self.output.read_text())[0])

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def servers() -> Iterator[list[SharedService]]:
    started: list[SharedService] = []
    yield started
    for server in started:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "service.crt"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    files = ["-keyout", str(path.with_suffix(".key")), "-out", str(path)]
    command += f" -subj /CN=test -addext {names}"
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return path


@pytest.mark.slow
def test_the_first_start_shows_a_token_once_and_it_works_over_tls(
    tmp_path: Path, certificate: Path, servers: list[SharedService]
) -> None:
    server = SharedService(tmp_path / "state", certificate=certificate)
    servers.append(server)
    assert server.url.startswith("https://127.0.0.1:")
    with Client.connect(server.url, server.token, ca_file=str(certificate)) as client:
        job = client.submit(Submission(document=DOCUMENT)).jobs[0]
        assert client.status().listen == server.url
    with pytest.raises(Unreachable, match=r"(?i)certificate"):
        Client.connect(server.url, server.token).status()
    with pytest.raises(Refused) as raised:
        Client.connect(server.url, "jobman_wrong", ca_file=str(certificate)).status()
    assert raised.value.exit_code == 6
    assert server.stop() == 0

    said = server.output.read_text()
    assert said.count(server.token) == 1, "shown once, and never logged"
    kept = b"".join(file.read_bytes() for file in server.places.state.iterdir() if file.is_file())
    assert server.token.encode() not in kept, "only its hash is kept"

    again = SharedService(tmp_path / "state", certificate=certificate)
    servers.append(again)
    with Client.connect(again.url, server.token, ca_file=str(certificate)) as client:
        assert client.details(job.id).id == job.id
    assert "jobman_" not in again.output.read_text()


def test_two_services_do_not_share_a_folder(tmp_path: Path, servers: list[SharedService]) -> None:
    first = SharedService(tmp_path / "state")
    servers.append(first)
    assert first.url
    second = SharedService(tmp_path / "state")
    servers.append(second)
    assert second.process.wait(60) == 5
    assert f"process {first.process.pid}" in second.output.read_text()


def test_an_address_in_use_is_told(tmp_path: Path, servers: list[SharedService]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = SharedService(tmp_path / "state", f"127.0.0.1:{taken.getsockname()[1]}")
        servers.append(server)
        assert server.process.wait(60) == 5
    assert "ddress already in use" in server.output.read_text()
    assert "Traceback" not in server.output.read_text()


def options(tmp_path: Path, listen: str, **more: object) -> ServeOptions:
    return ServeOptions(Places(tmp_path / "state"), listen=listen, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("listen", ["0.0.0.0:7070", ":7070", "[::]:7070", "example.org:7070", "10.1.2.3:1"])
def test_without_tls_nobody_listens_to_other_machines(tmp_path: Path, listen: str) -> None:
    with pytest.raises(Unsafe, match="could read the tokens"):
        check_safety(options(tmp_path, listen))
    check_safety(options(tmp_path, listen, insecure=True))


@pytest.mark.parametrize("listen", ["localhost:0", "127.0.0.1:0", "[::1]:0", "127.8.8.8:0"])
def test_without_tls_this_machine_may_be_listened_to(tmp_path: Path, listen: str) -> None:
    check_safety(options(tmp_path, listen))


@pytest.mark.parametrize("listen", ["7070", "host:", "host:port", "host:70000", ""])
def test_an_address_that_is_none_is_a_mistake_of_usage(
    tmp_path: Path, listen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(options(tmp_path, listen)) == 2
    assert "HOST:PORT" in capsys.readouterr().err


def test_files_of_tls_that_are_missing_are_told(tmp_path: Path) -> None:
    with pytest.raises(Unsafe, match="cannot be read"):
        check_safety(options(tmp_path, "localhost:0", tls_cert=tmp_path / "none"))
    (tmp_path / "key").touch()
    with pytest.raises(Unsafe, match="without a certificate"):
        check_safety(options(tmp_path, "localhost:0", tls_key=tmp_path / "key"))


def test_an_address_is_taken_apart_and_listened_at() -> None:
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert host_and_port(":80") == ("", 80)
    sockets = tcp_sockets("localhost:0")
    assert len({each.getsockname()[1] for each in sockets}) == 1
    for each in sockets:
        each.close()


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 900), ("90", 90), ("0.5s", 0.5), ("15m", 900), ("2h", 7200), ("soon", 900)]
)
def test_the_time_to_be_idle_is_said_in_seconds_or_with_a_unit(text: str, seconds: float) -> None:
    assert idle_seconds(text) == seconds
    assert idle_seconds("never") is None
