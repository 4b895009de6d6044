"""What people do to jobs, and what they are told."""

import pytest

from tests.cli.stub import NOW, make_job


@pytest.fixture
def sweep(service):
    return service.add(make_job("sweep", identity="0f3a", gates={"data": False, "review": False}))


@pytest.mark.parametrize(
    ("command", "done"), [("cancel", "cancelled"), ("hold", "held"), ("release", "released")]
)
def test_an_act_names_the_job_it_was_done_to(jobman, sweep, command, done):
    assert jobman(command, "sweep") == (0, f"0f3a  sweep  {done}\n", "")


def test_a_cancelled_job_is_cancelled(jobman, sweep):
    jobman("cancel", "sweep")
    assert sweep.details.state == "cancelled"


def test_hold_and_release(jobman, sweep):
    jobman("hold", "sweep")
    assert sweep.details.held
    jobman("release", "sweep")
    assert not sweep.details.held


def test_many_at_once_and_one_that_refuses_does_not_keep_the_others(jobman, service, sweep):
    service.add(make_job("over", "succeeded"))
    other = service.add(make_job("other"))
    answer = jobman("cancel", "sweep", "over", "-j", "other")
    assert answer.code == 1
    assert answer.out.splitlines() == ["0f3a  sweep  cancelled", f"{other.details.id}  other  cancelled"]
    assert answer.err == "jobman: over has succeeded already\n"


def test_an_act_as_data(jobman, service, sweep):
    assert jobman("hold", "sweep", "-o", "json").data["held"] is True
    service.add(make_job("other"))
    assert [job["name"] for job in jobman("hold", "sweep", "other", "-o", "json").data] == ["sweep", "other"]


@pytest.mark.parametrize("words", [("sweep", "+30m"), ("sweep", "30m"), ("-j", "sweep", "+30m")])
def test_more_time(jobman, sweep, words):
    assert jobman("extend", *words) == (0, "0f3a  sweep  has 30m more\n", "")
    assert sweep.extended == (1800.0, None)


def test_more_time_for_one_task(jobman, sweep):
    jobman("extend", "sweep", "1h30m", "--task", "train")
    assert sweep.extended == (5400.0, "train")


@pytest.mark.parametrize("task", [(), ("--task", "train")])
def test_more_time_than_disturbs_nobody_is_refused_with_a_command_for_the_most_there_is(jobman, sweep, task):
    sweep.most = 93
    answer = jobman("extend", "sweep", "+30m", *task)
    assert (answer.code, answer.out) == (6, "")
    assert answer.err.splitlines() == [
        "jobman: somebody else was promised these nodes by then; 1 min 33 s more can be granted",
        " ".join(["        jobman extend 0f3a +93s", *task]),
    ]
    assert jobman(*answer.err.splitlines()[1].split()[1:]).code == 0


def test_where_no_more_time_can_be_given_it_is_said(jobman, sweep):
    sweep.most = 0
    assert jobman("extend", "sweep", "30m").err.splitlines() == [
        "jobman: somebody else was promised these nodes by then",
        "        try again later",
    ]


def test_a_refused_extension_as_data(jobman, sweep):
    sweep.most = 93
    data = jobman("extend", "sweep", "30m", "-o", "json").data
    assert (data["code"], data["advice"]) == ("would-delay", "jobman extend 0f3a +93s")


@pytest.mark.parametrize(
    "words", [(), ("sweep",), ("sweep", "soon"), ("sweep", "-30m"), ("sweep", "1h", "2h")]
)
def test_a_wrong_extension_ends_with_2(jobman, sweep, words):
    assert jobman("extend", *words).code == 2


@pytest.mark.parametrize("words", [("sweep", "review"), ("-j", "sweep", "review")])
def test_a_gate_is_opened(jobman, sweep, words):
    assert jobman("gate", "open", *words) == (0, "0f3a  sweep  has opened review\n", "")
    assert sweep.details.gates == {"data": False, "review": True}


def test_several_gates_are_opened(jobman, sweep):
    jobman("gate", "open", "sweep", "review", "data")
    assert all(sweep.details.gates.values())


def test_a_gate_that_is_not_there_is_told(jobman, sweep):
    answer = jobman("gate", "open", "sweep", "barn")
    assert (answer.code, answer.out) == (1, "")
    assert "sweep has no gate barn" in answer.err


# -- delete -------------------------------------------------------------------------------------------------


def test_a_job_that_is_over_is_deleted(jobman, service):
    service.add(make_job("over", "succeeded", identity="77c0"))
    assert jobman("delete", "over") == (0, "77c0  over  deleted\n", "")
    assert service.jobs == {}


def test_a_job_that_runs_is_not_deleted_without_force(jobman, service, sweep):
    answer = jobman("delete", "sweep")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "jobman: sweep is running\n        add --force to cancel it first\n"
    assert jobman("delete", "sweep", "--force").code == 0
    assert service.jobs == {}


def test_all_that_is_over_is_deleted(jobman, service, sweep):
    service.add(make_job("over", "failed"))
    assert jobman("delete", "--all") == (0, "deleted 1 job\n", "")
    assert list(service.jobs) == ["0f3a"]
    assert jobman("delete", "--all", "--force", "-o", "json").data == {"deleted": 1}
    assert service.jobs == {}


@pytest.mark.parametrize("arguments", [(), ("--all", "sweep")])
def test_a_wrong_deletion_ends_with_2(jobman, sweep, arguments):
    assert jobman("delete", *arguments).code == 2


# -- rerun --------------------------------------------------------------------------------------------------

DOCUMENT = "version: 1\nname: again\ntasks: [{name: a, command: [b], resources: {type: node, count: 1}}]\n"


def test_a_job_is_run_once_more(jobman, service):
    service.add(make_job("again", "failed", identity="77c0", document=DOCUMENT, submitted_at=NOW - 60))
    answer = jobman("rerun", "77c")
    assert (answer.code, answer.out) == (0, "0001beef  again\n")
    assert (service.submissions[-1].rerun_of, service.submissions[-1].failed_only) == ("77c", False)


def test_only_what_failed_is_run_once_more(jobman, service):
    service.add(make_job("again", "failed", identity="77c0", document=DOCUMENT))
    assert jobman("rerun", "--failed", "-j", "again").code == 0
    assert service.submissions[-1].failed_only
