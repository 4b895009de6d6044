"""Servers that are verified, certificates that are shown, and ways through a proxy: with real TLS."""

import asyncio
import base64
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import msgspec
import pytest

from jobman.engines.kubernetes.access import Access, Login, Material, Plugin
from jobman.engines.kubernetes.errors import ConfigError, KubernetesError, Unreachable
from jobman.engines.kubernetes.link import Link
from jobman.engines.kubernetes.reaching import is_distrust, unreachable
from tests.engines.kubernetes.test_exec_plugin import V1

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]


class Keys:
    """An authority, and what it signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder)

    def authority(self, name: str) -> None:
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
        self.openssl("req", "-x509", *CURVE, *files, "-subj", f"/CN={name}", "-days", "2")

    def sign(self, name: str, *extension: str, days: str = "2", by: str = "ca") -> None:
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt"]
        added = [word for text in extension for word in ("-addext", text)]
        signed = ["-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-days", days]
        self.openssl("req", "-x509", *CURVE, *files, "-subj", f"/CN={name}", *signed, *added)


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Keys:
    made = Keys(tmp_path_factory.mktemp("keys"))
    made.authority("ca")
    made.authority("stranger")
    leaf = "basicConstraints=critical,CA:FALSE"
    made.sign("server", "subjectAltName=IP:127.0.0.1", leaf)
    made.sign("inside", "subjectAltName=DNS:inside.example", leaf)
    made.sign("ada", leaf)
    made.sign("eve", leaf)
    return made


@asynccontextmanager
async def serving(keys: Keys, certificate: str = "server") -> AsyncIterator[int]:
    """A server that answers with the name in the certificate it was shown."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=keys.file("ca.crt"))
    context.load_cert_chain(keys.file(f"{certificate}.crt"), keys.file(f"{certificate}.key"))
    context.verify_mode = ssl.CERT_OPTIONAL

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            shown = writer.get_extra_info("peercert") or {}
            names = dict(pair[0] for pair in shown.get("subject", ()))
            body = json.dumps({"you": names.get("commonName", "nobody")}).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def proxying(seen: list[str], refusal: bytes = b"") -> AsyncIterator[int]:
    """A proxy that opens a way to wherever it is asked."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(head.splitlines()[0])
        if refusal:
            writer.write(b"HTTP/1.1 " + refusal + b"\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, port = head.split()[1].rsplit(":", 1)
        there = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def ask(access: Access, environment: dict[str, str] | None = None) -> str:
    link = Link(access, environment=environment or {})
    try:
        return str(json.loads(await link.ask("GET", "/", safe=True))["you"])
    finally:
        await link.close()


def asked(keys: Keys, change: Callable[[Access], Access] = lambda it: it, certificate: str = "server") -> str:
    """Who the server says we are, when we come in the way that `change` makes of the plain one."""

    async def scenario() -> str:
        async with serving(keys, certificate) as port:
            plain = Access(
                server=f"https://127.0.0.1:{port}",
                context="one",
                source="the file",
                authority=Material(file=keys.file("ca.crt")),
            )
            return await ask(change(plain))

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def failure(keys: Keys, certificate: str = "server", **given) -> KubernetesError:
    with pytest.raises(KubernetesError) as raised:
        asked(keys, lambda access: msgspec.structs.replace(access, **given), certificate)
    return raised.value


def inline(file: str) -> Material:
    return Material(data=base64.b64encode(Path(file).read_bytes()).decode())


# -- the server ----------------------------------------------------------------------------------------------


def test_a_server_that_the_authority_signed_is_trusted(keys):
    assert asked(keys) == "nobody"


def test_the_authority_may_be_written_into_the_kubeconfig(keys):
    authority = inline(keys.file("ca.crt"))
    assert asked(keys, lambda access: msgspec.structs.replace(access, authority=authority)) == "nobody"


def test_the_certificate_of_the_server_itself_may_be_trusted(keys):
    authority = Material(file=keys.file("server.crt"))
    assert asked(keys, lambda access: msgspec.structs.replace(access, authority=authority)) == "nobody"


def test_a_server_that_another_signed_is_not_trusted(keys):
    error = failure(keys, authority=Material(file=keys.file("stranger.crt")))
    assert isinstance(error, Unreachable)
    assert "context one of the file" in error.message
    assert "not signed by an authority that is trusted" in error.message
    assert keys.file("stranger.crt") in error.advice


def test_without_an_authority_those_of_the_system_are_trusted_and_it_is_said_where_to_name_another(keys):
    error = failure(keys, authority=Material())
    assert "certificate-authority" in error.advice


def test_what_need_not_be_verified_is_not(keys):
    def insecure(access: Access) -> Access:
        return msgspec.structs.replace(access, authority=Material(), insecure=True)

    assert asked(keys, insecure, "inside") == "nobody"


def test_a_certificate_for_another_name_is_refused_with_advice(keys):
    error = failure(keys, "inside")
    assert "its certificate is for another name" in error.message
    assert "tls-server-name" in error.advice


def test_the_name_in_the_certificate_can_be_given(keys):
    def named(access: Access) -> Access:
        return msgspec.structs.replace(access, tls_server_name="inside.example")

    assert asked(keys, named, "inside") == "nobody"


def test_an_authority_that_is_no_certificate_is_refused(keys):
    error = failure(keys, authority=Material(file=keys.file("ca.key")))
    assert isinstance(error, ConfigError)
    assert "is not a certificate in PEM form" in error.message


@asynccontextmanager
async def answering(words: bytes) -> AsyncIterator[int]:
    """A server that says this, whatever it hears."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1)
            writer.write(words)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "it does not speak TLS"), (b"", "cannot be reached")],
)
def test_a_server_without_tls_is_told_from_one_that_hangs_up(words, expected):
    async def scenario() -> None:
        async with answering(words) as port:
            await ask(Access(server=f"https://127.0.0.1:{port}", insecure=True))

    with pytest.raises(Unreachable, match=expected):
        asyncio.run(scenario())


