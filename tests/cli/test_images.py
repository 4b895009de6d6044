"""`jobman images` and `image-details`: what a person sees, and how the commands end."""

import os
import sys
from pathlib import Path

import pytest
import yaml

from tests.client.harbor import Harbor, a_scan, child
from tests.client.pushing import Pusher
from tests.client.webserver import refusal, serving

CONFIG = {"Cmd": ["python3", "a b"], "Env": ["PATH=/bin", "A=\x1b[31mred"], "Labels": {"who": "ada"}}


@pytest.fixture
def harbor():
    made = Harbor()
    made.project("lab")
    made.user("robot$lab+ci", "s3cret")
    made.project("secret", public=False, members=("robot$lab+ci",))
    return made


@pytest.fixture
def site(harbor, write):
    """A Harbor that the settings know, with its project as the prefix of images; its host."""
    with serving(harbor) as served:
        write(
            f"image_prefix: {served.host}/lab/\nregistries: [{{name: lab, url: '{served.url}'}}]\n", "s.yaml"
        )
        yield served.host


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_images_are_a_table(jobman, site, harbor):
    harbor.image("lab/fit", "fits curves")
    harbor.push("lab/fit", "1.0", size=3 * 2**20)
    harbor.push("other/sort", *(f"v{number}" for number in range(9)))
    answer = jobman("-s", "s.yaml", "images", "--utc")
    assert (answer.code, answer.err) == (0, "")
    head, fit, sort = answer.out.splitlines()
    assert head.split() == ["image", "tags", "description", "size", "updated"]
    assert fit.split() == ["fit", "1.0", "fits", "curves", "3", "MiB", "2026-03-01", "12:00:00Z"]
    assert sort.startswith(f"{site}/other/sort")
    assert "and 3 more" in sort


def test_images_as_data_keep_their_form(jobman, site, harbor):
    harbor.image("lab/fit", "fits curves")
    harbor.push("lab/fit", "1.0", size=7)
    answer = jobman("-s", "s.yaml", "images", "-o", "json")
    assert answer.data == {
        "items": [
            {
                "image": "fit",
                "registry": "lab",
                "repository": "lab/fit",
                "description": "fits curves",
                "tags": ["1.0"],
                "updated_at": 1772366400.0,
                "size": 7,
            }
        ],
        "failures": [],
    }
    assert yaml.safe_load(jobman("-s", "s.yaml", "-o", "yaml", "images").out) == answer.data


def test_a_pattern_chooses_images_and_names_stand_alone(jobman, site, harbor):
    for name in ("fit", "misfit", "sort"):
        harbor.push(f"lab/{name}", "1")
    assert jobman("-s", "s.yaml", "images", "--names").out == "fit\nmisfit\nsort\n"
    assert jobman("-s", "s.yaml", "images", "--names", "fit*", "so").out == "fit\nsort\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "there are no images, or none that you may see"), (("fit",), "no image is like that")],
)
def test_a_list_of_nothing_is_told(jobman, site, words, said):
    answer = jobman("-s", "s.yaml", "images", *words)
    assert (answer.code, answer.out, answer.err) == (0, "", f"jobman: {said}\n")


def test_details_are_facts_with_variables_and_labels(jobman, site, harbor):
    harbor.image("lab/fit", "fits curves")
    digest = harbor.push("lab/fit", "1.0", config=CONFIG, scan=a_scan(critical=1, low=2), size=2**20)
    answer = jobman("-s", "s.yaml", "image-details", "-i", "fit:1.0", "--utc")
    assert (answer.code, answer.err) == (0, "")
    facts = dict(line.split(None, 1) for line in answer.out.split("\n\n")[0].splitlines())
    assert facts == {
        "image": "fit:1.0",
        "registry": "lab",
        "description": "fits curves",
        "tags": "1.0",
        "digest": digest,
        "created": "2026-02-28 10:00:00Z",
        "pushed": "2026-03-01 12:00:00Z",
        "size": "1 MiB",
        "platform": "linux/amd64",
        "command": "python3 'a b'",
        "vulnerabilities": "1 critical, 2 low; 1 of 3 can be fixed",
        "scanned": "2026-03-01 13:00:00Z by Trivy v0.61.0",
    }
    assert ["variable", "value"] in rows(answer.out)
    assert ["who", "ada"] in rows(answer.out)
    assert "\x1b" not in answer.out


