"""How a registry is spoken to: logins, pauses, ways around, and what is told where it does not go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.client.images import link as link_module
from jobman.client.images import wire
from jobman.client.images.catalogue import Catalogue
from jobman.client.images.errors import (
    Denied,
    NoCatalog,
    RegistryError,
    Unreachable,
    WrongName,
    WrongSettings,
)
from jobman.settings.registries import Registry
from tests.client.pushing import OCI, digest_of
from tests.client.webserver import HANG_UP, Keys, Reply, Request, Served, as_json, refusal, serving

CONFIG = json.dumps({"os": "linux", "architecture": "amd64", "config": {"Cmd": ["fit"]}}).encode()
MANIFEST = json.dumps(
    {
        "schemaVersion": 2,
        "mediaType": f"{OCI}manifest.v1+json",
        "config": {"mediaType": f"{OCI}config.v1+json", "digest": digest_of(CONFIG), "size": len(CONFIG)},
        "layers": [],
    }
).encode()


class Plain:
    """A registry with one image; `changed` answers some of its paths in another way."""

    def __init__(self) -> None:
        self.changed: dict[str, Callable[[Request], Reply]] = {}

    def __call__(self, request: Request) -> Reply:
        for part, answer in self.changed.items():
            if part in request.path:
                return answer(request)
        if request.path == "/v2/":
            return as_json({})
        if request.path == "/v2/_catalog":
            return as_json({"repositories": ["lab/fit"]})
        if request.path == "/v2/lab/fit/tags/list":
            return as_json({"name": "lab/fit", "tags": ["1"]})
        if request.path in ("/v2/lab/fit/manifests/1", f"/v2/lab/fit/manifests/{digest_of(MANIFEST)}"):
            return Reply(200, MANIFEST, {"Content-Type": f"{OCI}manifest.v1+json"})
        if request.path == f"/v2/lab/fit/blobs/{digest_of(CONFIG)}":
            return Reply(200, CONFIG, {"Content-Type": "application/octet-stream"})
        return refusal(404, "NAME_UNKNOWN", "repository name not known to registry")


@pytest.fixture
def plain() -> Plain:
    return Plain()


@pytest.fixture
def served(plain: Plain) -> Iterator[Served]:
    with serving(plain) as server:
        yield server


def asked(url: str, home: Path, *, patience: float = 0.5, **keys: Any) -> Catalogue:
    registry = Registry(name="lab", url=url, **keys)
    return Catalogue({"lab": registry}, environment={"HOME": str(home)}, patience=patience)


def with_password(home: Path) -> dict[str, Any]:
    (home / "password").write_text("pa55")
    return {"username": "ada", "password_file": str(home / "password")}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


# -- pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["{}", "http://inside:5000{}"], ids=["a path", "a host nobody can reach"])
def test_the_next_page_is_asked_of_the_same_host(plain, served, tmp_path, place):
    def page(request: Request) -> Reply:
        if request.one("last"):
            return as_json({"repositories": ["b"]})
        return as_json(
            {"repositories": ["a"]}, Link=f'<{place.format("/v2/_catalog?last=a&n=100")}>; rel="next"'
        )

    plain.changed["_catalog"] = page
    found = asked(served.url, tmp_path).images(bare=True).items
    assert [image.repository for image in found] == ["a", "b"]


def test_a_list_that_leads_to_itself_is_told(plain, served, tmp_path):
    plain.changed["_catalog"] = lambda _: as_json(
        {"repositories": ["a"]}, Link='</v2/_catalog?n=100>; rel="next"'
    )
    with pytest.raises(Unreachable, match="never ends"):
        asked(served.url, tmp_path).images()


@pytest.mark.parametrize("body", [{}, {"repositories": None}, {"repositories": []}])
def test_an_empty_catalog_is_no_mistake(plain, served, tmp_path, body):
    plain.changed["_catalog"] = lambda _: as_json(body)
    assert asked(served.url, tmp_path).images().items == []


# -- a registry that does not tell ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 405])
def test_a_registry_without_a_catalog_is_told_and_its_images_can_be_asked_for(
    plain, served, tmp_path, status
):
    plain.changed["_catalog"] = lambda _: refusal(status, "UNSUPPORTED", "not here")
    with pytest.raises(NoCatalog, match=rf"does not tell which images it has \(HTTP {status}\)") as told:
        asked(served.url, tmp_path).images()
    assert (told.value.exit_code, "image-details" in told.value.advice) == (4, True)
    assert asked(served.url, tmp_path).details("lab/fit:1").command == ["fit"]


def test_what_is_no_registry_at_all_is_told(tmp_path):
    page = Reply(404, b"<html>", {"Content-Type": "text/html"})
    with serving(lambda _: page) as served, pytest.raises(Unreachable, match="as a registry does") as told:
        asked(served.url, tmp_path).images()
    assert "(HTTP 404, text/html)" in told.value.message


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"repositories": 5}', b"\xff", b"[" * 100_000])
def test_an_answer_that_makes_no_sense_is_told(plain, served, tmp_path, body):
    plain.changed["_catalog"] = lambda _: Reply(200, body, {"Content-Type": "application/json"})
    with pytest.raises(Unreachable, match="does not answer as a registry does"):
        asked(served.url, tmp_path).images()


def test_an_answer_without_an_end_is_given_up(plain, served, tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "LARGEST", 1000)
    plain.changed["_catalog"] = lambda _: Reply(200, b" " * 2000, {})
    with pytest.raises(Unreachable, match="has no end"):
        asked(served.url, tmp_path).images()


# -- damaged and strange images ------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["manifests", "blobs"])
def test_what_is_not_what_its_digest_says_is_refused(plain, served, tmp_path, what):
    plain.changed[what] = lambda request: Reply(200, MANIFEST if request.path.endswith("/1") else b"{}", {})
    name = "lab/fit:1" if what == "blobs" else f"lab/fit@{digest_of(MANIFEST)}"
    with pytest.raises(RegistryError, match="damaged"):
        asked(served.url, tmp_path).details(name)


def test_an_image_of_the_old_form_is_told_and_listed_without_its_size(plain, served, tmp_path):
    old = json.dumps({"schemaVersion": 1, "name": "lab/fit", "fsLayers": []}).encode()
    plain.changed["manifests"] = lambda _: Reply(200, old, {})
    with pytest.raises(RegistryError, match="schema 1"):
        asked(served.url, tmp_path).details("lab/fit:1")
    (image,) = asked(served.url, tmp_path).images().items
    assert (image.tags, image.size) == (["1"], None)


# -- pauses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_registry_that_names_a_pause_is_asked_again(plain, served, tmp_path, status):
    turns = iter(range(2))

    def busy(_: Request) -> Reply:
        if next(turns, None) is not None:
            return refusal(status, "TOOMANYREQUESTS", "slow down", Retry_After="0")
        return as_json({"repositories": ["lab/fit"]})

    plain.changed["_catalog"] = busy
    assert len(asked(served.url, tmp_path, patience=15).images(bare=True).items) == 1


@pytest.mark.parametrize("pause", ["3600", "Fri, 31 Dec 2099 23:59:59 GMT"])
def test_a_pause_that_is_too_long_is_told_at_once(plain, served, tmp_path, pause):
    plain.changed["_catalog"] = lambda _: refusal(429, "TOOMANYREQUESTS", "slow down", Retry_After=pause)
    with pytest.raises(Unreachable, match=r"a longer pause \(HTTP 429: slow down\)"):
        asked(served.url, tmp_path).images()
    assert served.paths.count("/v2/_catalog") == 1


# -- logins -------------------------------------------------------------------------------------------------


def test_a_password_is_sent_only_when_it_is_asked_for(plain, served, tmp_path):
    asked(served.url, tmp_path, **with_password(tmp_path), kind="oci").images()
    assert not [request for request in served.requests if "Authorization" in request.headers]


def test_many_questions_at_once_log_in_each(plain, served, tmp_path):
    lock, seen = threading.Lock(), []

    def guarded(request: Request) -> Reply:
        with lock:
            seen.append("Authorization" in request.headers)
        if "Authorization" not in request.headers:
            return refusal(401, "UNAUTHORIZED", "who?", Www_Authenticate='Basic realm="x"')
        return as_json({"name": "x", "tags": []})

    plain.changed["_catalog"] = lambda _: as_json({"repositories": [f"lab/n{n}" for n in range(40)]})
    plain.changed["tags/list"] = guarded
    found = asked(served.url, tmp_path, **with_password(tmp_path)).images()
    assert (found.items, found.failures) == ([], [])
    assert seen.count(True) == 40


def test_a_password_is_not_sent_to_a_token_service_without_encryption(plain, served, tmp_path):
    challenge = 'Bearer realm="http://localhost:x@tokens.example.org/token",service="x"'
    plain.changed["_catalog"] = lambda _: refusal(401, "UNAUTHORIZED", "who?", Www_Authenticate=challenge)
    with pytest.raises(Denied, match="unencrypted only"):
        asked(served.url, tmp_path, **with_password(tmp_path)).images()


@pytest.mark.parametrize("realm", ["", "file:///etc/passwd", "nowhere", "https://[x", "https://a:b"])
def test_a_token_service_without_an_address_is_told(plain, served, tmp_path, realm):
    header = f'Bearer realm="{realm}",service="x"'
    plain.changed["_catalog"] = lambda _: refusal(401, "UNAUTHORIZED", "who?", Www_Authenticate=header)
    with pytest.raises(Unreachable, match="does not say from where"):
        asked(served.url, tmp_path).images()


def test_a_login_of_docker_is_not_sent_without_encryption(tmp_path):
    (tmp_path / ".docker").mkdir()
    entry = {"auths": {"registry.example.org": {"auth": "YWRhOnBhNTU="}}}
    (tmp_path / ".docker" / "config.json").write_text(json.dumps(entry))
    registry = Registry(name="lab", url="http://registry.example.org")
    link = link_module.Link(registry, environment={"HOME": str(tmp_path)})
    assert (bool(link.login), "unencrypted" in link.login.source) == (False, True)


def test_a_helper_that_is_missing_is_told_only_where_a_login_is_needed(plain, served, tmp_path):
    (tmp_path / ".docker").mkdir()
    entry = {"credHelpers": {served.host: "nowhere-to-be-found"}}
    (tmp_path / ".docker" / "config.json").write_text(json.dumps(entry))
    assert len(asked(served.url, tmp_path).images().items) == 1
    plain.changed["_catalog"] = lambda _: refusal(401, "UNAUTHORIZED", "who?")
    with pytest.raises(Denied) as told:
        asked(served.url, tmp_path).images()
    assert "docker-credential-nowhere-to-be-found is not installed" in told.value.advice


def test_a_right_that_is_missing_is_told_otherwise_than_a_wrong_password(plain, served, tmp_path):
    plain.changed["tags/list"] = lambda _: refusal(403, "DENIED", "requested access is denied")
    with pytest.raises(Denied, match="does not let you see lab/fit: requested access is denied") as told:
        asked(served.url, tmp_path, **with_password(tmp_path)).details("lab/fit:1")
    assert "has ada the right to list and pull there?" in told.value.advice


# -- ways around --------------------------------------------------------------------------------------------


def test_a_blob_may_be_kept_elsewhere_and_no_login_goes_there(plain, served, tmp_path):
    with serving(lambda _: Reply(200, CONFIG, {})) as store:
        place = f"{store.url.replace('127.0.0.1', 'localhost')}/blob"
        plain.changed["blobs"] = lambda request: (
            Reply(307, b"", {"Location": place})
            if "Authorization" in request.headers
            else refusal(401, "UNAUTHORIZED", "who?", Www_Authenticate="Basic")
        )
        found = asked(served.url, tmp_path, **with_password(tmp_path)).details("lab/fit:1")
        assert found.command == ["fit"]
        assert ["Authorization" in request.headers for request in store.requests] == [False]


def test_a_way_around_that_is_not_encrypted_is_not_taken(plain, keys, tmp_path):
    plain.changed["_catalog"] = lambda _: Reply(302, b"", {"Location": "http://127.0.0.1:1/x"})
    with serving(plain, keys) as served, pytest.raises(Unreachable, match="not encrypted") as told:
        asked(served.url, tmp_path, ca=str(keys.authority)).images()
    assert "points to http://127.0.0.1:1" in told.value.message


@pytest.mark.parametrize("place", ["http://[", "file:///etc/passwd", "http://a:99999/"])
def test_a_way_around_to_nowhere_is_told(plain, served, tmp_path, place):
    plain.changed["_catalog"] = lambda _: Reply(302, b"", {"Location": place})
    with pytest.raises(Unreachable, match="points to no address"):
        asked(served.url, tmp_path).images()


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 70}.example.org"])
def test_a_way_around_to_a_name_that_no_host_can_have_is_told(plain, served, tmp_path, host):
    plain.changed["_catalog"] = lambda _: Reply(302, b"", {"Location": f"http://{host}/"})
    with pytest.raises(Unreachable, match=f"{host}, where {served.url} points to, cannot be reached"):
        asked(served.url, tmp_path).images()


def test_a_circle_of_ways_around_is_told(plain, served, tmp_path):
    plain.changed["_catalog"] = lambda request: Reply(
        302, b"", {"Location": f"/v2/_catalog?turn={len(served.requests)}"}
    )
    with pytest.raises(Unreachable, match="points in a circle"):
        asked(served.url, tmp_path).images()


# -- connections that break ----------------------------------------------------------------------------------


def test_a_connection_that_breaks_is_made_again(plain, served, tmp_path):
    turns = iter(range(2))

    def breaking(_: Request) -> Reply:
        return HANG_UP if next(turns, None) is not None else as_json({"repositories": ["lab/fit"]})

    plain.changed["_catalog"] = breaking
    assert len(asked(served.url, tmp_path, patience=15).images(bare=True).items) == 1


def test_a_registry_that_hangs_up_for_good_is_told(plain, served, tmp_path):
    plain.changed["_catalog"] = lambda _: HANG_UP
    with pytest.raises(Unreachable, match="cannot be reached"):
        asked(served.url, tmp_path).images()


def test_a_registry_that_does_not_answer_is_given_up(plain, served, tmp_path, monkeypatch):
    monkeypatch.setattr(wire, "ANSWER_SECONDS", 0.2)
    over = threading.Event()

    def silent(_: Request) -> Reply:
        over.wait(30)
        return as_json({})

    plain.changed["_catalog"] = silent
    try:
        with pytest.raises(Unreachable, match="does not answer in time"):
            asked(served.url, tmp_path).images()
    finally:
        over.set()


def test_a_proxy_of_the_environment_is_asked_in_its_place(plain, tmp_path):
    def proxied(request: Request) -> Reply:
        assert request.path.startswith("http://registry.example.org/")
        found: Reply = plain(request._replace(path=request.path.removeprefix("http://registry.example.org")))
        return found

    with serving(proxied) as proxy:
        registry = Registry(name="lab", url="http://registry.example.org")
        environment = {"HOME": str(tmp_path), "HTTP_PROXY": proxy.url}
        found = Catalogue({"lab": registry}, environment=environment).images()
    assert [image.repository for image in found.items] == ["lab/fit"]


def test_a_proxy_that_is_not_there_is_told_without_its_password(tmp_path):
    registry = Registry(name="lab", url="http://registry.example.org")
    environment = {"HOME": str(tmp_path), "HTTP_PROXY": "http://ada:pa55@127.0.0.1:1"}
    with pytest.raises(Unreachable, match=r"through the proxy http://127\.0\.0\.1:1: nobody listens") as told:
        Catalogue({"lab": registry}, environment=environment).images()
    assert "pa55" not in f"{told.value.message} {told.value.advice}"


# -- what a registry might say to do harm --------------------------------------------------------------------


def test_names_that_are_none_are_neither_asked_for_nor_shown(plain, served, tmp_path):
    names = ["../../etc", "a\x1b[31m", "a\nb", "A", "/v2/x", "lab/fit", "x" * 600]
    plain.changed["_catalog"] = lambda _: as_json({"repositories": names})
    assert [image.repository for image in asked(served.url, tmp_path).images().items] == ["lab/fit"]
    assert {path for path in served.paths if "tags" in path} == {"/v2/lab/fit/tags/list"}


def test_words_of_a_registry_cannot_play_tricks_with_a_terminal(plain, served, tmp_path):
    plain.changed["_catalog"] = lambda _: refusal(403, "DENIED", "no\x1b[2J\nway\x07")
    with pytest.raises(Denied) as told:
        asked(served.url, tmp_path).images()
    assert told.value.message.isprintable()


# -- nobody there -------------------------------------------------------------------------------------------


def test_an_address_where_nobody_listens_is_told(tmp_path):
    with pytest.raises(
        Unreachable, match=r"at http://127\.0\.0\.1:1 cannot be reached: nobody listens"
    ) as told:
        asked("http://127.0.0.1:1", tmp_path).images()
    assert told.value.exit_code == 5


def test_a_host_that_nobody_knows_is_told(tmp_path):
    with pytest.raises(Unreachable, match=r"nobody knows its host name|does not answer in time"):
        asked("https://registry.invalid", tmp_path).images()


def test_a_registry_without_tls_is_told_how_to_write_it(served, tmp_path):
    url = served.url.replace("http:", "https:")
    with pytest.raises(Unreachable, match="does not speak TLS") as told:
        asked(url, tmp_path).images()
    assert f"`url: {served.url}`" in told.value.advice.replace("name it ", "")


def test_an_authority_of_somebody_else_is_told_with_its_file(plain, keys, tmp_path):
    other = Keys(_folder(tmp_path / "other"))
    with serving(plain, keys) as served, pytest.raises(Unreachable, match="that is trusted") as told:
        asked(served.url, tmp_path, ca=str(other.authority)).images()
    assert told.value.advice.startswith(f"{other.authority}, which `ca` of the registry lab names")


def test_a_certificate_for_another_name_is_told(plain, keys, tmp_path):
    with serving(plain, keys) as served:
        url = served.url.replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(Unreachable, match="cannot be reached"):
            asked(url, tmp_path, ca=str(keys.authority)).images()


@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"\xff\xfe"])
def test_a_file_that_is_no_authority_is_a_mistake_of_the_settings(plain, keys, tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with serving(plain, keys) as served, pytest.raises(WrongSettings, match="cannot be used") as told:
        asked(served.url, tmp_path, ca=str(file)).images()
    assert told.value.exit_code == 3


# -- which registry -----------------------------------------------------------------------------------------


def test_without_any_registry_it_is_told_how_to_add_one(tmp_path):
    with pytest.raises(RegistryError, match="there is no registry in the settings") as told:
        Catalogue({}, environment={"HOME": str(tmp_path)}).images()
    assert "registries: [{name: lab" in told.value.advice


def test_the_registry_of_the_prefix_is_asked_where_the_settings_have_no_other(tmp_path):
    (registry,) = Catalogue({}, "registry.example.org:5000/lab/").registries()
    assert (registry.url, registry.host) == (
        "https://registry.example.org:5000",
        "registry.example.org:5000",
    )


def test_a_registry_is_chosen_by_its_name(served, tmp_path):
    catalogue = asked(served.url, tmp_path)
    assert [each.name for each in catalogue.registries("lab")] == ["lab"]
    with pytest.raises(WrongName, match="no registry lba") as told:
        catalogue.registries("lba")
    assert told.value.advice == "did you mean `lab`?"


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
