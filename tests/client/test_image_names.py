"""Names, patterns, tags, moments, challenges: what is told of images without asking anybody."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.client.images import names
from jobman.client.images.answers import Details, Platform
from jobman.client.images.challenges import Challenge, challenges, next_page
from jobman.client.images.errors import RegistryError, WrongName
from jobman.client.images.manifests import chosen, fill, platforms_of, read_config, read_manifest
from jobman.client.images.times import moment, pause

KEYS = ("schemaVersion", "mediaType", "config", "layers", "manifests", "digest", "platform")
DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("fit", ("", "fit", "", "")),
        ("lab/fit:1", ("", "lab/fit", "1", "")),
        ("example.org/fit", ("example.org", "fit", "", "")),
        ("Example.org:5000/lab/fit:v1.0_x", ("example.org:5000", "lab/fit", "v1.0_x", "")),
        ("localhost/fit", ("localhost", "fit", "", "")),
        ("[::1]:5000/fit", ("[::1]:5000", "fit", "", "")),
        (f"fit:1@{DIGEST}", ("", "fit", "1", DIGEST)),
        ("a__b/c-d.e", ("", "a__b/c-d.e", "", "")),
    ],
)
def test_a_name_has_parts(text, parts):
    assert names.parse(text) == parts


@pytest.mark.parametrize(
    "text",
    ["", "/", "a//b", "a/", "A", "a:", "a@", "a@b", "a b", "a:b:c", "https://a.b/c", "a.b:99999/c", "a..b/c"],
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(WrongName):
        names.parse(text)


def test_a_name_with_capital_letters_is_told_without_them():
    with pytest.raises(WrongName) as told:
        names.parse("Lab/Fit")
    assert "`lab/fit`" in told.value.advice


@given(st.text(max_size=80))
def test_any_text_is_a_name_or_refused(text):
    try:
        found = names.parse(text)
    except WrongName:
        return
    assert found.repository


@pytest.mark.parametrize(
    ("full", "prefix", "short"),
    [
        ("example.org/lab/fit", "", "example.org/lab/fit"),
        ("example.org/lab/fit", "example.org/lab/", "fit"),
        ("example.org/lab/fit", "example.org/", "lab/fit"),
        ("example.org/other/fit", "example.org/lab/", "example.org/other/fit"),
        ("example.org/a.b/fit", "example.org/", "example.org/a.b/fit"),
    ],
)
def test_the_prefix_is_left_out_where_it_would_be_put_back(full, prefix, short):
    assert names.shortened(full, prefix) == short


@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        (["1.9", "1.10", "latest", "1.2"], ["latest", "1.10", "1.9", "1.2"]),
        (["1.0-rc1", "1.0"], ["1.0", "1.0-rc1"]),
        (["v2", "v10"], ["v10", "v2"]),
        ([f"sha256-{'0' * 64}", f"sha256-{'0' * 64}.att", "1"], ["1"]),
        (["ok", "not a tag", "x" * 200], ["ok"]),
    ],
)
def test_tags_are_ordered_as_people_mean_them(tags, shown):
    assert names.visible(tags) == shown


@given(st.lists(st.text("0123456789abcv.-_", min_size=1, max_size=12), max_size=8))
def test_the_order_of_tags_does_not_depend_on_the_order_they_came_in(tags):
    assert sorted(names.visible(tags)) == sorted(names.visible(tags[::-1]))


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ('Basic realm="x"', [("basic", {"realm": "x"})]),
        ("Basic", [("basic", {})]),
        (
            'Bearer realm="https://a/t",service="s",scope="repository:a/b:pull,push registry:catalog:*"',
            [
                (
                    "bearer",
                    {
                        "realm": "https://a/t",
                        "service": "s",
                        "scope": "repository:a/b:pull,push registry:catalog:*",
                    },
                )
            ],
        ),
        ('Negotiate, Basic realm="a \\"b\\""', [("negotiate", {}), ("basic", {"realm": 'a "b"'})]),
        ("Bearer realm=https://a/t, service=s", [("bearer", {"realm": "https://a/t", "service": "s"})]),
        ("", []),
        ("=,;", []),
    ],
)
def test_challenges_are_read(header, found):
    assert challenges([header]) == [Challenge(*each) for each in found]


@given(st.text(max_size=200))
def test_any_challenge_is_read_to_its_end(header):
    assert isinstance(challenges([header]), list)


@pytest.mark.parametrize(
    ("header", "path"),
    [
        ('</v2/_catalog?last=a&n=2>; rel="next"', "/v2/_catalog?last=a&n=2"),
        ('<https://inside/v2/_catalog?last=a>; rel="next"', "/v2/_catalog?last=a"),
        ('</a?page=1>; rel="prev", </a?page=3>; rel="next"', "/a?page=3"),
        ("</a?page=3>; rel=next", "/a?page=3"),
        ('</a?q=name=~x, y&page=3>; rel="next"', "/a?q=name=~x, y&page=3"),
        ('</a?page=1>; rel="prev"', None),
        ('</a>; rel="nextish"', None),
        ("", None),
        ("<", None),
        ('<http://[>; rel="next"', None),
    ],
)
def test_the_next_page_is_found(header, path):
    assert next_page(header) == path


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-02-28T10:00:00Z", 1772272800.0),
        ("2026-02-28T10:00:00.123456789Z", 1772272800.123456),
        ("2026-02-28T11:00:00+01:00", 1772272800.0),
        ("0001-01-01T00:00:00Z", None),
        ("1970-01-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        (None, None),
        (5, None),
    ],
)
def test_moments_are_read(text, seconds):
    assert moment(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("Sat, 28 Feb 2026 10:00:30 GMT", 30.0),
        ("Sat, 28 Feb 2026 09:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_pauses_are_read(header, seconds):
    assert pause(header, 1772272800.0) == seconds


def test_what_only_tells_how_an_image_was_built_is_no_platform():
    index = read_manifest(
        b"""{"schemaVersion": 2, "manifests": [
        {"digest": "a", "platform": {"os": "linux", "architecture": "arm", "variant": "v7"}},
        {"digest": "b", "platform": {"os": "unknown", "architecture": "unknown"},
         "annotations": {"vnd.docker.reference.type": "attestation-manifest"}},
        {"digest": "c"}]}"""
    )
    assert index.is_index
    assert platforms_of(index) == [Platform(platform="linux/arm/v7", digest="a")]


@pytest.mark.parametrize(
    ("wanted", "digest"),
    [(None, "amd"), ("linux/arm64", "arm"), ("linux/arm64/v8", "arm"), ("linux/arm", None), ("linux", "win")],
)
def test_a_platform_is_chosen(wanted, digest):
    known = [
        Platform(platform="linux/ppc64le", digest="win"),
        Platform(platform="linux/arm64/v8", digest="arm"),
        Platform(platform="linux/amd64", digest="amd"),
    ]
    found = chosen(known, wanted)
    assert (found.digest if found is not None else None) == digest


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"schemaVersion": 1}', b'{"schemaVersion": 2}', b"\xff"]
)
def test_what_is_no_manifest_is_told(body):
    with pytest.raises(RegistryError):
        read_manifest(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(JSON | st.binary(max_size=60))
def test_whatever_a_registry_keeps_is_read_or_told(data):
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    for read in (read_manifest, read_config):
        with suppress(RegistryError):
            assert str(read(body))


@pytest.mark.parametrize("read", [read_manifest, read_config])
def test_what_is_nested_without_an_end_is_told(read):
    with pytest.raises(RegistryError):
        read(b'{"config":' * 100_000)


def test_a_configuration_with_nothing_in_it_says_nothing():
    details = Details(image="", registry="", repository="")
    fill(details, read_config(b'{"config": {"Env": null, "Cmd": null, "Labels": null, "Entrypoint": null}}'))
    assert (details.env, details.command, details.labels, details.platform) == ({}, [], {}, "")
