"""`jobman queue` and `jobman nodes`: opening and closing, taking out of use and back.

The service is the stub of the command line's tests: it remembers states, but heeds none.
"""

import pytest

from jobman.control.answers import Node, QueueRow


def test_queues_are_listed(jobman, service):
    assert jobman("queue", "list").out.splitlines() == [
        "queue        state  policy       depth  nodes",
        "interactive  open   interactive         all",
        "batch        open   batch          all  all",
    ]
    assert jobman("queue", "list", "-o", "json").data["items"][1]["depth"] is None


@pytest.mark.parametrize(("verb", "state"), [("open", "open"), ("drain", "draining"), ("close", "closed")])
def test_a_queue_is_opened_drained_and_closed(jobman, service, verb, state):
    assert jobman("queue", verb, "batch", "--reason", "new disks") == (0, f"batch  {state}\n", "")
    batch = jobman("queue", "list", "-o", "json").data["items"][1]
    assert (batch["state"], batch["reason"], batch["by"]) == (state, "new disks", "ada")
    assert "new disks" in jobman("queue", "list").out


def test_several_queues_at_once(jobman, service):
    assert jobman("queue", "close", "batch", "interactive").out == "batch  closed\ninteractive  closed\n"
    assert [one["state"] for one in jobman("queue", "open", "batch", "interactive", "-o", "json").data] == [
        "open",
        "open",
    ]


def test_what_was_switched_before_a_refusal_is_told(jobman, service):
    answer = jobman("queue", "close", "batch", "bach")
    assert (answer.code, answer.out) == (1, "batch  closed\n")
    answer = jobman("nodes", "drain", "n1", "n9")
    assert (answer.code, answer.out) == (1, "n1  draining\n")


def test_an_unknown_queue_gets_a_guess(jobman, service):
    answer = jobman("queue", "close", "bach")
    assert answer == (1, "", "jobman: There is no queue bach.\n        Did you mean batch?\n")


def test_the_form_of_the_answer_may_be_given_anywhere(jobman, service):
    for words in (
        ("-o", "json", "queue", "close", "batch"),
        ("queue", "-o", "json", "close", "batch"),
        ("queue", "close", "batch", "-o", "json"),
    ):
        assert jobman(*words).data["state"] == "closed"


def test_without_a_word_the_demand_is_listed(jobman, service):
    service.queue = [QueueRow(flavor="small", resources={"core": 1}, waiting=1, running=0, next_start="now")]
    assert jobman("queue").out.splitlines()[1].startswith("small")
    assert jobman("queue", "-o", "json").data["items"][0]["flavor"] == "small"


# -- nodes ---------------------------------------------------------------------------------------------------


def test_nodes_are_drained_and_used_again(jobman, service):
    assert jobman("nodes", "drain", "n1", "--reason", "fan") == (0, "n1  draining\n", "")
    assert service.switches.draining() == {"n1": "node n1 is drained by ada: fan"}
    assert jobman("nodes", "resume", "n1") == (0, "n1  up\n", "")
    assert service.switches.draining() == {}


def test_ranges_of_nodes_are_drained(jobman, service):
    answer = jobman("nodes", "drain", "n[1-2]", "gpu1,n1")
    assert answer.out == "n1  draining\nn2  draining\ngpu1  draining\n"
    assert len(jobman("nodes", "resume", "n[1-2]", "-o", "json").data) == 2


def test_an_unknown_node_is_told(jobman, service):
    answer = jobman("nodes", "drain", "n9")
    assert (answer.code, answer.out) == (1, "")
    assert "There is no node n9." in answer.err


def test_a_range_that_is_none_is_a_wrong_use(jobman, service):
    answer = jobman("nodes", "drain", "n[")
    assert answer.code == 2
    assert service.requests == []


def test_without_a_word_the_nodes_are_listed(jobman, service):
    service.nodes = [Node(name="n1", facts={"a": "b"})]
    assert jobman("nodes").out.splitlines()[1] == "n1    up"
    assert jobman("nodes", "--facts").out == "node  n1\na     b\n"
    assert jobman("nodes", "-o", "json").data["items"][0]["name"] == "n1"


@pytest.mark.parametrize("group", ["queue", "nodes"])
def test_a_word_that_is_no_command_is_a_wrong_use(jobman, service, group):
    assert jobman(group, "explode").code == 2
