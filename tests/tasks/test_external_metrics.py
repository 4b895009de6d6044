"""What an HPA is told, to whom it is told, and how a selector is read."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobman.tasks.external_metrics import GROUP, METRICS, VERSION, Said, Value, answer
from jobman.tasks.front_proxy import Certificate, FrontProxy, ProxiedServer
from jobman.tasks.label_selectors import WrongSelector, selects

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES = [
    Value(metric="jobman_outstanding_seconds", labels={"image": "a"}, value=12.5, at=AT),
    Value(metric="jobman_outstanding_seconds", labels={"image": "b"}, value=3.0, at=AT),
    Value(metric="jobman_slots_busy", labels={"image": "a"}, value=4.0, at=AT),
]
ROOT = f"/apis/{GROUP}/{VERSION}"


def asked(path: str, query: str = "") -> Said:
    return answer(path, query, VALUES, "work")


# -- answers -------------------------------------------------------------------------------------------------


def test_the_metrics_are_discovered():
    assert [each["name"] for each in asked(ROOT).body["resources"]] == list(METRICS)
    assert asked("/apis").body["groups"][0]["preferredVersion"]["groupVersion"] == f"{GROUP}/{VERSION}"
    assert asked(f"/apis/{GROUP}").body["name"] == GROUP


def test_a_selector_chooses_values_and_seconds_keep_their_fractions():
    said = asked(f"{ROOT}/namespaces/work/jobman_outstanding_seconds", "labelSelector=image%3Da")
    assert said.body["items"] == [
        {
            "metricName": "jobman_outstanding_seconds",
            "metricLabels": {"image": "a"},
            "timestamp": "2026-01-02T03:04:05Z",
            "value": "12500m",
        }
    ]


def test_without_a_selector_all_values_of_the_metric_come():
    said = asked(f"{ROOT}/namespaces/work/jobman_outstanding_seconds")
    assert [each["value"] for each in said.body["items"]] == ["12500m", "3"]


def test_another_namespace_hears_nothing_of_the_work():
    said = asked(f"{ROOT}/namespaces/other/jobman_outstanding_seconds")
    assert (said.status, said.body["items"]) == (200, [])


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        (f"{ROOT}/namespaces/work/unknown", "", 404),
        (f"{ROOT}/namespaces/work/jobman_outstanding_seconds", "labelSelector=a%20b", 400),
        (f"/apis/{GROUP}/v2", "", 404),
        ("/openapi/v2", "", 404),
    ],
)
def test_what_is_not_there_or_wrong_is_said_as_a_status(path, query, status):
    said = asked(path, query)
    assert (said.status, said.body["kind"], said.body["code"]) == (status, "Status", status)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("image=a", True),
        ("image == a", True),
        ("image=b", False),
        ("image!=b", True),
        ("image in (a, b)", True),
        ("image notin (a,b)", False),
        ("image notin (c),tenant=x", True),
        ("tenant", True),
        ("!tenant", False),
        ("!old,image in (a)", True),
        ("old=", False),
    ],
)
def test_selectors_are_read_as_kubernetes_writes_them(text, fits):
    assert selects(text)({"image": "a", "tenant": "x"}) is fits


@pytest.mark.parametrize("text", ["a b", "a in b", "=a", "a=b=c", ","])
def test_what_is_no_selector_is_refused(text):
    with pytest.raises(WrongSelector):
        selects(text)


# -- who may ask ---------------------------------------------------------------------------------------------


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_authority(folder: Path, name: str) -> None:
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
    openssl(folder, "req", "-x509", *key, "-days", "2", "-subj", f"/CN={name}", *files)


def make_certificate(folder: Path, name: str, authority: str, common_name: str) -> None:
    key = (
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        f"/CN={common_name}",
    )
    openssl(folder, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr")
    signing = ("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "2")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.crt")


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("keys")
    for authority in ("front", "other"):
        make_authority(folder, authority)
    make_certificate(folder, "server", "other", "localhost")
    make_certificate(folder, "proxy", "front", "front-proxy")
    make_certificate(folder, "somebody", "front", "somebody")
    make_certificate(folder, "forged", "other", "front-proxy")
    return folder


async def fetch(port: int, path: str, shown: tuple[Path, Path] | None, *, method: str = "GET") -> int:
    """The status of an answer; 0 where there is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if shown is not None:
        context.load_cert_chain(*shown)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        line = await reader.readline()
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return 0
    return int(line.split()[1]) if line else 0


def statuses(keys: Path, proxy: FrontProxy, *asked: tuple[str, str | None]) -> list[int]:
    async def scenario() -> list[int]:
        server = ProxiedServer(lambda path, query: answer(path, query, VALUES, "work"))
        certificate = Certificate(keys / "server.crt", keys / "server.key")
        port = await server.listen(("127.0.0.1", 0), certificate, proxy)
        try:
            return [
                await fetch(port, path, (keys / f"{name}.crt", keys / f"{name}.key") if name else None)
                for path, name in asked
            ]
        finally:
            await server.close()

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def front(keys: Path, *names: str) -> FrontProxy:
    return FrontProxy((keys / "front.crt").read_text(), names)


def test_only_the_named_front_proxy_is_answered(keys):
    asked = ((ROOT, "proxy"), (ROOT, "somebody"), (ROOT, None), (ROOT, "forged"))
    assert statuses(keys, front(keys, "front-proxy"), *asked) == [200, 403, 403, 0]


def test_where_no_name_is_required_whoever_the_authority_signed_is_answered(keys):
    assert statuses(keys, front(keys), (ROOT, "somebody"), (ROOT, None)) == [200, 403]


def test_health_is_told_to_everybody(keys):
    assert statuses(keys, front(keys, "front-proxy"), ("/healthz", None)) == [200]


def test_it_begins_anew_with_other_certificates_at_the_same_port(keys):
    async def scenario() -> list[int]:
        server = ProxiedServer(lambda path, query: answer(path, query, VALUES, "work"))
        certificate = Certificate(keys / "server.crt", keys / "server.key")
        port = await server.listen(("127.0.0.1", 0), certificate, front(keys, "front-proxy"))
        shown = keys / "somebody.crt", keys / "somebody.key"
        found = [await fetch(port, ROOT, shown)]
        await server.listen(("127.0.0.1", port), certificate, front(keys, "somebody"))
        found += [await fetch(port, ROOT, shown), await fetch(port, ROOT, shown, method="POST")]
        await server.close()
        return found

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) == [403, 200, 405]
