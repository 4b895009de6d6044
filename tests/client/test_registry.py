"""Lists and details of images from a real registry, with TLS of its own authority and passwords or tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import pytest

from jobman.client.images.catalogue import Catalogue
from jobman.client.images.errors import Denied, NotFound, RegistryError, Unreachable
from jobman.client.images.link import Link
from jobman.client.images.oci import Oci
from jobman.settings.registries import Registry
from tests.client.pushing import DESCRIPTION, OCI, Pusher
from tests.client.tokens import ISSUER, SERVICE, Tokens
from tests.client.webserver import Served, serving

pytestmark = pytest.mark.component("registry")
CONFIG = {
    "Cmd": ["python3"],
    "Entrypoint": ["/entry"],
    "Env": ["PATH=/usr/bin"],
    "WorkingDir": "/work",
    "User": "1000",
    "ExposedPorts": {"80/tcp": {}},
    "Labels": {DESCRIPTION: "fits curves"},
}


class Site:
    """The registry of the lab, and a folder in it that no other test uses."""

    def __init__(self, folder: Path) -> None:
        self.url = os.environ["JOBMAN_LAB_REGISTRY"]
        self.host = self.url.partition("://")[2]
        self.authority = Path(os.environ["JOBMAN_LAB_REGISTRY_CA"])
        self.user = os.environ["JOBMAN_LAB_REGISTRY_USER"]
        self.password_file = Path(os.environ["JOBMAN_LAB_REGISTRY_PASSWORD_FILE"])
        self.home = folder
        self.folder = f"t{uuid4().hex[:12]}"

    @property
    def password(self) -> str:
        return self.password_file.read_text()

    def pusher(self) -> Pusher:
        return Pusher(self.url, self.authority, (self.user, self.password))

    def catalogue(self, **keys: Any) -> Catalogue:
        keys = {
            "username": self.user,
            "password_file": str(self.password_file),
            "ca": str(self.authority),
            **keys,
        }
        registry = Registry(name="lab", url=self.url, **keys)
        prefix = f"{self.host}/{self.folder}/"
        return Catalogue({"lab": registry}, prefix, environment=self.environment(), patience=0.5)

    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": f"{self.home}:{os.environ['PATH']}"}

    def names(self, catalogue: Catalogue) -> list[str]:
        return [image.image for image in catalogue.images([f"{self.folder}/"]).items]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def pusher(site: Site) -> Iterator[Pusher]:
    with site.pusher() as pusher:
        yield pusher


# -- the list -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("docker", [False, True], ids=["OCI", "Docker"])
def test_images_have_tags_description_size_and_the_time_of_their_build(site, pusher, docker):
    pusher.image(f"{site.folder}/fit", "1.9", "1.10", config=CONFIG, docker=docker)
    (image,) = site.catalogue().images([f"{site.folder}/"]).items
    assert (image.image, image.registry) == ("fit", "lab")
    assert (image.tags, image.description) == (["1.10", "1.9"], "fits curves")
    assert image.updated_at == pytest.approx(1772272800.123456)
    assert image.size is not None
    assert image.size > 10_000


def test_the_catalog_is_read_to_its_end(site, pusher):
    for number in range(7):
        pusher.image(f"{site.folder}/image-{number}", "1")

    async def all_names() -> list[str]:
        registry = Registry(
            name="lab",
            url=site.url,
            ca=str(site.authority),
            username=site.user,
            password_file=str(site.password_file),
        )
        async with Link(registry, environment=site.environment()) as link:
            return await Oci(link, page=2).repositories([f"{site.folder}/"])

    assert asyncio.run(all_names()) == [f"{site.folder}/image-{number}" for number in range(7)]


def test_what_was_deleted_and_what_is_no_image_is_not_listed(site, pusher):
    gone = pusher.image(f"{site.folder}/gone", "1")
    pusher.delete(f"{site.folder}/gone", gone)
    pusher.image(f"{site.folder}/fit", "1")
    helm = pusher.blob(f"{site.folder}/chart", b"{}")
    chart = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}manifest.v1+json",
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": helm, "size": 2},
        "layers": [],
    }
    pusher.manifest(f"{site.folder}/chart", chart, "1")
    assert site.names(site.catalogue()) == ["fit"]
    with pytest.raises(RegistryError, match=r"is not an image, but application/vnd\.cncf\.helm"):
        site.catalogue().details("chart:1")


def test_signatures_beside_an_image_are_no_tags_of_it(site, pusher):
    pusher.image(f"{site.folder}/fit", "1", f"sha256-{'a' * 64}.sig")
    (image,) = site.catalogue().images([f"{site.folder}/"]).items
    assert image.tags == ["1"]


# -- one image ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("docker", [False, True], ids=["OCI", "Docker"])
def test_details_tell_what_the_configuration_says(site, pusher, docker):
    digest = pusher.image(f"{site.folder}/fit", "1", "2", config=CONFIG, docker=docker)
    found = site.catalogue().details("fit:1")
    assert (found.image, found.repository, found.tag) == ("fit", f"{site.folder}/fit", "1")
    assert (found.digest, found.tags, found.platform) == (digest, ["2", "1"], "linux/amd64")
    assert (found.entrypoint, found.command, found.env) == (["/entry"], ["python3"], {"PATH": "/usr/bin"})
    assert (found.workdir, found.user, found.ports) == ("/work", "1000", ["80/tcp"])
    assert (found.description, found.vulnerabilities) == ("fits curves", None)


@pytest.mark.parametrize("docker", [False, True], ids=["OCI", "Docker"])
def test_an_index_tells_its_platforms_and_shows_one(site, pusher, docker):
    name = f"{site.folder}/fit"
    arm = pusher.image(name, config={"Cmd": ["arm"]}, platform="linux/arm64", docker=docker)
    amd = pusher.image(name, config={"Cmd": ["amd"]}, docker=docker)
    index = pusher.index(name, "1", {"linux/arm64/v8": arm, "linux/amd64": amd}, docker)
    found = site.catalogue().details("fit")
    assert (found.digest, found.command) == (index, ["amd"])
    assert [(each.platform, each.digest) for each in found.platforms] == [
        ("linux/arm64/v8", arm),
        ("linux/amd64", amd),
    ]
    assert site.catalogue().details("fit", "linux/arm64").command == ["arm"]
    with pytest.raises(NotFound, match="not there for linux/s390x"):
        site.catalogue().details("fit", "linux/s390x")


def test_a_digest_names_an_image(site, pusher):
    digest = pusher.image(f"{site.folder}/fit", "1")
    found = site.catalogue().details(f"fit@{digest}")
    assert (found.digest, found.tag) == (digest, "")


def test_a_host_that_the_settings_do_not_have_is_asked_for_its_image(site, pusher):
    with pytest.raises(Unreachable, match="not signed by an authority that is trusted") as told:
        Catalogue({}, environment=site.environment()).details(f"{site.host}/{site.folder}/fit:1")
    assert "`registries: [{name: lab" in told.value.advice


@pytest.mark.parametrize(
    ("name", "message", "advice"),
    [("fitt", "has no image", "did you mean"), ("fit:2", "has no tag 2", "there are `1`")],
)
def test_what_is_not_there_gets_a_guess(site, pusher, name, message, advice):
    pusher.image(f"{site.folder}/fit", "1")
    with pytest.raises(NotFound, match=message) as told:
        site.catalogue().details(name)
    assert told.value.advice.startswith(advice)


# -- who asks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["images", "details"])
def test_without_a_login_it_is_told_what_to_set(site, pusher, act):
    nobody = site.catalogue(username=None, password_file=None)
    with pytest.raises(Denied) as told:
        nobody.images() if act == "images" else nobody.details("fit")
    assert "you asked without a login; set `username` and `password_file`" in told.value.advice


def test_a_wrong_password_is_told_without_it(site, tmp_path):
    (tmp_path / "wrong").write_text("wr0ng")
    with pytest.raises(Denied) as told:
        site.catalogue(password_file=str(tmp_path / "wrong")).images()
    assert f"is it right for {site.user}?" in told.value.advice
    assert "wr0ng" not in f"{told.value.message} {told.value.advice}"


def as_docker(site: Site, entry: dict[str, Any], place: str = ".docker/config.json") -> None:
    file = site.home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(entry))


@pytest.mark.parametrize("place", [".docker/config.json", ".config/containers/auth.json"])
def test_the_login_of_docker_or_podman_is_used(site, pusher, place):
    pusher.image(f"{site.folder}/fit", "1")
    pair = base64.b64encode(f"{site.user}:{site.password}".encode()).decode()
    as_docker(site, {"auths": {f"https://{site.host}/v2/": {"auth": pair}}}, place)
    assert site.names(site.catalogue(username=None, password_file=None)) == ["fit"]


@pytest.mark.parametrize("key", ["credHelpers", "credsStore"])
def test_a_credential_helper_of_docker_is_asked(site, pusher, key):
    pusher.image(f"{site.folder}/fit", "1")
    helper = site.home / "docker-credential-lab"
    answer = json.dumps({"Username": site.user, "Secret": site.password})
    helper.write_text(f"#!/bin/sh\nread host\n[ \"$host\" = {site.host} ] && echo '{answer}'\n")
    helper.chmod(0o755)
    named = {"credHelpers": {site.host: "lab"}, "credsStore": "lab", "auths": {site.host: {}}}
    as_docker(site, {"auths": named["auths"], key: named[key]})
    assert site.names(site.catalogue(username=None, password_file=None)) == ["fit"]


# -- tokens -------------------------------------------------------------------------------------------------


@contextmanager
def a_registry_with_tokens(folder: Path, realm: str, certificate: Path) -> Iterator[str]:
    """A registry of the test's own, which believes only the tokens of this service."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    settings = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "http": {"addr": f"127.0.0.1:{port}", "secret": "any"},
        "auth": {
            "token": {
                "realm": realm,
                "service": SERVICE,
                "issuer": ISSUER,
                "rootcertbundle": str(certificate),
            }
        },
    }
    (folder / "registry.yml").write_text(json.dumps(settings))
    program = os.environ["JOBMAN_LAB_REGISTRY_PROGRAM"]
    with (folder / "registry.out").open("wb") as output:
        process = subprocess.Popen([program, "serve", folder / "registry.yml"], stdout=output, stderr=output)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = monotonic() + 30
    while monotonic() < deadline:
        assert process.poll() is None, "the registry has ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        sleep(0.02)
    raise AssertionError("the registry does not listen")