def test_a_description_of_several_lines_stands_below(jobman, site, harbor):
    harbor.image("lab/fit", "# Fit\n\nfits \x1b[31mcurves\n")
    harbor.push("lab/fit", "1")
    out = jobman("-s", "s.yaml", "image-details", "-i", "fit").out
    assert "description  below" in " ".join(out.split("\n")).replace("   ", "  ")
    assert out.splitlines()[-3:-1] == ["# Fit", ""]
    assert "\x1b" not in out


def test_details_as_data_keep_their_form(jobman, site, harbor):
    amd = harbor.push("lab/fit", config=CONFIG)
    harbor.push("lab/fit", "1.0", references=[child(amd, "linux/amd64")])
    answer = jobman("-s", "s.yaml", "image-details", "fit", "-o", "json")
    assert list(answer.data) == [
        "image",
        "registry",
        "repository",
        "description",
        "tags",
        "tag",
        "digest",
        "platform",
        "platforms",
        "created_at",
        "pushed_at",
        "size",
        "entrypoint",
        "command",
        "env",
        "workdir",
        "user",
        "ports",
        "labels",
        "annotations",
        "vulnerabilities",
    ]
    assert answer.data["platforms"] == [{"platform": "linux/amd64", "digest": amd, "size": None}]


@pytest.mark.parametrize(
    "scan",
    [
        (a_scan(), "none found"),
        ({"scan_status": "Running", "scanner": None}, "not known: the scan is in the state Running"),
    ],
)
def test_a_scan_that_found_nothing_differs_from_one_that_is_not_over(jobman, site, harbor, scan):
    harbor.push("lab/fit", "1", scan=scan[0])
    assert scan[1] in jobman("-s", "s.yaml", "image-details", "-i", "fit").out


