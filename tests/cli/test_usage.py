"""`jobman usage`."""

import csv
import io
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from jobman.control.accounting.statements import Usage, UsageLine
from jobman.control.refusals import Refusal

PHYSICS = UsageLine(
    account="physics", jobs=12, hours=104.5, core_hours=418.0, gpu_hours=52.25, units=1910.0, refunded=24.0
)
BIOLOGY = UsageLine(account="biology", jobs=3, hours=8.0, core_hours=8.0, units=8.0)
TOTAL = UsageLine(
    jobs=15, hours=112.5, core_hours=426.0, gpu_hours=52.25, node_hours=0.0, units=1918.0, refunded=24.0
)


@pytest.fixture
def statement(service):
    service.usage = Usage(by="account", items=[PHYSICS, BIOLOGY], total=TOTAL)
    return service


def asked(service):
    """The parameters of the last request."""
    return {name: values[0] for name, values in parse_qs(urlsplit(service.requests[-1]).query).items()}


def test_a_statement_has_a_line_for_each_and_a_total(jobman, statement):
    assert jobman("usage").out.splitlines() == [
        "account  jobs   hours  core hours  gpu hours     units  refunded",
        "physics    12  104.50      418.00      52.25  1,910.00     24.00",
        "biology     3    8.00        8.00                 8.00",
        "total      15  112.50      426.00      52.25  1,918.00     24.00",
    ]


def test_accounts_below_others_are_indented_with_what_is_below_and_in_all(jobman, service):
    lines = [
        UsageLine(account="science", units=0.0, below=7.0, in_all=7.0),
        UsageLine(account="physics", parent="science", jobs=2, hours=1.0, units=1.0, below=4.0, in_all=5.0),
        UsageLine(account="optics", parent="physics", jobs=1, hours=4.0, units=4.0, below=0.0, in_all=4.0),
        UsageLine(account="biology", parent="science", jobs=1, hours=2.0, units=2.0, below=0.0, in_all=2.0),
    ]
    total = UsageLine(jobs=4, hours=7.0, units=7.0)
    service.usage = Usage(by="account", items=lines, total=total)
    assert jobman("usage").out.splitlines() == [
        "account     jobs  hours  units  below  in all",
        "science        0          0.00   7.00    7.00",
        "  physics      2   1.00   1.00   4.00    5.00",
        "    optics     1   4.00   4.00           4.00",
        "  biology      1   2.00   2.00           2.00",
        "total          4   7.00   7.00           7.00",
    ]
    assert jobman("usage", "-o", "json").data["items"][1]["below"] == 4.0
    assert "physics,2,1.0" in jobman("usage", "-o", "csv").out


def test_an_account_that_is_asked_for_stands_at_the_top(jobman, service):
    line = UsageLine(account="physics", parent="science", jobs=1, units=1.0, below=0.0, in_all=1.0)
    service.usage = Usage(by="account", items=[line], total=line)
    assert jobman("usage", "--account", "physics").out.splitlines()[1].startswith("physics ")


def test_one_line_is_its_own_total(jobman, statement):
    statement.usage.items = [PHYSICS]
    assert len(jobman("usage").out.splitlines()) == 2


def test_jobs_are_told_with_their_names_users_and_accounts(jobman, service):
    line = UsageLine(job="0f3a", name="fit", user="ada", account="physics", jobs=1, hours=1.0, units=2.5)
    service.usage = Usage(by="job", items=[line], total=line)
    assert jobman("usage", "--by", "job").out.splitlines() == [
        "job   name  user  account  jobs  hours  units",
        "0f3a  fit   ada   physics     1   1.00   2.50",
    ]


def test_lines_that_are_left_out_are_told_of(jobman, statement):
    statement.usage.more = True
    answer = jobman("usage", "-n", "2")
    assert "there are more than 2 lines" in answer.err
    assert asked(statement)["limit"] == "2"


def test_where_nothing_was_used_that_is_said(jobman, service):
    assert jobman("usage") == (0, "", "jobman: nothing was used in this time\n")


def test_everything_can_be_asked_for(jobman, service):
    jobman(
        "usage", "--account", "a b", "--user", "eve", "--since", "2026-03-01", "--until", "2026-04-01T12:00Z"
    )
    found = asked(service)
    assert (found["account"], found["user"], found["by"]) == ("a b", "eve", "account")
    assert float(found["until"]) == 1775044800.0
    assert float(found["until"]) - float(found["since"]) > 30 * 86400


def test_without_a_time_it_is_the_last_month_and_all_is_everything(jobman, service):
    jobman("usage")
    assert abs(time.time() - float(asked(service)["since"]) - 30 * 86400) < 3600
    jobman("usage", "--since", "all")
    assert "since" not in asked(service)


def test_as_data(jobman, statement):
    data = jobman("usage", "-o", "json").data
    assert (data["by"], data["more"]) == ("account", False)
    assert data["items"][0]["core_hours"] == 418.0
    assert data["total"]["units"] == 1918.0
    assert "account: physics" in jobman("-o", "yaml", "usage").out


@pytest.mark.parametrize("words", [("usage", "-o", "csv"), ("-o", "csv", "usage")])
def test_as_csv(jobman, statement, words):
    answer = jobman(*words)
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert [(row["account"], row["units"], row["gpu_hours"]) for row in rows] == [
        ("physics", "1910.0", "52.25"),
        ("biology", "8.0", "0.0"),
    ]


@pytest.mark.parametrize(
    "words",
    [("--since", "soon"), ("--until", "x"), ("--by", "moon"), ("-o", "xml"), ("-n", "0")],
)
def test_what_makes_no_sense_is_refused(jobman, service, words):
    answer = jobman("usage", *words)
    assert (answer.code, answer.out) == (2, "")
    assert service.requests == []


def test_a_refusal_of_csv_is_told_in_words(jobman, service):
    service.refusal = Refusal("store", "the disk is full", "make room")
    answer = jobman("usage", "-o", "csv")
    assert (answer.code, answer.out) == (5, "")
    assert "the disk is full" in answer.err