class Guarded:
    """A registry with tokens, and the service that gives them."""

    def __init__(self, url: str, tokens: Tokens, service: Served, home: Path) -> None:
        self.url, self.tokens, self.service, self.home = url, tokens, service, home

    def catalogue(self, login: tuple[str, str] | None = None) -> Catalogue:
        keys: dict[str, Any] = {}
        if login is not None:
            (self.home / "password").write_text(login[1])
            keys = {"username": login[0], "password_file": str(self.home / "password")}
        registry = Registry(name="lab", url=self.url, **keys)
        return Catalogue({"lab": registry}, environment={"HOME": str(self.home)}, patience=0.5)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    tokens = Tokens(tmp_path)
    tokens.passwords = {"ada": "pa55"}
    with (
        serving(tokens) as service,
        a_registry_with_tokens(tmp_path, f"{service.url}/token", tokens.certificate) as url,
    ):
        everything = [f"repository:{name}:pull,push" for name in ("open/fit", "hidden/plan")]
        with Pusher(url, token=tokens.token(*everything)) as pusher:
            pusher.image("open/fit", "1", config={"Cmd": ["fit"]})
            pusher.image("hidden/plan", "1")
        yield Guarded(url, tokens, service, tmp_path)


def listed(catalogue: Catalogue) -> dict[str, list[str]]:
    return {image.repository: image.tags for image in catalogue.images().items}