def test_a_server_that_does_not_answer_in_time_is_not_taken_for_one_with_a_wrong_certificate():
    timeout = httpx.ConnectTimeout("")
    timeout.__context__ = ssl.SSLWantReadError()
    error = unreachable(timeout, Access(server="https://one.example"))
    assert "it does not answer in time" in error.message
    assert not is_distrust(timeout)


# -- ourselves -----------------------------------------------------------------------------------------------


def showing(certificate: Material, key: Material) -> Callable[[Access], Access]:
    return lambda access: msgspec.structs.replace(access, login=Login(certificate=certificate, key=key))


def test_a_certificate_from_files_is_shown(keys):
    by_file = showing(Material(file=keys.file("ada.crt")), Material(file=keys.file("ada.key")))
    assert asked(keys, by_file) == "ada"


def test_a_certificate_from_the_kubeconfig_is_shown(keys):
    assert asked(keys, showing(inline(keys.file("ada.crt")), inline(keys.file("ada.key")))) == "ada"


def test_a_key_of_another_certificate_is_refused(keys):
    with pytest.raises(ConfigError, match="client certificate cannot be used"):
        asked(keys, showing(Material(file=keys.file("ada.crt")), Material(file=keys.file("eve.key"))))


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(keys):
    keys.openssl("ec", "-in", "ada.key", "-aes256", "-passout", "pass:x", "-out", "locked.key")
    with pytest.raises(ConfigError, match="its key has a password"):
        asked(keys, showing(Material(file=keys.file("ada.crt")), Material(file=keys.file("locked.key"))))


