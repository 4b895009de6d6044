"""Queues, accounts and the scheduler in the settings: what they mean, and everything that can be wrong."""

# ruff: noqa: E501 - a document stands in one line

import msgspec
import pytest
import yaml

from jobman.sched.accounts import Account, AccountTree
from jobman.sched.queues import Limits, Queue, QueueState, Weights
from jobman.sched.scheduling import DEFAULT_QUEUES, Scheduling, scheduling
from jobman.settings import Settings, load_settings, settings_from_text
from jobman.settings.accounting import accounting_of
from jobman.spec.problems import SpecError

GIB = 2**30
DAY = 86400.0


def read(text) -> Scheduling:
    return scheduling(settings_from_text(text))


def queue(text) -> Queue:
    """The one queue of settings whose keys are given."""
    return read(f"queues: [{{name: q, {text}}}]").queues[0]


def account(text) -> Account:
    return read(f"accounts: [{{name: a, {text}}}]").accounts[0]


def problems(text):
    with pytest.raises(SpecError) as raised:
        settings_from_text(text)
    assert all(problem.advice and problem.place for problem in raised.value.problems)
    return raised.value.problems


def codes(text):
    return [problem.code for problem in problems(text)]


# -- without a word ------------------------------------------------------------------------------------------


def test_without_settings_there_are_two_queues_on_all_nodes():
    found = scheduling(Settings())
    assert found == Scheduling()
    interactive, batch = found.queues
    assert (interactive.name, interactive.is_interactive, interactive.nodes) == ("interactive", True, ())
    assert (batch.name, batch.is_interactive, batch.nodes, batch.depth) == ("batch", False, (), None)


def test_the_template_says_what_would_be_so_without_it(tmp_path):
    assert scheduling(load_settings(home=tmp_path)) == Scheduling()


def test_a_job_that_names_no_queue_is_in_the_batch_queue():
    assert scheduling(Settings()).queue("") is DEFAULT_QUEUES[1]
    assert read("queues: [{name: long}, {name: batch}]").default_queue == "batch"
    assert read("queues: [{name: long}, {name: short}]").default_queue == "long"
    assert read("scheduler: {default_queue: interactive}").default_queue == "interactive"
    assert read("").queue("nowhere") is None


# -- queues --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("written", "depth"), [("all", None), ("0", 0), ("1", 1), ("64", 64)])
def test_the_depth_is_a_number_or_all(written, depth):
    assert queue(f"depth: {written}").depth == depth


def test_those_who_may_pass_are_looked_at_by_priority_or_the_shortest_first():
    assert queue("order: shortest-first").shortest_first
    assert not queue("order: priority").shortest_first


def test_nodes_are_written_as_ranges():
    assert queue("nodes: 'n[1-3],login'").nodes == ("n1", "n2", "n3", "login")
    assert queue("nodes: ['n[08-09]', gpu1, gpu1]").nodes == ("n08", "n09", "gpu1")


@pytest.mark.parametrize(("written", "share"), [("0.3", 0.3), ("30%", 0.3), ("1", 1.0), ("100 %", 1.0)])
def test_a_share_is_a_part_or_per_cent(written, share):
    assert queue(f"share: {written}").share == pytest.approx(share)


def test_one_queue_borrows_from_others():
    found = read("queues: [{name: batch, borrow: interactive}, {name: interactive, nodes: 'n[1-2]'}]")
    assert found.queues[0].borrow == ("interactive",)


def test_a_queue_named_interactive_is_interactive_unless_it_says_otherwise():
    assert read("queues: [{name: interactive}]").queues[0].is_interactive
    assert not read("queues: [{name: interactive, policy: batch}]").queues[0].is_interactive
    assert queue("policy: interactive").is_interactive


def test_weights_that_are_not_given_are_as_they_always_are():
    found = queue("factor: 0.5, weights: {age: 0, fair_share: 2, longest_age: 1d}")
    assert found.factor == 0.5
    assert found.weights == Weights(age=0, fair_share=2, longest_age=DAY)


def test_limits_are_written_in_words_of_people():
    found = queue(
        "limits: {jobs: 10, waiting: 100, longest: 2d, resources: {cores: 64, memory: 512Gi, gpus: 8, nodes: 4}, budget: 1000}"
    ).limits
    assert found == Limits(
        jobs=10,
        waiting=100,
        longest=2 * DAY,
        amounts={"core": 64, "memory": 512 * GIB, "gpu": 8, "node": 4},
        budget=1000,
    )