@pytest.mark.slow
def test_a_token_is_got_for_what_is_asked(guarded):
    guarded.tokens.grants["ada"] = ["registry:catalog:", "repository:"]
    catalogue = guarded.catalogue(("ada", "pa55"))
    assert listed(catalogue) == {"hidden/plan": ["1"], "open/fit": ["1"]}
    assert catalogue.details("open/fit:1").command == ["fit"]
    asked = {request.one("scope") for request in guarded.service.requests}
    assert asked == {"registry:catalog:*", "repository:open/fit:pull", "repository:hidden/plan:pull"}
    assert {request.one("service") for request in guarded.service.requests} == {SERVICE}


@pytest.mark.slow
def test_nobody_gets_tokens_for_what_is_open(guarded):
    guarded.tokens.grants[""] = ["repository:open/"]
    assert guarded.catalogue().details("open/fit:1").command == ["fit"]
    with pytest.raises(Denied, match="does not let you see hidden/plan"):
        guarded.catalogue().details("hidden/plan:1")
    with pytest.raises(Denied, match="does not let you see the list of its images"):
        guarded.catalogue().images()


@pytest.mark.slow
def test_an_image_that_may_not_be_looked_into_is_listed_all_the_same(guarded):
    guarded.tokens.grants["ada"] = ["registry:catalog:", "repository:open/"]
    found = guarded.catalogue(("ada", "pa55")).images()
    assert {image.repository: image.tags for image in found.items} == {"hidden/plan": [], "open/fit": ["1"]}
    assert [(failure.code, failure.exit) for failure in found.failures] == [("forbidden", 0)]


@pytest.mark.slow
def test_a_password_that_gets_no_token_is_told(guarded):
    with pytest.raises(Denied, match=r"no token from .*: incorrect username or password") as told:
        guarded.catalogue(("ada", "wr0ng")).images()
    assert "wr0ng" not in f"{told.value.message} {told.value.advice}"


@pytest.mark.slow
def test_a_token_that_docker_keeps_is_exchanged(guarded):
    guarded.tokens.refresh = {"kept": "ada"}
    guarded.tokens.grants["ada"] = ["repository:open/"]
    host = guarded.url.partition("://")[2]
    (guarded.home / ".docker").mkdir()
    entry = {"auths": {host: {"auth": "", "identitytoken": "kept"}}}
    (guarded.home / ".docker" / "config.json").write_text(json.dumps(entry))
    assert guarded.catalogue().details("open/fit:1").command == ["fit"]
    assert {request.method for request in guarded.service.requests} == {"POST"}
