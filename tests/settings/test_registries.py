"""Registries and the prefix of images, as the settings write them."""

import msgspec
import pytest
import yaml

from jobman.settings import load_settings, settings_from_text
from jobman.settings.registries import is_near
from jobman.spec.problems import SpecError

FULL = """
image_prefix: harbor.example.org/lab/
registries:
- {name: lab, url: 'https://harbor.example.org', kind: harbor, projects: [lab, tools],
   username: robot$lab+ci, password_file: ~/.jobman/password, ca: /etc/lab-ca.pem}
- {name: plain, url: 'registry.example.org:5000'}
"""


def problems(text):
    with pytest.raises(SpecError) as raised:
        settings_from_text(text)
    return raised.value.problems


def registry(keys):
    return f"registries: [{{name: lab, {keys}}}]\n"


def test_registries_are_read_with_all_their_keys():
    lab, plain = settings_from_text(FULL).values["registries"].values()
    assert (lab.url, lab.host, lab.kind, lab.projects) == (
        "https://harbor.example.org",
        "harbor.example.org",
        "harbor",
        ("lab", "tools"),
    )
    assert (lab.username, lab.password_file, lab.ca) == (
        "robot$lab+ci",
        "~/.jobman/password",
        "/etc/lab-ca.pem",
    )
    assert (plain.url, plain.kind, plain.username) == ("https://registry.example.org:5000", None, None)
    assert settings_from_text(FULL).site().image_prefix == "harbor.example.org/lab/"


def test_settings_that_are_shown_can_be_used_as_settings():
    shown = settings_from_text(FULL).as_data()
    again = settings_from_text(yaml.safe_dump(msgspec.to_builtins(shown)))
    assert msgspec.to_builtins(again.as_data()) == msgspec.to_builtins(shown)
    assert dict(settings_from_text(FULL).rows())["registries.plain"] == (
        '{"url":"https://registry.example.org:5000"}'
    )


def test_registries_are_merged_by_name(tmp_path):
    (tmp_path / ".jobman").mkdir()
    (tmp_path / ".jobman" / "settings.yaml").write_text(FULL + "---\n" + registry("url: other.example.org"))
    settings = load_settings(home=tmp_path)
    assert settings.values["registries"]["lab"].url == "https://other.example.org"
    assert list(settings.values["registries"]) == ["lab", "plain"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://Harbor.Example.org/", "https://harbor.example.org"),
        ("http://localhost:5000", "http://localhost:5000"),
        ("https://[::1]:5000", "https://[::1]:5000"),
        ("10.0.0.7:5000", "https://10.0.0.7:5000"),
    ],
)
def test_an_address_is_brought_into_one_form(written, read):
    assert settings_from_text(registry(f"url: '{written}'")).values["registries"]["lab"].url == read


@pytest.mark.parametrize(
    ("keys", "code", "message"),
    [
        ("url: 'https://example.org/lab'", "JS821", '"https://example.org/lab" is not the address'),
        ("url: 'ftp://example.org'", "JS821", "is not the address of a registry"),
        ("url: 'a b'", "JS821", "is not the address of a registry"),
        ("url: 'https://a:99999'", "JS821", "is not the address of a registry"),
        ("url: 'https://a..b'", "JS821", "is not the address of a registry"),
        ("url: 'https://[:::]'", "JS821", "is not the address of a registry"),
        ("url: [a]", "JS103", "expected the address of a registry, found a list"),
        ("url: a, password: geheim", "JS822", "`password` holds a password"),
        ("url: 'https://ada:geheim@example.org'", "JS822", "an address holds a password"),
        (
            "url: 'http://example.org', username: ada, password_file: /p",
            "JS823",
            "a password would travel to http://example.org unencrypted",
        ),
        ("url: a, username: ada", "JS824", "has `username` and no `password_file`"),
        ("url: a, password_file: /p", "JS824", "has `password_file` and no `username`"),
        ("url: a, kind: oci, projects: [a]", "JS825", "kind `oci` has no `projects`"),
        ("url: a, kind: habor", "JS212", '"habor" is not a known kind of registry'),
        ("url: a, ca: ca.pem", "JS201", '"ca.pem" is not a file\'s path'),
        ("url: a, projects: [A B]", "JS201", '"A B" is not a project\'s name'),
        ("url: a, projects: [a, a]", "JS214", "`a` is in the list already"),
        ("url: a, adress: b", "JS101", "a registry has no key `adress`"),
        ("kind: oci", "JS105", "url"),
    ],
)
def test_every_wrong_value_has_a_code_a_place_and_an_advice(keys, code, message):
    (problem,) = problems(registry(keys))
    assert (problem.code, message in problem.message) == (code, True), problem.message
    assert problem.place is not None
    assert problem.advice


@pytest.mark.parametrize("keys", ["url: a, password: geheim", "url: 'https://ada:geheim@example.org'"])
def test_a_password_that_is_refused_is_not_shown(keys):
    assert "geheim" not in repr(problems(registry(keys)))
    assert "geheim" not in repr(problems(registry(f"{keys}, username: ada")))


@pytest.mark.parametrize("text", ["image_prefix: example.org", "image_prefix: 'https://example.org/'"])
def test_a_prefix_ends_with_a_slash_and_is_no_url(text):
    assert [problem.code for problem in problems(text)] == ["JS201"]


def test_the_same_name_twice_in_a_file_is_told():
    text = "registries: [{name: a, url: b}, {name: a, url: c}]\n"
    assert [problem.code for problem in problems(text)] == ["JS720"]


@pytest.mark.parametrize(("word", "meant"), [("harbor", "registries"), ("registry", "registries")])
def test_what_people_write_by_habit_gets_a_guess(word, meant):
    (problem,) = problems(f"{word}: [{{name: a, url: b}}]\n")
    assert problem.advice == f"did you mean `{meant}`?"


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("localhost", True),
        ("localhost:5000", True),
        ("127.0.0.1:5000", True),
        ("[::1]:5000", True),
        ("example.org", False),
        ("localhost.example.org", False),
        ("10.0.0.1", False),
    ],
)
def test_only_this_machine_is_near(host, near):
    assert is_near(host) is near