# -- how it ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("image-details",), 2, "which image?"),
        (("image-details", "a", "-i", "b"), 2, "name one image"),
        (("image-details", "-i", "A B"), 2, "'A B' is not the name of an image"),
        (("image-details", "-i", "fitt"), 1, "did you mean `fit`?"),
        (("image-details", "-i", "fit:2"), 1, "there are `1`"),
        (("images", "--registry", "lba"), 2, "did you mean `lab`?"),
        (("image-details", "-i", "127.0.0.1:1/fit"), 5, "https://127.0.0.1:1 cannot be reached"),
    ],
)
def test_what_cannot_be_answered_ends_with_its_code(jobman, site, harbor, words, code, said):
    harbor.push("lab/fit", "1")
    answer = jobman("-s", "s.yaml", *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in " ".join(answer.err.split())


def test_a_failure_is_data_where_data_is_asked_for(jobman, site, harbor):
    harbor.push("lab/fit", "1")
    answer = jobman("-s", "s.yaml", "image-details", "-i", "fitt", "-o", "json")
    assert (answer.code, answer.data["code"], answer.data["advice"]) == (
        1,
        "not-found",
        "did you mean `fit`?",
    )


def test_a_login_that_is_refused_ends_with_6_and_shows_no_password(jobman, site, harbor, write, bare_home):
    (bare_home / "password").write_text("wr0ng\n")
    url = f"http://{site}"
    login = "username: robot$lab+ci, password_file: ~/password"
    write(f"registries: [{{name: lab, url: '{url}', {login}}}]\n", "s.yaml")
    for form in ("table", "json"):
        answer = jobman("-s", "s.yaml", "images", "-o", form)
        assert answer.code == 6
        assert "wr0ng" not in answer.out + answer.err
    (bare_home / "password").write_text("s3cret\n")
    harbor.push("secret/plan", "1")
    assert jobman("-s", "s.yaml", "images", "--names").out == f"{site}/secret/plan\n"
    shown = jobman("-s", "s.yaml", "settings").out
    assert "s3cret" not in shown


def test_without_a_registry_it_is_told_how_to_add_one(jobman):
    answer = jobman("images")
    assert (answer.code, answer.out) == (4, "")
    assert "registries: [{name: lab" in answer.err


def test_a_registry_that_fails_beside_others_is_told_and_ends_the_command(jobman, site, harbor, write):
    harbor.push("lab/fit", "1")
    registries = f"[{{name: lab, url: 'http://{site}'}}, {{name: gone, url: 'http://127.0.0.1:1'}}]"
    write(f"registries: {registries}\n", "s.yaml")
    answer = jobman("-s", "s.yaml", "images")
    assert (answer.code, "lab/fit" in answer.out) == (5, True)
    assert "http://127.0.0.1:1 cannot be reached: nobody listens there" in answer.err
    assert jobman("-s", "s.yaml", "images", "--registry", "lab").code == 0


def test_wrong_settings_end_the_command_and_keep_the_password(jobman, write):
    write("registries:\n- name: lab\n  url: example.org\n  password: geheim\n", "s.yaml")
    answer = jobman("-s", "s.yaml", "images")
    assert (answer.code, answer.out) == (3, "")
    assert "JS822" in answer.err
    assert "geheim" not in answer.err + jobman("-s", "s.yaml", "images", "-o", "json").out


def test_a_registry_out_of_order_ends_with_5(jobman, write):
    with serving(lambda _: refusal(500, "UNKNOWN", "internal server error")) as served:
        write(f"registries: [{{name: lab, url: '{served.url}', kind: oci}}]\n", "s.yaml")
        answer = jobman("-s", "s.yaml", "images")
    assert (answer.code, answer.out) == (5, "")
    assert "is out of order (HTTP 500: internal server error)" in answer.err


def test_without_its_http_library_it_is_told_how_to_get_it(jobman, site, monkeypatch):
    users = ("jobman.client.images", "jobman.lean_httpx")
    for name in [name for name in sys.modules if name.startswith(users)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    answer = jobman("-s", "s.yaml", "images")
    assert (answer.code, answer.out) == (4, "")
    assert "pip install 'jobman[kubernetes]'" in answer.err


# -- a real registry ----------------------------------------------------------------------------------------


@pytest.mark.component("registry")
def test_a_real_registry_is_asked_as_a_process_of_its_own(real_jobman, write, tmp_path):
    url, authority = os.environ["JOBMAN_LAB_REGISTRY"], os.environ["JOBMAN_LAB_REGISTRY_CA"]
    user, file = os.environ["JOBMAN_LAB_REGISTRY_USER"], os.environ["JOBMAN_LAB_REGISTRY_PASSWORD_FILE"]
    folder = f"c{os.urandom(6).hex()}"
    with Pusher(url, Path(authority), (user, Path(file).read_text())) as pusher:
        pusher.image(f"{folder}/fit", "1", config={"Cmd": ["fit", "--all"]})
    host = url.partition("://")[2]
    write(
        f"image_prefix: {host}/{folder}/\nregistries:\n- name: lab\n  url: {url}\n  ca: {authority}\n"
        f"  username: {user}\n  password_file: {file}\n",
        "s.yaml",
    )
    listed = real_jobman("-s", "s.yaml", "images", folder, "-o", "json")
    assert (listed.code, listed.err) == (0, "")
    assert [(image["image"], image["tags"]) for image in listed.data["items"]] == [("fit", ["1"])]
    shown = real_jobman("-s", "s.yaml", "image-details", "-i", "fit")
    assert (shown.code, shown.err) == (0, "")
    assert ["command", "fit", "--all"] in rows(shown.out)