def test_there_are_limits_of_each_user_and_of_each_account():
    found = queue("each_user: {jobs: 2}, each_account: {resources: {core: 0}}")
    assert (found.each_user, found.each_account) == (Limits(jobs=2), Limits(amounts={"core": 0}))
    assert found.limits == Limits()


def test_a_limit_counts_a_sites_own_resources():
    text = "resource_types: [fpga]\nqueues: [{name: q, limits: {resources: {fpga: 2}}}]"
    assert read(text).queues[0].limits.amounts == {"fpga": 2}
    text = "flavors: [{name: f, resources: {requests: {example.org/tpu: 1}}}]\nqueues: [{name: q, limits: {resources: {example.org/tpu: 2}}}]"
    assert read(text).queues[0].limits.amounts == {"example.org/tpu": 2}


@pytest.mark.parametrize("state", ["open", "draining", "closed"])
def test_a_queue_has_a_state(state):
    assert queue(f"state: {state}").state is QueueState(state)


def test_the_users_queue_takes_the_place_of_the_one_of_the_template(tmp_path):
    (tmp_path / ".jobman").mkdir()
    (tmp_path / ".jobman" / "settings.yaml").write_text(
        "queues: [{name: batch, depth: 1, borrow: interactive}]\n"
    )
    settings = load_settings(home=tmp_path)
    assert [(each.name, each.depth) for each in scheduling(settings).queues] == [
        ("interactive", None),
        ("batch", 1),
    ]


# -- accounts ------------------------------------------------------------------------------------------------


def test_an_account_has_everything_that_an_account_can_have():
    text = """
accounts:
- {name: science, shares: 3}
- name: physics
  parent: science
  description: those in the tower
  users: {ada: 2, bob: 1}
  active: false
  limits: {budget: 500}
  each_user: {jobs: 4}
"""
    science, physics = read(text).accounts
    assert science == Account(name="science", shares=3)
    assert physics == Account(
        name="physics",
        parent="science",
        users={"ada": 2, "bob": 1},
        active=False,
        limits=Limits(budget=500),
        each_user=Limits(jobs=4),
    )
    AccountTree((science, physics))


def test_users_are_a_list_or_each_with_shares():
    assert account("users: [ada, bob]").users == {"ada": 1.0, "bob": 1.0}
    assert account("users: ada").users == {"ada": 1.0}
    assert account("users: {ada: 2.5}").users == {"ada": 2.5}


def test_an_account_may_be_below_the_one_for_everybody():
    assert account("parent: default").parent == "default"


# -- the scheduler -------------------------------------------------------------------------------------------


def test_times_of_the_scheduler():
    found = read("scheduler: {half_life: 14d, default_duration: 1h, stop_margin: 0}")
    assert (found.half_life, found.default_duration, found.stop_margin) == (14 * DAY, 3600.0, 0.0)
    assert read("scheduler: {default_duration: none}").default_duration is None


def test_how_long_output_is_kept():
    found = read("scheduler: {logs: {keep: 30d, keep_size: 10Gi}}")
    assert (found.keep_logs, found.keep_log_size) == (30 * DAY, 10 * GIB)
    assert read("scheduler: {logs: {keep: forever}}").keep_logs is None


def test_sections_of_two_files_are_laid_over_each_other_key_by_key():
    settings = settings_from_text("scheduler: {half_life: 1d, stop_margin: 5s, logs: {keep: 1d}}")
    other = settings_from_text("scheduler: {half_life: 2d, logs: {keep_size: 1Gi}}", "other")
    record = other.records["scheduler.half_life"]
    settings._lay_section("scheduler", record, other.readings[id(record)], "other")
    found = scheduling(settings)
    assert (found.half_life, found.stop_margin) == (2 * DAY, 5.0)
    assert (found.keep_logs, found.keep_log_size) == (DAY, GIB)
    assert settings.origins == {
        "scheduler.half_life": "other",
        "scheduler.stop_margin": "settings",
        "scheduler.logs": "other",
    }


