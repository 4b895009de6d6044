"""Pages that are made from the code say what the code says."""

import pytest

from tools.generate_docs import DOCS, pages


@pytest.mark.parametrize("name", list(pages()))
def test_a_generated_page_is_up_to_date(name):
    assert (DOCS / name).read_text(encoding="utf-8") == pages()[name], "run `make docs`"
