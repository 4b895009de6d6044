"""A document made from a command runs exactly that command."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.api import loads
from jobman.cli.draft import draft, name_of
from jobman.settings import load_settings

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def command_of(text, **overrides):
    spec = loads(text, parameters=overrides)
    assert spec.problems == []
    return list(spec.plan().units[0].command)


@given(st.lists(WORDS, max_size=4))
def test_every_word_arrives_as_it_was_written(words):
    assert command_of(draft(["true", *words])) == ["true", *words]


@pytest.mark.parametrize(
    "word",
    ["{{x}}", "{{ user.name }}", "{{.Names}}", "{{{x}}}", "{{brace}}", "{{", "}}{{x}}{{y}}"],
)
def test_what_looks_like_a_parameter_is_meant_as_it_stands(word):
    assert command_of(draft(["echo", word])) == ["echo", word]


def test_a_parameter_that_was_given_is_filled_in_and_another_is_not():
    assert command_of(draft(["echo", "{{n}} {{m}}"], parameters={"n": "3"})) == ["echo", "3 {{m}}"]


def test_without_a_flavor_one_core_is_asked_for():
    unit = loads(draft(["true"])).plan().units[0]
    assert unit.alternatives[0][0].each == {"core": 1}


def test_the_default_flavor_of_the_settings_is_left_to_the_settings():
    assert "resources" not in draft(["true"], default_flavor=True)


def test_name_image_and_flavor_stand_in_the_document():
    text = draft(["ls", "-al", "/"], name="listing", image="alpine:3", flavor="no-gpu")
    assert text == (
        'version: 1\nname: listing\ntasks:\n- name: listing\n  image: "alpine:3"\n  resources: no-gpu\n'
        '  command: ["ls", "-al", "/"]\n'
    )
    spec = loads(text, settings=load_settings())
    assert spec.problems == []


def test_time_limit_queue_and_account_stand_in_the_document():
    text = draft(["make"], duration="1h30m", queue="interactive", account="physics")
    assert text == (
        "version: 1\nname: make\nqueue: interactive\naccount: physics\ntasks:\n- name: make\n"
        "  resources: {type: slot, count: 1, with: [{type: core, count: 1}]}\n"
        '  attributes: {duration: "1h30m"}\n  command: ["make"]\n'
    )
    plan = loads(text).plan()
    assert (plan.queue, plan.account, plan.units[0].duration) == ("interactive", "physics", 5400.0)


@pytest.mark.parametrize(("written", "seconds"), [("90", 90), ("2h", 7200), ("1d12h", 129600)])
def test_a_time_limit_is_read_as_the_language_reads_it(written, seconds):
    assert loads(draft(["true"], duration=written)).plan().units[0].duration == seconds


def test_a_time_limit_that_is_none_is_a_mistake_in_the_document():
    assert [problem.code for problem in loads(draft(["true"], duration="for ever")).problems] == ["JS206"]


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("echo", "echo"),
        ("/usr/bin/python3.11", "python3.11"),
        ("./my script.sh", "my-script.sh"),
        ("[", "job"),
        ("", "job"),
        ("true", "true"),
        ("-x", "x"),
        ("a" * 80, "a" * 63),
        ("é", "job"),
    ],
)
def test_a_job_has_the_name_of_its_program(program, name):
    assert name_of(program) == name
    assert loads(draft([program or "x"], name=name)).plan().name == name


def test_a_word_that_is_no_text_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        draft(["echo", "\udcff"])
    assert end.value.code == 2
    assert "not UTF-8" in capsys.readouterr().err
