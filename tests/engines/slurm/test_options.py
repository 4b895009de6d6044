"""Options that the document gives displace those that are generated."""

from __future__ import annotations

import pytest

from jobman.engines.scripts.options import grouped
from jobman.engines.slurm.options import displaced, lines, name_of

GENERATED = ["--nodes=2", "--ntasks-per-node=1", "--mem=100M", "--gres=gpu:2", "--exclusive"]


@pytest.mark.parametrize(
    ("word", "name"),
    [("--nodes=2", "nodes"), ("-N", "nodes"), ("-N2", "nodes"), ("--hold", "hold"), ("2", None), ("-", None)],
)
def test_an_option_is_known_by_its_long_name(word: str, name: str | None) -> None:
    assert name_of(word) == name


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        (["--nodes=4"], {"--nodes=2"}),
        (["-N", "4"], {"--nodes=2"}),
        (["-N4"], {"--nodes=2"}),
        (["--mem-per-cpu=1G"], {"--mem=100M"}),
        (["--gpus=8"], {"--gres=gpu:2"}),
        (["--oversubscribe"], {"--exclusive"}),
        (["--comment=x"], set()),
    ],
)
def test_what_is_given_displaces_what_says_the_same(given: list[str], gone: set[str]) -> None:
    assert displaced(GENERATED, given) == [word for word in GENERATED if word not in gone]


def test_an_option_keeps_its_value() -> None:
    assert list(grouped(["-p", "long", "--hold", "--mail-type", "END"], name_of)) == [
        ("partition", ["-p", "long"]),
        ("hold", ["--hold"]),
        ("mail-type", ["--mail-type", "END"]),
    ]


def test_each_option_is_a_line_of_its_own() -> None:
    assert list(lines(["-p", "long", "--mail-type", "END", "--hold"])) == [
        "-p long",
        "--mail-type=END",
        "--hold",
    ]
