"""A type and a version find their image, or are told what there is."""

from __future__ import annotations

import pytest

from jobman.tasks.mapper import Table, TypeLine, Unmappable

TABLE = Table(
    [
        TypeLine(type="price", versions="1.x", image="old"),
        TypeLine(type="price", versions="2.x", image="new", environment={"A": "b"}),
        TypeLine(type="price", versions=">=2.5,<3", image="newest", resources={"cores": "2"}),
        TypeLine(type="risk", image="risk"),
    ]
)


@pytest.mark.parametrize(
    ("type_", "version", "image"),
    [
        ("price", "1.4", "old"),
        ("price", "2", "new"),
        ("price", "2.5", "newest"),
        ("price", None, "newest"),
        ("risk", "77", "risk"),
        ("risk", None, "risk"),
    ],
)
def test_the_newest_that_fits_executes_it(type_: str, version: str | None, image: str) -> None:
    assert TABLE.map(type_, version).image == image


def test_what_comes_with_an_image() -> None:
    assert TABLE.map("price", "2.1").environment == {"A": "b"}
    assert TABLE.map("price", "2.7").resources == {"cores": "2"}


def test_an_unknown_type_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(Unmappable, match="type `prise`") as told:
        TABLE.map("prise")
    assert told.value.advice == "the known types are: price, risk"


def test_an_unknown_version_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(Unmappable, match="version 3 of `price`") as told:
        TABLE.map("price", "3")
    assert told.value.advice == "the known versions are: 1.x, 2.x, >=2.5,<3"