def test_prices_of_two_files_are_laid_over_each_other(tmp_path):
    settings = settings_from_text("accounting: {slice: 30s, price: 2, prices: {small: 1, large: 5}}")
    other = settings_from_text("accounting: {prices: {large: 7}}", "other")
    written = other.records["accounting.prices"]
    settings._lay_section("accounting", written, other.readings[id(written)], "other")
    found = accounting_of(settings.values)
    assert (found.slice, found.price, found.prices) == (30.0, 2.0, {"small": 1.0, "large": 7.0})


# -- what is shown -------------------------------------------------------------------------------------------

EVERYTHING = """
queues:
- {name: batch, policy: batch, depth: all, order: shortest-first, nodes: 'n[1-4],m1', share: 30%, borrow: short,
   factor: 0.5, weights: {age: 3, longest_age: 1h}, limits: {longest: 2d, resources: {memory: 1Gi, cores: 3}}, state: closed}
- {name: short}
accounts:
- {name: a, users: [ada], limits: {budget: 5}}
- {name: b, parent: a, users: {bob: 2}, active: false}
scheduler: {half_life: 2d, default_duration: none, default_queue: short, logs: {keep: forever, keep_size: 1Gi}}
"""


def test_settings_that_are_shown_can_be_used_as_settings():
    settings = settings_from_text(EVERYTHING)
    shown = yaml.safe_dump(msgspec.to_builtins(settings.as_data()))
    assert scheduling(settings_from_text(shown)) == scheduling(settings)
    assert "n[1-4],m1" in shown


def test_every_setting_has_a_line():
    rows = dict(settings_from_text(EVERYTHING).rows())
    assert rows["scheduler.default_duration"] == "none"
    assert rows["accounts.b"] == '{"parent":"a","users":{"bob":2.0},"active":false}'
    assert '"depth":"all"' in rows["queues.batch"]


# -- what is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "code", "line"),
    [
        ("depth: most", "JS905", '"most" is not a depth'),
        ("depth: -1", "JS905", '"-1" is not a depth'),
        ("depth: 1.5", "JS905", '"1.5" is not a depth'),
        ("depth: []", "JS103", "expected a depth, found a list"),
        ("share: 1.2", "JS904", '"1.2" is no part of a whole'),
        ("share: 0", "JS904", '"0" is no part of a whole'),
        ("share: 101%", "JS904", '"101%" is no part of a whole'),
        ("share: -10%", "JS904", '"-10%" is no part of a whole'),
        ("share: some", "JS904", '"some" is no part of a whole'),
        ("share: [1]", "JS103", "found a list"),
        ("policy: bach", "JS212", '"bach" is not a known policy'),
        ("order: sjbf", "JS212", '"sjbf" is not a known order'),
        ("state: down", "JS212", '"down" is not a known state of a queue'),
        ("factor: 2", "JS204", "2 is out of range for a factor"),
        ("nodes: 'n[3-1]'", "JS201", '"n[3-1]" is not names of nodes'),
        ("nodes: []", "JS213", "the list of nodes is empty"),
        ("nodes: {a: b}", "JS103", "found a mapping"),
        ("nodes: [[a]]", "JS103", "found a list"),
        ("weights: {agee: 1}", "JS101", "`weights` has no key `agee`"),
        ("weights: {age: -1}", "JS204", "-1 is out of range for a weight"),
        ("limits: {jobs: many}", "JS103", "expected a whole number"),
        ("limits: {jobs: -1}", "JS204", "-1 is out of range"),
        ("limits: {longest: 1:00:00}", "JS206", '"1:00:00" is not a duration'),
        ("limits: {resources: 5}", "JS103", "expected a mapping of amounts"),
        ("limits: {resources: {cores: lots}}", "JS908", '"lots" is not an amount of core'),
        ("limits: {resources: {memory: 5GB}}", "JS908", '"5GB" is not an amount of memory'),
        ("limits: {resources: {cores: [1]}}", "JS103", "found a list"),
        ("limits: {resources: {cpus: 1}}", "JS410", "there is no resource type `cpus`"),
        ("limits: {resources: {slot: 1}}", "JS410", "there is no resource type `slot`"),
        ("each_user: {running: 1}", "JS101", "`limits` has no key `running`"),
        ("policy: interactive, depth: 1", "JS903", "a queue of the policy `interactive` has no `depth`"),
        ("policy: interactive, order: priority", "JS903", "has no `order`"),
        ("policy: interactive, weights: {age: 1}", "JS903", "has no `weights`"),
        ("borrow: q", "JS902", "the queue `q` borrows from itself"),
        ("borrow: [p]", "JS901", "there is no queue `p`"),
        ("borrow: [p, p]", "JS214", "`p` is in the list already"),
    ],
)
def test_every_wrong_value_of_a_queue_has_a_code_a_place_and_an_advice(keys, code, line):
    found = problems(f"queues: [{{name: q, {keys}}}]\n")
    assert (code, True) in [(problem.code, line in problem.message) for problem in found]


