"""Lists and details of images from Harbor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.client.images.catalogue import Catalogue
from jobman.client.images.errors import (
    Denied,
    NotFound,
    RegistryError,
    Unreachable,
    WrongName,
    WrongSettings,
)
from jobman.settings.registries import Registry
from tests.client.harbor import Harbor, a_scan, child
from tests.client.webserver import Keys, Reply, Request, Served, refusal, serving

CONFIG = {
    "Cmd": ["python3"],
    "Entrypoint": ["/entry", "--now"],
    "Env": ["PATH=/usr/bin", "EMPTY=", "PAIR=a=b"],
    "WorkingDir": "/work",
    "User": "1000",
    "ExposedPorts": {"8080/tcp": {}, "80/tcp": {}},
    "Labels": {"maintainer": "ada"},
}
Asked = Callable[..., Catalogue]


@pytest.fixture
def harbor() -> Harbor:
    made = Harbor()
    made.project("lab")
    made.user("robot$lab+ci", "s3cret")
    made.project("secret", public=False, members=("robot$lab+ci",))
    return made


@pytest.fixture
def served(harbor: Harbor) -> Iterator[Served]:
    with serving(harbor) as server:
        yield server


@pytest.fixture
def asked(served: Served, tmp_path: Path) -> Asked:
    """A catalogue of this Harbor alone, for somebody whose home is empty."""

    def make(prefix: str = "", login: tuple[str, str] | None = None, **keys: Any) -> Catalogue:
        if login is not None:
            (tmp_path / "password").write_text(login[1] + "\n")
            keys |= {"username": login[0], "password_file": str(tmp_path / "password")}
        registry = Registry(name="lab", url=served.url, **keys)
        return Catalogue({"lab": registry}, prefix, environment={"HOME": str(tmp_path)}, patience=0.5)

    return make


def names(catalogue: Catalogue, *patterns: str) -> list[str]:
    return [image.repository for image in catalogue.images(patterns).items]


# -- the list -----------------------------------------------------------------------------------------------


def test_images_have_tags_description_size_and_the_time_of_the_newest(asked, harbor, served):
    harbor.image("lab/fit", "\n# fits curves\n\nand more")
    harbor.push("lab/fit", "1.0", at="2026-03-01T12:00:00.000Z", size=5)
    harbor.push("lab/fit", "2.0", "latest", at="2026-04-01T12:00:00.000Z", size=7)
    (image,) = asked().images().items
    assert (image.image, image.registry) == (f"{served.host}/lab/fit", "lab")
    assert (image.description, image.tags) == ("fits curves", ["latest", "2.0", "1.0"])
    assert (image.size, image.updated_at) == (7, 1775044800.0)


def test_a_name_below_the_prefix_is_shown_as_documents_write_it(asked, harbor, served):
    harbor.push("lab/tools/fit", "1")
    harbor.push("other/fit", "1")
    shown = [image.image for image in asked(prefix=f"{served.host}/lab/").images().items]
    assert shown == ["tools/fit", f"{served.host}/other/fit"]


@pytest.mark.parametrize("number", [1, 100, 101, 250])
def test_all_pages_are_read(asked, harbor, number):
    for each in range(number):
        harbor.push(f"lab/image-{each:03}", "1")
    found = asked().images(bare=True).items
    assert [image.repository for image in found] == [f"lab/image-{each:03}" for each in range(number)]


def test_all_pages_of_tags_are_read(asked, harbor):
    for each in range(230):
        harbor.push("lab/fit", f"v{each}", at=f"2026-03-01T12:00:00.{each:03}Z")
    (image,) = asked().images().items
    assert image.tags == [f"v{each}" for each in reversed(range(230))]


def test_pages_are_counted_where_no_link_leads_on(asked, harbor, served):
    for each in range(150):
        harbor.push(f"lab/image-{each:03}", "1")
    whole = harbor._page

    def without_links(request: Request, rows: list[dict[str, Any]]) -> Reply:
        reply: Reply = whole(request, rows)
        return reply._replace(headers={k: v for k, v in reply.headers.items() if k != "Link"})

    harbor._page = without_links
    assert len(asked().images(bare=True).items) == 150


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (("fit",), ["lab/fit", "lab/misfit", "tools/fit-gpu"]),
        (("FIT",), ["lab/fit", "lab/misfit", "tools/fit-gpu"]),
        (("fit*",), ["lab/fit", "tools/fit-gpu"]),
        (("lab/*",), ["lab/fit", "lab/misfit", "lab/sort"]),
        (("sort", "gpu"), ["lab/sort", "tools/fit-gpu"]),
        (("fit?gpu",), ["tools/fit-gpu"]),
        (("nothing",), []),
        (("a,b=c",), []),
    ],
)
def test_patterns_choose_images(asked, harbor, patterns, found):
    for name in ("lab/fit", "lab/misfit", "lab/sort", "tools/fit-gpu"):
        harbor.push(name, "1")
    assert names(asked(), *patterns) == found


def test_a_full_name_is_a_pattern_too(asked, harbor, served):
    harbor.push("lab/fit", "1")
    assert names(asked(), f"{served.host}/lab/f") == ["lab/fit"]


def test_a_plain_word_is_sought_by_harbor_itself(asked, harbor, served):
    harbor.push("lab/fit", "1")
    harbor.push("lab/sort", "1")
    asked().images(["fit"])
    asked_for = {request.one("q") for request in served.requests if request.path.endswith("/repositories")}
    assert asked_for == {"name=~fit"}


def test_only_the_projects_of_the_settings_are_shown(asked, harbor):
    for name in ("lab/fit", "tools/sort", "other/cut"):
        harbor.push(name, "1")
    assert names(asked(projects=("lab", "tools"))) == ["lab/fit", "tools/sort"]


def test_charts_are_no_images(asked, harbor):
    harbor.push("lab/chart", "1", type="CHART")
    harbor.push("lab/fit", "1")
    assert names(asked()) == ["lab/fit"]


def test_what_has_no_tags_is_listed_without_them(asked, harbor):
    harbor.push("lab/fit")
    (image,) = asked().images().items
    assert (image.tags, image.size) == ([], None)


def test_only_names_ask_for_nothing_else(asked, harbor, served):
    harbor.push("lab/fit", "1")
    assert [image.repository for image in asked().images(bare=True).items] == ["lab/fit"]
    assert not [path for path in served.paths if "artifacts" in path]


def test_nothing_is_asked_twice_where_the_kind_is_written(asked, harbor, served):
    harbor.push("lab/fit", "1")
    asked(kind="harbor").images()
    assert not [path for path in served.paths if path.endswith("/ping")]


# -- who asks -----------------------------------------------------------------------------------------------


def test_nobody_sees_public_projects_only(asked, harbor):
    harbor.push("lab/fit", "1")
    harbor.push("secret/plan", "1")
    assert names(asked()) == ["lab/fit"]


def test_a_robot_sees_its_project(asked, harbor):
    harbor.push("lab/fit", "1")
    harbor.push("secret/plan", "1")
    assert names(asked(login=("robot$lab+ci", "s3cret"))) == ["lab/fit", "secret/plan"]


def test_somebody_who_logs_in_elsewhere_sees_all_with_the_secret_for_tools(asked, harbor):
    harbor.user("ada", "t00l")
    harbor.elsewhere.add("ada")
    harbor.members["secret"].add("ada")
    amd = harbor.push("secret/plan", config={"Cmd": ["plan"]})
    harbor.push("secret/plan", "1", references=[child(amd, "linux/amd64")])
    catalogue = asked(login=("ada", "t00l"))
    assert names(catalogue) == ["secret/plan"]
    assert catalogue.details("secret/plan:1").command == ["plan"]
    assert catalogue.details(f"secret/plan@{amd}").command == ["plan"]


def test_a_project_that_may_be_seen_and_not_looked_into_does_not_hide_the_others(asked, harbor):
    harbor.push("lab/fit", "1")
    harbor.push("shy/plan", "1")
    whole = harbor._of_project

    def shy(request: Request, who: str, project: str, rest: list[str]) -> Reply:
        if project == "shy":
            return refusal(403, "FORBIDDEN", "forbidden")
        answer: Reply = whole(request, who, project, rest)
        return answer

    harbor._of_project = shy
    assert names(asked()) == ["lab/fit"]
    del harbor.public["lab"], harbor.public["secret"]
    with pytest.raises(Denied, match="the project shy"):
        asked().images()


@pytest.mark.parametrize("act", ["images", "details"])
def test_a_wrong_password_is_told_and_not_taken_for_nobody(asked, harbor, act):
    harbor.push("lab/fit", "1")
    catalogue = asked(login=("robot$lab+ci", "wr0ng"))
    with pytest.raises(Denied) as told:
        catalogue.images() if act == "images" else catalogue.details("lab/fit")
    assert "robot$lab+ci" in told.value.advice
    assert "wr0ng" not in told.value.message + told.value.advice + repr(told.value.args)


@pytest.mark.parametrize("project", ["secret", "sceret"])
def test_a_project_that_is_hidden_and_one_that_is_not_there_are_told_alike(asked, harbor, project):
    with pytest.raises(Denied) as nobody:
        asked(projects=(project,)).images()
    assert f"the project {project}, or there is none" in nobody.value.message
    assert "`username` and `password_file` of the registry lab" in nobody.value.advice


def test_a_project_that_is_not_there_is_told_to_those_who_may_know(asked):
    with pytest.raises(NotFound, match="has no project sceret"):
        asked(login=("admin", "Harbor12345"), projects=("sceret",)).images()


def test_a_password_that_is_missing_is_a_mistake_of_the_settings(asked, tmp_path):
    with pytest.raises(WrongSettings, match=r"no such file or directory"):
        asked(username="ada", password_file=str(tmp_path / "nowhere")).images()


@pytest.mark.parametrize("content", ["", "\n", "two\nlines\n"])
def test_a_file_that_is_no_password_is_a_mistake_of_the_settings(asked, content):
    with pytest.raises(WrongSettings, match=r"does not hold the password"):
        asked(login=("ada", content)).images()


# -- one image ----------------------------------------------------------------------------------------------


def test_details_tell_all_that_harbor_knows(asked, harbor, served):
    harbor.image("lab/tools/fit", "Fits curves.\nUse it.")
    harbor.push("lab/tools/fit", "1", at="2026-02-01T12:00:00.000Z")
    digest = harbor.push("lab/tools/fit", "2", config=CONFIG, scan=a_scan(critical=1, low=4))
    found = asked().details("lab/tools/fit:2")
    assert (found.image, found.tag, found.digest) == (f"{served.host}/lab/tools/fit", "2", digest)
    assert (found.description, found.tags) == ("Fits curves.\nUse it.", ["2", "1"])
    assert (found.platform, found.platforms, found.size) == ("linux/amd64", [], 1_500_000)
    assert (found.entrypoint, found.command) == (["/entry", "--now"], ["python3"])
    assert found.env == {"PATH": "/usr/bin", "EMPTY": "", "PAIR": "a=b"}
    assert (found.workdir, found.user, found.ports) == ("/work", "1000", ["80/tcp", "8080/tcp"])
    assert (found.labels, found.created_at) == ({"maintainer": "ada"}, pytest.approx(1772272800.123456))
    assert found.vulnerabilities is not None
    assert found.vulnerabilities.counts == {"Critical": 1, "Low": 4}
    assert (found.vulnerabilities.total, found.vulnerabilities.scanner) == (5, "Trivy v0.61.0")


def test_slashes_of_a_repository_are_encoded_twice(asked, harbor, served):
    harbor.push("lab/tools/deep/fit", "1")
    asked().details("lab/tools/deep/fit:1")
    assert any("/repositories/tools%252Fdeep%252Ffit" in path for path in served.paths)


def test_tags_that_came_at_once_are_ordered_by_their_versions(asked, harbor):
    harbor.push("lab/fit", "1.9", "1.10", "latest", "1.2")
    found = asked().details("lab/fit")
    assert (found.tags, found.tag) == (["latest", "1.10", "1.9", "1.2"], "latest")


def test_without_a_tag_the_newest_is_shown(asked, harbor):
    harbor.push("lab/fit", "old", at="2026-02-01T12:00:00.000Z")
    harbor.push("lab/fit", "new", at="2026-05-01T12:00:00.000Z")
    assert asked().details("lab/fit").tag == "new"


@pytest.mark.parametrize("platform", [None, "linux/arm64", "linux/arm64/v8"])
def test_of_several_platforms_one_is_shown(asked, harbor, platform):
    amd = harbor.push("lab/fit", size=10, config={"Cmd": ["amd"]}, scan=a_scan(high=2))
    arm = harbor.push("lab/fit", size=20, config={"Cmd": ["arm"]}, platform="linux/arm64")
    unknown = harbor.push("lab/fit", platform="unknown/unknown")
    several = [
        child(arm, "linux/arm64/v8"),
        child(amd, "linux/amd64"),
        child(unknown, "unknown/unknown"),
    ]
    index = harbor.push("lab/fit", "1", references=several)
    found = asked().details("lab/fit:1", platform)
    assert found.digest == index
    assert [each.platform for each in found.platforms] == ["linux/arm64/v8", "linux/amd64"]
    expected = ("linux/amd64", ["amd"], 10) if platform is None else ("linux/arm64/v8", ["arm"], 20)
    assert (found.platform, found.command, found.size) == expected


def test_a_platform_that_is_not_there_is_told_with_those_that_are(asked, harbor):
    harbor.push("lab/fit", "1")
    with pytest.raises(NotFound, match="not there for windows/amd64") as told:
        asked().details("lab/fit:1", "windows/amd64")
    assert "`linux/amd64`" in told.value.advice


def test_a_digest_names_an_image_without_a_tag(asked, harbor):
    digest = harbor.push("lab/fit", config={"Cmd": ["a"]})
    found = asked().details(f"lab/fit@{digest}")
    assert (found.digest, found.tag, found.command) == (digest, "", ["a"])


def test_the_end_of_a_name_is_enough_where_there_is_one(asked, harbor):
    harbor.push("lab/ubuntu_python_tensorflow", "3.1cuda11")
    assert asked().details("ubuntu_python_tensorflow").repository == "lab/ubuntu_python_tensorflow"


def test_the_prefix_says_where_a_bare_name_is(asked, harbor, served):
    harbor.push("lab/fit", "1")
    harbor.push("other/fit", "1")
    found = asked(prefix=f"{served.host}/other/").details("fit")
    assert (found.repository, found.image) == ("other/fit", "fit")


def test_a_name_that_could_be_several_is_told_with_all_of_them(asked, harbor, served):
    harbor.push("lab/fit", "1")
    harbor.push("other/fit", "1")
    with pytest.raises(WrongName, match="fit could be several") as told:
        asked().details("fit")
    assert f"`{served.host}/lab/fit` and `{served.host}/other/fit`" in told.value.advice


@pytest.mark.parametrize("name", ["lab/fitt:1", "fitt", "lab/fti", "{host}/fit"])
def test_a_name_that_is_wrong_gets_a_guess(asked, harbor, served, name):
    harbor.push("lab/fit", "1")
    with pytest.raises(NotFound) as told:
        asked().details(name.format(host=served.host))
    assert told.value.advice == f"did you mean `{served.host}/lab/fit`?"


def test_a_tag_that_is_wrong_gets_a_guess(asked, harbor):
    harbor.push("lab/fit", "3.1cuda11")
    with pytest.raises(NotFound, match=r"has no tag 3\.1cuda12") as told:
        asked().details("lab/fit:3.1cuda12")
    assert told.value.advice == "did you mean `3.1cuda11`?"


def test_a_chart_is_told_to_be_none(asked, harbor):
    harbor.push("lab/chart", "1", type="CHART")
    with pytest.raises(RegistryError, match="of the type CHART"):
        asked().details("lab/chart:1")


@pytest.mark.parametrize("text", ["", "a b", "Lab/Fit", "lab/fit:", "lab/fit@sha256:12", "-x/y"])
def test_what_is_no_name_is_told(asked, text):
    with pytest.raises(WrongName, match="not the name of an image"):
        asked().details(text)


# -- what can go wrong --------------------------------------------------------------------------------------


def test_tls_is_verified_and_the_setting_is_named(harbor, keys, tmp_path):
    harbor.push("lab/fit", "1")
    with serving(harbor, keys) as served:
        registry = Registry(name="lab", url=served.url)
        home = {"HOME": str(tmp_path)}
        with pytest.raises(Unreachable, match="not signed by an authority that is trusted") as told:
            Catalogue({"lab": registry}, environment=home).images()
        assert "`ca` of the registry lab in the settings" in told.value.advice
        trusting = Registry(name="lab", url=served.url, ca=str(keys.authority))
        assert names(Catalogue({"lab": trusting}, environment=home)) == ["lab/fit"]


def test_a_busy_harbor_is_asked_again(asked, harbor, served):
    harbor.push("lab/fit", "1")
    whole, turns = harbor._page, iter([503, 429])

    def busy(request: Request, rows: list[dict[str, Any]]) -> Reply:
        if status := next(turns, None):
            return refusal(status, "TOO_MANY_REQUEST", "slow down", Retry_After="0")
        answer: Reply = whole(request, rows)
        return answer

    harbor._page = busy
    assert names(asked()) == ["lab/fit"]


def test_a_harbor_that_stays_out_of_order_is_told(asked, harbor):
    harbor._page = lambda *_: refusal(500, "UNKNOWN", "internal server error")
    with pytest.raises(Unreachable, match=r"out of order \(HTTP 500: internal server error\)"):
        asked().images()


def test_what_is_no_harbor_is_told(tmp_path):
    page = Reply(200, b"<html>hello</html>", {"Content-Type": "text/html"})
    with serving(lambda _: page) as served:
        registry = Registry(name="lab", url=served.url, kind="harbor")
        with pytest.raises(Unreachable, match=r"not answer as a registry does \(HTTP 200, text/html\)"):
            Catalogue({"lab": registry}, environment={"HOME": str(tmp_path)}).images()


def test_one_of_several_registries_that_fails_does_not_hide_the_others(harbor, served, tmp_path):
    harbor.push("lab/fit", "1")
    registries = {
        "lab": Registry(name="lab", url=served.url),
        "gone": Registry(name="gone", url="http://127.0.0.1:1"),
    }
    found = Catalogue(registries, environment={"HOME": str(tmp_path)}).images()
    assert [image.repository for image in found.items] == ["lab/fit"]
    (failure,) = found.failures
    assert (failure.registry, failure.code, failure.exit) == ("gone", "unreachable", 5)
    assert "http://127.0.0.1:1 cannot be reached: nobody listens there" in failure.message


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))