def test_a_plugin_that_issues_another_certificate_is_followed(keys, tmp_path):
    who = tmp_path / "who"
    script = tmp_path / "login"
    script.write_text(
        "#!/bin/sh\n"
        f"who=$(cat {who})\n"
        "awk -v version="
        + V1
        + ' \'function text(file, all, line) { all = ""; while ((getline line < file) > 0)'
        ' all = all line "\\\\n"; return all } BEGIN { printf "{\\"apiVersion\\": \\"%s\\", \\"status\\": '
        '{\\"expirationTimestamp\\": \\"2020-01-01T00:00:00Z\\", \\"clientCertificateData\\": \\"%s\\", '
        '\\"clientKeyData\\": \\"%s\\"}}", version, text(ARGV[1]), text(ARGV[2]) }\' '
        f"{keys.folder}/$who.crt {keys.folder}/$who.key\n"
    )
    script.chmod(0o755)
    login = Login(plugin=Plugin(command=str(script), api_version=V1, interactive_mode="Never"))

    async def scenario() -> list[str]:
        async with serving(keys) as port:
            access = Access(
                server=f"https://127.0.0.1:{port}", authority=Material(file=keys.file("ca.crt")), login=login
            )
            link = Link(access, environment={})
            names = []
            for name in ("ada", "eve"):
                who.write_text(name)
                names.append(json.loads(await link.ask("GET", "/", safe=True))["you"])
            await link.close()
            return names

    assert asyncio.run(scenario()) == ["ada", "eve"]


# -- proxies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["kubeconfig", "environment"])
@pytest.mark.parametrize(("certificate", "name"), [("server", ""), ("inside", "inside.example")])
def test_a_cluster_behind_a_proxy_is_reached_and_verified(keys, by, certificate, name):
    seen: list[str] = []

    async def scenario() -> str:
        async with serving(keys, certificate) as port, proxying(seen) as proxy:
            url = f"http://127.0.0.1:{proxy}"
            access = Access(
                # The loopback addresses are never reached through a proxy of the environment.
                server=f"https://127.0.0.1:{port}" if by == "kubeconfig" else f"https://0.0.0.0:{port}",
                authority=Material(file=keys.file("ca.crt")),
                tls_server_name=name or "127.0.0.1",
                proxy=url if by == "kubeconfig" else "",
            )
            return await ask(access, {"HTTPS_PROXY": url} if by == "environment" else {})

    assert asyncio.run(scenario()) == "nobody"
    assert len(seen) == 1
    assert seen[0].startswith("CONNECT ")


def test_a_proxy_that_refuses_is_named_without_its_password(keys):
    async def scenario() -> None:
        async with proxying([], b"407 Proxy Authentication Required") as proxy:
            await ask(Access(server="https://one.example", proxy=f"http://me:hidden@127.0.0.1:{proxy}"))

    with pytest.raises(Unreachable) as raised:
        asyncio.run(scenario())
    assert "through the proxy http://127.0.0.1:" in raised.value.message
    assert "407 Proxy Authentication Required" in raised.value.message
    assert "hidden" not in raised.value.message
    assert "NO_PROXY" in raised.value.advice


def test_a_proxy_that_needs_a_library_says_which(keys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "socksio", None)
    with pytest.raises(ConfigError, match="needs a library") as raised:
        asyncio.run(ask(Access(server="https://one.example", proxy="socks5://me:hidden@127.0.0.1:1")))
    assert "hidden" not in raised.value.message
    assert "socksio" in raised.value.advice


# -- nobody there --------------------------------------------------------------------------------------------


def test_nobody_listens():
    async def scenario() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        await ask(Access(server=f"http://127.0.0.1:{port}", context="one", source="the file"))

    with pytest.raises(Unreachable, match="cannot be reached: nobody listens there") as raised:
        asyncio.run(scenario())
    assert raised.value.exit_code == 5
    assert "use-context" in raised.value.advice


def test_nobody_knows_the_name():
    with pytest.raises(Unreachable, match="nobody knows its host name"):
        asyncio.run(ask(Access(server="https://nowhere.invalid")))
