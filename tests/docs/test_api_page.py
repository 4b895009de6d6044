"""The page on the HTTP API says what the service declares."""

import msgspec
import pytest

from jobman.control.api.app import ENDPOINTS
from jobman.control.api.endpoint import BODY_LIMIT
from jobman.control.refusals import CODES
from tests.docs.pages import code_in, rows, text_of

SHOWN = {code_in(row[0])[0]: row for row in rows("api.md", "<!-- endpoints -->")}


def test_every_endpoint_is_on_the_page_and_no_other():
    assert sorted(SHOWN) == sorted(f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: f"{endpoint.method} {endpoint.path}")
def test_a_row_names_what_may_be_sent_and_who_may_ask(endpoint):
    _, answer, parameters = SHOWN[f"{endpoint.method} {endpoint.path}"]
    wanted = (
        [] if endpoint.query is None else [field.name for field in msgspec.structs.fields(endpoint.query)]
    )
    wanted += [] if endpoint.body is None else [endpoint.body.__name__]
    assert sorted(code_in(parameters)) == sorted(wanted)
    assert ("administrators only" in answer) is endpoint.admin
    assert ("needs no token" in answer) is endpoint.public


def test_the_table_of_codes_is_that_of_the_service():
    shown = {
        code_in(code)[0]: (int(status), int(end)) for code, status, end, _ in rows("api.md", "<!-- codes -->")
    }
    assert shown == CODES


def test_the_limit_of_bodies_is_that_of_the_service():
    assert f"at most {BODY_LIMIT >> 20} MiB" in text_of("api.md")
