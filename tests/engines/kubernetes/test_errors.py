"""What the answers of a cluster become: exceptions with words and advice."""

import msgspec
import pytest

from jobman.engines.kubernetes.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerFault,
    TooEarly,
    TooMany,
    Unauthorized,
    from_answer,
)


def answer(code: int, reason: str = "", message: str = "", **details) -> ApiError:
    status = {
        "kind": "Status",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details or None,
    }
    return from_answer(code, msgspec.json.encode(status))


@pytest.mark.parametrize(
    ("code", "reason", "kind", "exit_code"),
    [
        (400, "BadRequest", BadRequest, 4),
        (401, "Unauthorized", Unauthorized, 6),
        (403, "Forbidden", Forbidden, 6),
        (404, "NotFound", NotFound, 4),
        (409, "AlreadyExists", AlreadyExists, 4),
        (409, "Conflict", Conflict, 4),
        (410, "Expired", Expired, 4),
        (410, "Gone", Expired, 4),
        (422, "Invalid", Invalid, 4),
        (429, "TooManyRequests", TooMany, 5),
        (500, "InternalError", ServerFault, 5),
        (503, "ServiceUnavailable", ServerFault, 5),
        (415, "UnsupportedMediaType", ApiError, 4),
    ],
)
def test_every_answer_has_its_exception(code, reason, kind, exit_code):
    error = answer(code, reason, "words")
    assert type(error) is kind
    assert (error.code, error.reason, error.message, error.exit_code) == (code, reason, "words", exit_code)


def test_a_missing_right_is_named_and_its_role_printed():
    error = answer(
        403,
        "Forbidden",
        'jobs.batch is forbidden: User "ada" cannot create resource "jobs" in API group "batch" in the'
        ' namespace "physics"',
    )
    assert isinstance(error, Forbidden)
    assert str(error) == error.message == "User ada may not create jobs.batch in the namespace physics."
    assert "kind: Role\n" in error.role
    assert error.role in error.advice


def test_a_quota_is_answered_with_other_advice_than_a_role():
    error = answer(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q, requested: pods=1')
    assert isinstance(error, Forbidden)
    assert error.role == ""
    assert "quota" in error.advice


def test_who_is_nobody_should_log_in():
    error = answer(
        403,
        message='User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "a"',
    )
    assert error.advice == "The cluster was not told who you are: log in to it."


def test_fields_that_break_rules_are_named():
    causes = [
        {"reason": "FieldValueInvalid", "message": "must be at least 0", "field": "spec.parallelism"},
        {"reason": "FieldValueInvalid", "message": "must be odd", "field": "spec.parallelism"},
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.template"},
    ]
    error = answer(422, "Invalid", "it is invalid", causes=causes)
    assert isinstance(error, Invalid)
    assert error.fields == ("spec.parallelism", "spec.template")
    assert [cause.message for cause in error.causes][1] == "must be odd"


def test_fields_that_nobody_knows_are_named():
    error = answer(
        400,
        "BadRequest",
        'strict decoding error: unknown field "spec.template.spec.containers[0].x", unknown field "spec.b"',
    )
    assert error.fields == ("spec.template.spec.containers[0].x", "spec.b")
    assert "does not know spec.template.spec.containers[0].x, spec.b" in error.advice


def test_a_log_that_is_not_there_yet_is_too_early():
    error = answer(400, "BadRequest", 'container "main" in pod "x" is waiting to start: ContainerCreating')
    assert type(error) is TooEarly


def test_a_kind_that_is_not_installed_is_told_from_an_object_that_is_not_there():
    assert "installed" in from_answer(404, b"404 page not found", "/apis/x").advice
    assert answer(404, "NotFound", 'jobs "x" not found', name="x").advice == ""


def test_a_namespace_that_is_not_there_is_to_be_created():
    error = answer(404, "NotFound", 'namespaces "x" not found', kind="namespaces", name="x")
    assert error.advice == "Create the namespace, or name another."


def test_an_answer_that_is_not_of_the_cluster_is_quoted():
    error = from_answer(502, b"<html>\n<h1>Bad gateway</h1>\xff", "/api/v1/pods")
    assert type(error) is ServerFault
    assert error.message.startswith("The cluster answered 502 at /api/v1/pods: <html> <h1>Bad gateway</h1>")


def test_who_forgot_about_tls_is_told():
    assert "https://" in from_answer(400, b"Client sent an HTTP request to an HTTPS server.\n").advice
