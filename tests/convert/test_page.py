"""The page on scripts says of every option what the tables in the code say, and names every code."""

import pytest

from jobman.convert.codes import CONVERSION_CODES
from jobman.convert.flux_options import FLUX_BATCH
from jobman.convert.sbatch_options import SBATCH
from tests.docs.pages import code_in, rows

PAGE = "convert.md"
TABLES = {
    "<!-- carried over -->": (SBATCH, "carried"),
    "<!-- kept for Slurm alone -->": (SBATCH, "engine"),
    "<!-- not carried over -->": (SBATCH, "left"),
    "<!-- of the command itself -->": (SBATCH, "command"),
    "<!-- carried over from Flux -->": (FLUX_BATCH, "carried"),
    "<!-- kept for Flux alone -->": (FLUX_BATCH, "engine"),
    "<!-- not carried over from Flux -->": (FLUX_BATCH, "left"),
}


def spellings(option):
    short = [f"-{option.short}"] if option.short else []
    return [f"--{option.name}", *short, *(f"--{name}" for name in option.also)]


@pytest.mark.parametrize("title", TABLES)
def test_the_options_of_a_table_are_those_of_the_code(title):
    table, fate = TABLES[title]
    shown = [(code_in(row[0]), *row[1:]) for row in rows(PAGE, title)]
    known = [option for option in table.options if option.fate == fate]
    assert shown == [
        (spellings(option), option.words, *([option.advice.format()] if fate == "left" else []))
        for option in known
    ]


def test_every_code_is_on_the_page():
    shown = {code_in(row[0])[0]: row[1] for row in rows(PAGE, "<!-- codes -->")}
    assert shown == {code.id: code.title for code in CONVERSION_CODES.values()}
