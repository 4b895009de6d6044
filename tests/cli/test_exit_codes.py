"""What the shell is told: 0 done, 2 wrong use, 3 wrong document, 4 not to be had. Answers on stdout only."""

import pytest

GOOD = "version: 1\ntasks: [{command: [echo], image: 'a:1', resources: {type: node, count: 1}}]\n"
WRONG = "version: 1\ntasks: [{command: [echo], resources: {type: node, count: 0}}]\n"
GOOD_USES = {
    "check": ("check", "job.yaml"),
    "explain": ("explain", "job.yaml"),
    "satisfy": ("satisfy", "job.yaml", "--nodes", "nodes.yaml"),
    "render": ("render", "job.yaml", "-e", "kubernetes", "-n", "lab"),
    "schema": ("schema",),
    "features": ("features",),
    "settings": ("settings",),
    "help": ("help", "JS101"),
    "completion": ("completion", "bash"),
}
DOCUMENTS = ("check", "explain", "satisfy", "render")


@pytest.fixture(autouse=True)
def files(write):
    write(GOOD)
    write(WRONG, "wrong.yaml")
    write("- {name: n1, cores: 4}\n", "nodes.yaml")
    write("nodes: 3\n", "wrong-nodes.yaml")
    write("colour: blue\n", "wrong-settings.yaml")


@pytest.mark.parametrize("arguments", GOOD_USES.values(), ids=list(GOOD_USES))
def test_what_is_done_ends_with_0_and_an_answer_on_stdout_alone(jobman, arguments):
    answer = jobman(*arguments)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out != ""


WRONG_USES = {
    **{f"{name}: unknown option": (*use, "--wat") for name, use in GOOD_USES.items()},
    **{f"{name}: one word too many": (*use, "word") for name, use in GOOD_USES.items() if name != "check"},
    **{
        f"{name}: unknown form behind it": (*use, "-o", "xml")
        for name, use in GOOD_USES.items()
        if name != "completion"
    },
    **{
        f"{name}: unknown form before it": ("-o", "xml", *use)
        for name, use in GOOD_USES.items()
        if name != "completion"
    },
    "check: no file": ("check",),
    "explain: no file": ("explain",),
    "satisfy: nodes of two kinds": ("satisfy", "job.yaml", "--nodes", "nodes.yaml", "--virtual", "4x4"),
    "satisfy: no virtual nodes": ("satisfy", "job.yaml", "--virtual", "four"),
    "render: no file": ("render", "-e", "kubernetes"),
    "render: unknown engine": ("render", "job.yaml", "-e", "kubernets"),
    "render: no namespace": ("render", "job.yaml", "-e", "kubernetes", "-n", "The Lab"),
    "completion: no shell": ("completion",),
    "completion: unknown shell": ("completion", "tcsh"),
    "help: unknown topic": ("help", "JS9999"),
    "explain: unknown graph": ("explain", "job.yaml", "--graph", "out.png"),
    "no command": (),
    "unknown command": ("chek", "job.yaml"),
    "unknown global option": ("--wat", "check", "job.yaml"),
    "an option without its value": ("check", "job.yaml", "--set"),
}


@pytest.mark.parametrize("arguments", WRONG_USES.values(), ids=list(WRONG_USES))
def test_a_wrong_use_ends_with_2(jobman, arguments):
    answer = jobman(*arguments)
    assert answer.code == 2
    assert answer.out + answer.err != ""


@pytest.mark.parametrize("arguments", [u for n, u in WRONG_USES.items() if n != "no command"], ids=str)
def test_a_wrong_use_has_no_answer_on_stdout(jobman, arguments):
    assert jobman(*arguments).out == ""


def test_a_wrong_form_names_the_right_ones(jobman):
    assert "'xml' is not one of table, json, yaml" in jobman("features", "-o", "xml").err


def test_a_misspelt_command_gets_a_guess(jobman):
    assert "Did you mean" in jobman("chekc").err
    assert "'check'" in jobman("chekc").err


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize("file", ["wrong.yaml", "missing.yaml", "."])
def test_a_wrong_document_ends_with_3(jobman, name, form, file):
    arguments = [file if word == "job.yaml" else word for word in GOOD_USES[name]]
    assert jobman(*arguments, "-o", form).code == 3


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_wrong_set_ends_with_3(jobman, name):
    assert jobman(*GOOD_USES[name], "--set", "nothing").code == 3


@pytest.mark.parametrize("name", [*DOCUMENTS, "settings"])
def test_wrong_settings_end_with_3(jobman, name):
    assert jobman("-s", "wrong-settings.yaml", *GOOD_USES[name]).code == 3


def test_a_wrong_file_of_nodes_ends_with_3(jobman):
    assert jobman("satisfy", "job.yaml", "--nodes", "wrong-nodes.yaml").code == 3


def test_what_no_node_can_take_ends_with_4(jobman, write):
    name = write("version: 1\ntasks: [{command: a, resources: {type: node, count: 2}}]\n", "large.yaml")
    assert jobman("satisfy", name, "--nodes", "nodes.yaml").code == 4


def test_what_an_engine_cannot_do_ends_with_4(jobman, write):
    name = write("version: 1\ntasks: [{command: a, resources: {type: node, count: 2}}]\n", "bare.yaml")
    assert jobman("render", name, "-e", "kubernetes").code == 4
    assert jobman("render", "job.yaml").code == 4


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ("check", "job.yaml")),
        (2, ("check", "--wat")),
        (3, ("check", "wrong.yaml")),
        (4, ("satisfy", "-", "--nodes", "nodes.yaml")),
    ],
)
def test_the_real_command_ends_with_the_same_codes(real_jobman, code, arguments):
    stdin = "version: 1\ntasks: [{command: a, resources: {type: node, count: 2}}]\n"
    assert real_jobman(*arguments, stdin=stdin).code == code