@pytest.mark.parametrize(
    ("keys", "code", "line"),
    [
        ("shares: 0", "JS909", "this account has no shares"),
        ("shares: -1", "JS204", "-1 is out of range for a number of shares"),
        ("users: {ada: 0}", "JS909", "this user has no shares"),
        ("users: [ada, ada]", "JS214", "`ada` is in the list already"),
        ("users: [a b]", "JS201", '"a b" is not a user\'s name'),
        ("parent: b", "JS906", "there is no account `b`"),
        ("parent: a", "JS907", "the account `a` is below itself"),
        ("active: yes", "JS205", "`yes` is a text in YAML 1.2"),
        ("limits: {resources: {gpus: 1.5}}", "JS908", '"1.5" is not an amount of gpu'),
        ("each_user: {budget: -1}", "JS204", "-1 is out of range"),
    ],
)
def test_every_wrong_value_of_an_account_has_a_code_a_place_and_an_advice(keys, code, line):
    found = problems(f"accounts: [{{name: a, {keys}}}]\n")
    assert (code, True) in [(problem.code, line in problem.message) for problem in found]


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("half_life: 0", "JS208"),
        ("half_life: soon", "JS206"),
        ("default_duration: never", "JS206"),
        ("stop_margin: -1", "JS206"),
        ("default_queue: bath", "JS901"),
        ("logs: {keep: always}", "JS206"),
        ("logs: {keep_size: 5GB}", "JS209"),
        ("logs: 30d", "JS103"),
        ("halflife: 1d", "JS101"),
    ],
)
def test_every_wrong_value_of_the_scheduler_has_a_code_a_place_and_an_advice(keys, code):
    assert codes(f"scheduler: {{{keys}}}\n") == [code]


def test_a_circle_of_accounts_is_told_once_with_the_way():
    text = (
        "accounts: [{name: a, parent: b}, {name: b, parent: c}, {name: c, parent: a}, {name: d, parent: a}]"
    )
    (problem,) = problems(text)
    assert problem.message == "the account `a` is below itself: `a` below `b` below `c` below `a`"


def test_a_misspelt_queue_or_account_gets_a_guess():
    (problem,) = problems("queues: [{name: batch, borrow: interctive}, {name: interactive}]")
    assert problem.advice == "did you mean `interactive`?"
    (problem,) = problems("accounts: [{name: physics}, {name: a, parent: phsics}]")
    assert problem.advice == "did you mean `physics`?"


@pytest.mark.parametrize("family", ["queues", "accounts"])
def test_a_name_stands_once_in_a_file(family):
    assert codes(f"{family}: [{{name: a}}, {{name: a}}]") == ["JS720"]


def test_everything_is_told_at_once():
    text = """\
queues:
- {name: gpu, share: 130%, borrow: [bach], limits: {resources: {cpus: 4}}}
- {name: interactive, depth: 4}
accounts:
- {name: a, parent: b, shares: 0}
- {name: b, parent: a}
- {name: c, parent: nobody}
scheduler: {half_life: soon, default_queue: bath}
"""
    found = problems(text)
    assert [(problem.code, problem.place.line) for problem in found] == [
        ("JS904", 2),
        ("JS901", 2),
        ("JS410", 2),
        ("JS903", 3),
        ("JS907", 5),
        ("JS909", 5),
        ("JS906", 7),
        ("JS206", 8),
        ("JS901", 8),
    ]


def test_a_problem_between_two_files_is_told_at_the_one_that_caused_it(tmp_path):
    (tmp_path / ".jobman").mkdir()
    file = tmp_path / ".jobman" / "settings.yaml"
    file.write_text("queues:\n- {name: gpu, borrow: [batch, bath]}\n")
    with pytest.raises(SpecError) as raised:
        load_settings(home=tmp_path)
    (problem,) = raised.value.problems
    assert problem.place is not None
    assert (problem.code, problem.place.file, problem.place.line) == ("JS901", str(file), 2)
    assert problem.advice == "did you mean `batch`?"
