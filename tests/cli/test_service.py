"""`jobman service`, `token`, `server`, and the names for completion."""

import pytest

from jobman.control.answers import Token
from tests.cli.stub import NOW, make_job


def test_status_shows_the_service(jobman, service):
    service.status.jobs = {"running": 2, "waiting": 0, "succeeded": 1200}
    found = dict(text.split("  ", 1) for text in jobman("service", "status").out.splitlines())
    assert found["service"].strip() == "healthy"
    assert found["jobs"].strip() == "2 running, 1,200 succeeded"
    assert jobman("service", "status", "-o", "json").data["mode"] == "embedded"


def test_a_service_in_trouble_says_so(jobman, service):
    service.status.healthy, service.status.trouble = False, "the disk is full"
    assert "in trouble: the disk is full" in jobman("service", "status").out


def test_without_a_service_the_status_starts_none(real_jobman, tmp_path):
    answer = real_jobman("service", "status")
    assert (answer.code, answer.out) == (5, "")
    assert "no service runs" in answer.err
    assert not (tmp_path / "state").exists()


def test_a_service_is_stopped(jobman, service):
    assert jobman("service", "stop") == (0, "", "jobman: the service has stopped\n")
    assert service.stopped


def test_stopping_what_does_not_run_is_done_already(jobman):
    assert jobman("service", "stop") == (0, "", "jobman: no service runs\n")


def test_start_shows_the_service_that_runs(jobman, service):
    assert "healthy" in jobman("service", "start").out


# -- tokens -------------------------------------------------------------------------------------------------


def test_a_token_is_the_answer_and_shown_once(jobman, service):
    answer = jobman("token", "add", "ada", "--role", "admin")
    assert (answer.code, answer.out) == (0, "secret-once\n")
    assert "not shown again" in answer.err
    assert (service.tokens["ada"].user, service.tokens["ada"].role) == ("ada", "admin")


def test_tokens_are_listed_without_themselves(jobman, service):
    service.tokens = {"ada": Token(name="ada", user="ada", role="admin", created_at=NOW, revoked_at=NOW + 9)}
    answer = jobman("token", "list", "--utc")
    assert answer.out.splitlines() == [
        "token  user  role   made                  revoked",
        "ada    ada   admin  2027-01-15 08:00:00Z  2027-01-15 08:00:09Z",
    ]


def test_a_token_is_revoked(jobman, service):
    jobman("token", "add", "bob", "--name", "laptop")
    assert jobman("token", "revoke", "laptop") == (0, "laptop  revoked\n", "")
    assert jobman("token", "revoke", "other").code == 1


def test_an_unknown_role_ends_with_2(jobman, service):
    assert jobman("token", "add", "ada", "--role", "king").code == 2


# -- server -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("--listen", "localhost:0", "--tls-cert", "a.pem")])
def test_a_server_that_is_used_wrongly_ends_with_2(jobman, arguments):
    assert jobman("server", *arguments).code == 2


# -- names --------------------------------------------------------------------------------------------------


def test_names_and_ids_of_jobs_for_completion(jobman, real_jobman, service):
    service.add(make_job("sweep", identity="0f3a", submitted_at=NOW))
    service.add(make_job("sweep", identity="77c0", submitted_at=NOW - 5))
    assert jobman("__jobs") == (0, "sweep\n0f3a\n77c0\n", "")
    assert real_jobman("__jobs") == (0, "sweep\n0f3a\n77c0\n", "")


def test_completion_never_starts_a_service_and_never_complains(real_jobman, tmp_path):
    assert real_jobman("__jobs") == (0, "", "")
    assert not (tmp_path / "state").exists()
