"""`jobman queue`, `nodes` and `resources-flavors`."""

import pytest

from jobman.client import Client
from jobman.control.answers import Node, QueueRow
from jobman.engines.kubernetes.sight import Sight


def test_the_queue_is_told_by_flavor(jobman, service):
    service.queue = [
        QueueRow(
            flavor="small",
            resources={"core": 1, "memory": 2 * 2**30},
            waiting=12,
            running=4,
            yours_waiting=2,
            yours_running=1,
            next_start="in about 3 min",
        ),
        QueueRow(flavor=None, resources={"core": 64, "gpu": 1}, waiting=0, running=1, next_start="now"),
    ]
    assert jobman("queue").out.splitlines() == [
        "flavor     waiting  running  yours  resources             next start",
        "small           12        4      3  1 core, 2 GiB memory  in about 3 min",
        "<no name>        0        1      0  64 cores, 1 gpu       now",
    ]
    assert jobman("queue", "-o", "json").data["items"][0]["yours_waiting"] == 2


def test_gpus_of_each_maker_are_listed_apart_and_summed(jobman, service):
    service.queue = [
        QueueRow(flavor="big", resources={"core": 4, "gpu": 2, "gpu.NVIDIA": 2}, waiting=3, running=1),
        QueueRow(flavor=None, resources={"gpu": 3, "gpu.MIG": 1, "gpu.AMD": 2}, waiting=0, running=2),
    ]
    assert jobman("queue").out.splitlines() == [
        "flavor     waiting  running  yours  resources",
        "big              3        1      0  4 cores, 2 gpus (NVIDIA)",
        "<no name>        0        2      0  3 gpus (1 MIG, 2 AMD)",
        "",
        "gpus    waiting  running",
        "NVIDIA        6        2",
        "MIG           0        2",
        "AMD           0        4",
        "all           6        8",
    ]


def test_an_empty_queue_is_no_error(jobman, service):
    assert jobman("queue") == (0, "", "jobman: nothing waits and nothing runs\n")


@pytest.fixture
def four_nodes(service):
    service.nodes = [
        Node(
            name="n1",
            amounts={"core": 8, "socket": 1, "memory": 2**34, "storage": 2**40, "gpu": 2},
            used={"core": 8, "gpu": 1},
            jobs=["0f3a"],
        ),
        Node(name="n2", amounts={"core": 1000, "memory": 2**34}, used={"core": 1}),
        Node(name="n3", state="draining", reason="drained by ada: disk", amounts={"core": 8}),
        Node(name="n4", state="down"),
    ]


def test_nodes_say_how_much_is_in_use(jobman, four_nodes):
    assert jobman("nodes").out.splitlines() == [
        "node  state     load          cores  gpu load    gpus    memory  sockets  storage  jobs  reason",
        "n1    up        ██████████      8/8  █████░░░░░   1/2  0/16 GiB      0/1  0/1 TiB  0f3a",
        "n2    up        █░░░░░░░░░  1/1,000                    0/16 GiB",
        f"n3    draining  ░░░░░░░░░░      0/8{' ' * 54}drained by ada: disk",
        "n4    down",
    ]
    assert jobman("nodes", "-o", "json").data["items"][3]["state"] == "down"


def test_nodes_say_what_others_use_of_them(jobman, service):
    service.nodes = [
        Node(name="n1", amounts={"core": 8}, used={"core": 3.5}, foreign={"core": 1.5}),
        Node(name="n2", state="suspect", reason="it does not answer", amounts={"core": 8}),
    ]
    assert jobman("nodes").out.splitlines() == [
        "node  state    load        cores  others     reason",
        "n1    up       ████░░░░░░  3.5/8  1.5 cores",
        "n2    suspect  ░░░░░░░░░░    0/8             it does not answer",
    ]


def test_in_80_columns_figures_stay_and_what_tells_least_goes(jobman, four_nodes, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = jobman("nodes").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["node", "state", "load", "cores", "gpu", "load", "gpus", "memory", "reason"]


def test_where_blocks_cannot_be_written_bars_are_made_of_letters(real_jobman, four_nodes):
    assert "##########      8/8" in real_jobman("nodes", PYTHONIOENCODING="ascii").out


def test_the_facts_of_nodes_on_request(jobman, service):
    service.nodes = [Node(name="n1", facts={"os.name": "linux"}, labels={"zone": "a"})]
    assert jobman("nodes", "--facts").out == "node     n1\nos.name  linux\nzone     a\n"


# -- flavors ------------------------------------------------------------------------------------------------


def flavors(answer):
    return {row["name"]: row for row in answer.data}


def test_flavors_come_from_the_settings_and_say_from_where(jobman):
    answer = jobman("resources-flavors")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[:2] == [
        "flavor     resources                     from",
        "no-gpu     1 core, 1 GB memory           template",
    ]


def test_a_flavor_of_the_home_file_takes_the_place_of_a_packaged_one(jobman, bare_home):
    (bare_home / ".jobman").mkdir()
    file = bare_home / ".jobman" / "settings.json"
    file.write_text(
        '{"default_flavor": "no-gpu", "flavors": [{"name": "no-gpu", "resources": {"requests": {"cpu": 3}}}]}'
    )
    found = flavors(jobman("resources-flavors", "-o", "json"))
    assert found["no-gpu"]["amounts"] == {"core": 3}
    assert (found["no-gpu"]["from"], found["no-gpu"]["default"]) == (str(file), True)
    assert (found["small"]["from"], found["small"]["default"]) == ("template", False)
    assert "no-gpu (default)" in jobman("resources-flavors").out


def test_flavors_need_no_service(real_jobman, tmp_path):
    assert real_jobman("resources-flavors").code == 0
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("width", [60, 100])
def test_tables_fit_the_terminal(jobman, service, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    words = "when the job that holds the node has ended, and not before that"
    service.queue = [QueueRow(flavor="f" * 30, resources={"core": 1}, waiting=1, running=1, next_start=words)]
    service.nodes = [Node(name="n" * 30, amounts={"core": 1}, jobs=["0f3a"] * 9)]
    for command in ("queue", "nodes", "resources-flavors"):
        assert max(map(len, jobman(command).out.splitlines())) <= width


@pytest.mark.parametrize(
    ("sight", "words"),
    [
        (
            Sight(namespaces=("a", "b"), of=3),
            "counted in 2 of 3 namespaces, a, b: you may not see the others",
        ),
        (Sight(namespaces=("a",)), "counted in 1 namespace, a: there may be others that you may not see"),
    ],
)
def test_the_queue_says_where_it_was_counted(jobman, service, monkeypatch, sight, words):
    monkeypatch.setattr(Client, "queue_in_sight", lambda _: ([], sight))
    assert jobman("queue").err == f"jobman: nothing waits and nothing runs\njobman: {words}\n"
    assert jobman("queue", "-o", "json").data["sight"]["of"] == sight.of
