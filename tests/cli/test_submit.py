"""`jobman submit`: documents and commands given to the service, on the quick way and on the long one."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from math import ceil

import pytest

from jobman.cli import shortcut
from jobman.cli.app import app
from jobman.cli.commands import Directory
from jobman.control.answers import Estimate
from jobman.control.refusals import Refusal
from tests.cli.conftest import Answer
from tests.cli.stub import Script, line

TASK = "- name: hello\n  command: [echo, hello]\n  resources: {type: node, count: 1}\n"
GOOD = f"version: 1\nname: hello\ntasks:\n{TASK}"
WRONG = "version: 1\ntasks: [{command: [echo], resources: {type: node, count: 0}}]\n"
TWO = f"{GOOD}---\nversion: 1\nname: second\ntasks:\n{TASK}"


@pytest.fixture
def quick(jobman):
    """Run a command on the quick way, in this process."""

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                shortcut.take(list(map(str, arguments)))
        except SystemExit as end:
            return Answer(int(end.code or 0), out.getvalue(), err.getvalue())
        return jobman(*arguments)

    return run


@pytest.fixture(params=["quick", "long", pytest.param("process", marks=pytest.mark.slow)])
def either(request, quick, jobman, real_jobman):
    """Run a command on each of its two ways; the long one is that of the library."""
    return {"quick": quick, "long": jobman, "process": real_jobman}[request.param]


# -- documents ----------------------------------------------------------------------------------------------


def test_the_id_and_the_name_are_the_answer(either, service, write):
    answer = either("submit", write(GOOD))
    assert (answer.code, answer.out) == (0, "0001beef  hello\n")
    assert answer.err == "jobman: follow it with `jobman logs -f 0001beef`\n"


def test_the_text_of_the_document_goes_to_the_service_with_what_it_needs(either, service, write, tmp_path):
    either("submit", write(GOOD), "--set", "n=3", "--virtual", "4x4", "--hold", "--no-container")
    sent = service.submissions[-1]
    assert (sent.document, sent.file) == (GOOD, "job.yaml")
    assert (sent.virtual, sent.hold, sent.no_container, sent.dry_run) == ("4x4", True, True, False)
    assert sent.cwd == str(tmp_path / "work")
    assert sent.environment["JOBMAN_STATE"] == str(tmp_path / "state")


def test_a_shared_service_is_not_told_the_environment(monkeypatch):
    from jobman.cli.submission import environment

    monkeypatch.setenv("JOBMAN_SERVER", "https://jobs.example:7070")
    assert environment() is None


def test_a_document_on_standard_input(real_jobman, service):
    assert real_jobman("submit", "-", stdin=GOOD).out == "0001beef  hello\n"
    assert service.submissions[-1].file == "<stdin>"


def test_a_byte_order_mark_is_not_part_of_the_text(real_jobman, service, write):
    real_jobman("submit", write(b"\xef\xbb\xbf" + GOOD.encode()))
    assert service.submissions[-1].document == GOOD


def test_several_jobs_of_one_document(either, service, write):
    answer = either("submit", write(TWO))
    assert answer.out == "0001beef  hello\n0002beef  second\n"


def test_another_name_for_the_job(either, service, write):
    assert either("submit", "-j", "mine", write(GOOD)).out == "0001beef  mine\n"


def test_the_answer_as_data(either, service, write):
    data = either("submit", write(GOOD), "-o", "json").data
    assert (data["jobs"][0]["id"], data["replayed"]) == ("0001beef", False)


def test_a_wrong_document_is_told_as_check_tells_it(either, jobman, service, write):
    name = write(WRONG, "wrong.yaml")
    answer = either("submit", name)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == jobman("check", name).out.rpartition("wrong.yaml: ")[0]
    assert service.jobs == {}


def test_a_wrong_document_is_told_as_data_where_data_is_asked_for(either, service, write):
    answer = either("submit", write(WRONG), "-o", "json")
    assert (answer.code, answer.err) == (3, "")
    assert answer.data["code"] == "bad-document"
    assert answer.codes == ["JS406"]


def test_warnings_do_not_keep_a_job_from_its_way(either, service, write):
    answer = either("submit", write(GOOD.replace("version: 1\n", "")))
    assert (answer.code, answer.out) == (0, "0001beef  hello\n")
    assert "warning JS" in answer.err


@pytest.mark.parametrize("file", ["missing.yaml", ".", "binary.yaml", "latin.yaml"])
def test_a_file_that_is_no_text_is_told_as_check_tells_it(either, jobman, service, write, file):
    write(b"version: 1\0", "binary.yaml")
    write(b"name: \xe9\n", "latin.yaml")
    answer = either("submit", file)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == jobman("check", file).out.rpartition(f"{file}: ")[0]


def test_of_several_documents_none_is_submitted_where_one_is_wrong(either, service, write):
    answer = either("submit", write(GOOD, "a.yaml"), write(WRONG, "b.yaml"))
    assert answer.code == 3
    assert service.jobs == {}


def test_several_documents(either, service, write):
    answer = either("submit", write(GOOD, "a.yaml"), write(GOOD, "b.yaml"))
    assert [line.split()[1] for line in answer.out.splitlines()] == ["hello", "hello"]
    assert len(service.jobs) == 2


def test_named_settings_go_with_the_document(either, service, write):
    settings = write("flavors: [{name: tiny, resources: {requests: {cpu: 1}}}]\n", "mine.yaml")
    document = write("version: 1\nname: x\ntasks: [{command: a, resources: tiny}]\n")
    assert either("-s", settings, "submit", document).code == 0
    assert service.submissions[-1].settings_file == "mine.yaml"


def test_settings_that_are_missing_are_told(either, service, write):
    answer = either("-s", "nowhere.yaml", "submit", write(GOOD))
    assert (answer.code, answer.out) == (3, "")
    assert "JS001: there is no file nowhere.yaml" in answer.err


def test_settings_that_are_wrong_are_told_by_the_service(either, service, write):
    answer = either("-s", write("colour: blue\n", "mine.yaml"), "submit", write(GOOD))
    assert answer.code == 3
    assert "mine.yaml:1:1: error JS101" in answer.err


# -- commands -----------------------------------------------------------------------------------------------


def test_a_command_becomes_a_document(either, service):
    answer = either("submit", "-i", "alpine", "-r", "no-gpu", "--", "ls", "-al", "/")
    assert answer.out == "0001beef  ls\n"
    sent = service.submissions[-1]
    assert (sent.file, sent.settings) == ("<command>", None)
    assert 'image: alpine\n  resources: no-gpu\n  command: ["ls", "-al", "/"]' in sent.document


def test_a_command_has_a_time_limit_a_queue_and_an_account(either, service):
    either("submit", "--duration", "30m", "--queue", "batch", "--account", "physics", "--", "make")
    document = service.submissions[-1].document
    assert "queue: batch\naccount: physics\n" in document
    assert 'attributes: {duration: "30m"}' in document


def test_a_time_limit_that_is_none_is_told_and_nothing_is_submitted(either, service):
    answer = either("submit", "--duration", "tomorrow", "--", "make")
    assert (answer.code, answer.out) == (3, "")
    assert "JS206" in answer.err


def test_what_only_a_command_can_be_given_is_named(jobman, service, write):
    answer = jobman("submit", "--queue", "batch", "--duration", "1h", write(GOOD))
    assert "Invalid value for --duration, --queue" in answer.err


def test_a_command_is_argv_and_not_a_line(either, service):
    words = ["sh", "-c", "echo  'two words' \"$HOME\"\n", "", "--", "-o", "é"]
    either("submit", "--", *words)
    assert f"command: {json.dumps(words, ensure_ascii=False)}" in service.submissions[-1].document


def test_the_name_of_a_command(either, service):
    assert either("submit", "-j", "train", "--", "python3", "train.py").out == "0001beef  train\n"


def test_an_inline_flavor_travels_with_the_job(either, service):
    flavor = '{"name": "mine", "resources": {"requests": {"cpu": "2", "memory": "1G"}}}'
    assert either("submit", "-r", flavor, "--", "true").code == 0
    sent = service.submissions[-1]
    assert "resources: mine" in sent.document
    assert {"mine", "no-gpu"} <= {one["name"] for one in json.loads(sent.settings)["flavors"]}


def test_a_flavor_in_a_file(either, service, write):
    name = write('{"name": "mine", "resources": {"requests": {"cpu": 2}}}', "flavor.json")
    assert either("submit", "-r", name, "--", "true").code == 0
    assert "resources: mine" in service.submissions[-1].document


def test_a_flavor_of_the_home_file_wins_over_the_packaged_one(either, service, bare_home):
    (bare_home / ".jobman").mkdir()
    (bare_home / ".jobman" / "settings.json").write_text('{"default_flavor": "small"}')
    either("submit", "--", "true")
    assert "resources" not in service.submissions[-1].document


def test_without_any_flavor_one_core_is_asked_for(either, service):
    either("submit", "--", "true")
    assert "resources: {type: slot, count: 1" in service.submissions[-1].document


WRONG_FLAVORS = {
    '{"name": "x", "resources": {"requests": {"cpu": "many"}}}': ("JS422", "-r:1:49", '"many"'),
    '{"name": "x", "resources": {"reqests": {"cpu": "1"}}}': ("JS101", "-r:1:29", '"reqests"'),
    '{"name": "x"}': ("JS421", "-r:1:1", None),
    '{"resources": {"requests": {"cpu": "1"}}}': ("JS105", "-r:1:1", None),
    '{"name": "x", "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}': ("JS423", "-r:1:71", "1"),
    '{"name": "x", ': ("JS0", "-r:1:", None),
    '["x"]': ("JS103", "-r:1:1", None),
    '{"name": "x", "shape": {"type": "slot", "count": 1, "with": [{"type": "cpus", "count": 1}]}}': (
        "JS4",
        "-r:1:",
        None,
    ),
}


@pytest.mark.parametrize(
    ("flavor", "wanted"), WRONG_FLAVORS.items(), ids=[w[0] for w in WRONG_FLAVORS.values()]
)
def test_a_wrong_flavor_is_told_with_place_code_caret_and_advice(jobman, service, flavor, wanted):
    code, place, culprit = wanted
    answer = jobman("submit", "-r", flavor, "--", "true")
    assert (answer.code, answer.out) == (3, "")
    head, *rest = answer.err.splitlines()
    assert head.startswith(f"{place}")
    assert f"error {code}" in head
    assert any(text.startswith("      help: ") for text in rest)
    if culprit is not None:
        carets = next(text for text in rest if set(text.strip(" |")) == {"^"})
        assert rest[0][carets.index("^") : carets.rindex("^") + 1] == culprit
    assert service.jobs == {}


def test_a_flavor_file_that_is_missing_is_told(either, service):
    answer = either("submit", "-r", "nowhere.json", "--", "true")
    assert answer.code == 3
    assert "there is no file nowhere.json" in answer.err


def test_a_flavor_that_no_settings_know_is_told_by_the_service(either, service):
    answer = either("submit", "-r", "gigantic", "--", "true")
    assert answer.code == 3
    assert "gigantic" in answer.err


# -- dry run, following, refusals ---------------------------------------------------------------------------


def test_a_dry_run_shows_the_document_and_submits_nothing(either, service):
    answer = either("submit", "--dry-run", "-r", "small", "--", "echo", "hi")
    assert answer.code == 0
    assert answer.out == (
        'version: 1\nname: echo\ntasks:\n- name: echo\n  resources: small\n  command: ["echo", "hi"]\n'
    )
    assert answer.err == "jobman: echo with 1 replica would be submitted; nothing was\n"
    assert service.jobs == {}


# -- when it starts -----------------------------------------------------------------------------------------


FAR = time.time() + 400 * 86_400
"""A moment that is told with its date, whatever the time of day."""


def by(moment):
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ceil(moment / 60) * 60))


def test_when_it_starts_is_said_at_once_and_beside_the_answer(either, service, write):
    service.estimates["hello"] = Estimate(guaranteed_by=FAR, position=3, queue="batch")
    answer = either("submit", write(GOOD))
    assert answer.out == "0001beef  hello\n"
    assert answer.err.splitlines() == [
        f"jobman: starts by {by(FAR)} at the latest; 3rd in batch",
        "jobman: follow it with `jobman logs -f 0001beef`",
    ]


def test_of_several_jobs_each_is_told_by_its_name(either, service, write):
    service.estimates["hello"] = Estimate(starts_now=True)
    service.estimates["second"] = Estimate(position=1, queue="batch")
    assert either("submit", write(TWO)).err.splitlines() == [
        "jobman: hello: starts now",
        "jobman: second: no promise yet; 1st in batch",
    ]


def test_of_very_many_jobs_only_some_are_told(jobman, service, write):
    documents = [GOOD.replace("name: hello", f"name: j{number}", 1) for number in range(14)]
    service.estimates = {f"j{number}": Estimate(starts_now=True) for number in range(14)}
    told = jobman("submit", write("---\n".join(documents))).err.splitlines()
    assert told[9:] == [
        "jobman: j9: starts now",
        "jobman: … and 4 more; `jobman why JOB` says when each of them starts",
    ]


def test_data_has_the_estimates_and_nothing_stands_beside_it(either, service, write):
    service.estimates["hello"] = Estimate(guaranteed_by=FAR, expected_at=FAR - 60, position=3, queue="batch")
    answer = either("submit", write(GOOD), "-o", "json")
    assert answer.err == ""
    told = answer.data["estimates"][0]
    assert (told["job"], told["guaranteed_by"], told["position"]) == ("0001beef", FAR, 3)


def test_what_if_answers_and_submits_nothing(either, service, write):
    suggestion = "with 2 nodes instead of 4 it would start in 6 min"
    service.estimates["hello"] = Estimate(guaranteed_by=FAR, position=2, queue="b", suggestion=suggestion)
    answer = either("submit", "--what-if", write(GOOD))
    assert answer.code == 0
    assert answer.out.splitlines() == [
        f"hello  would start by {by(FAR)} at the latest; 2nd in b",
        f"try    {suggestion}",
    ]
    assert answer.err == "jobman: nothing was submitted\n"
    assert service.submissions[-1].what_if
    assert service.jobs == {}


def test_what_if_of_several_documents_asks_once_for_each(either, service, write):
    service.estimates["hello"] = Estimate(starts_now=True)
    answer = either("submit", "--what-if", write(GOOD), write(GOOD, "again.yaml"))
    assert answer.out == "hello  would start now\nhello  would start now\n"
    assert answer.err == "jobman: nothing was submitted\n"
    assert len(service.submissions) == 2


def test_what_if_as_data(either, service, write):
    service.estimates["hello"] = Estimate(starts_now=True)
    data = either("submit", "--what-if", write(GOOD), "-o", "json").data
    assert data["estimates"][0]["starts_now"] is True


@pytest.mark.parametrize("option", ["--dry-run", "--hold", "-c"])
def test_what_if_does_not_go_with_what_it_makes_senseless(either, service, write, option):
    answer = either("submit", "--what-if", option, write(GOOD))
    assert (answer.code, answer.out) == (2, "")


def test_connect_follows_the_output(jobman, service, write):
    service.scripts["hello"] = Script([line("one"), line("two", stream="stderr")])
    answer = jobman("submit", "-c", write(GOOD))
    assert (answer.code, answer.out) == (0, "0001beef  hello\none\ntwo\n")


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("does-not-fit", 4), ("forbidden", 6), ("store", 5), ("key-reused", 2)],
)
def test_a_refusal_ends_with_its_exit_code_and_an_advice(either, service, write, code, exit_code):
    service.refusal = Refusal(code, "it will not do", "do something else")
    answer = either("submit", write(GOOD))
    assert (answer.code, answer.out) == (exit_code, "")
    assert answer.err == "jobman: it will not do\n        do something else\n"


def test_a_refusal_as_data(either, service, write):
    service.refusal = Refusal("does-not-fit", "it is too large")
    answer = either("submit", write(GOOD), "-o", "json")
    assert (answer.code, answer.err, answer.data["code"]) == (4, "", "does-not-fit")


WRONG_USES = {
    "nothing": (),
    "an empty command": ("--",),
    "both": ("job.yaml", "--", "true"),
    "an image for a document": ("-i", "alpine", "job.yaml"),
    "a flavor for a document": ("-r", "small", "job.yaml"),
    "a time limit for a document": ("--duration", "1h", "job.yaml"),
    "a queue for a document": ("--queue", "batch", "job.yaml"),
    "an account for a document": ("--account", "physics", "job.yaml"),
    "one name for two": ("-j", "x", "job.yaml", "job.yaml"),
    "following what is held": ("-c", "--hold", "job.yaml"),
    "an unknown engine": ("-e", "lokal", "job.yaml"),
    "an unknown form": ("-o", "xml", "job.yaml"),
    "an unknown option": ("--wat", "job.yaml"),
}


@pytest.mark.parametrize("arguments", WRONG_USES.values(), ids=list(WRONG_USES))
def test_a_wrong_use_ends_with_2_and_submits_nothing(either, service, write, arguments):
    write(GOOD)
    answer = either("submit", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert service.submissions == []


@pytest.mark.parametrize("engine", ["slurm", "flux"])
@pytest.mark.parametrize("place", ["before", "behind"])
def test_an_engine_that_is_not_there_ends_with_5_and_leaves_nothing(
    either, service, write, engine, place, monkeypatch, tmp_path
):
    name = write(GOOD)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.delenv("FLUX_URI", raising=False)
    words = ("-e", engine, "submit", name) if place == "before" else ("submit", "-e", engine, name)
    answer = either(*words)
    assert (answer.code, answer.out) == (5, "")
    assert answer.err.startswith(f"jobman: {engine.capitalize()} is not ")
    assert not list((tmp_path / "nobody").rglob("about.json"))


# -- the quick way ------------------------------------------------------------------------------------------


def test_the_tables_of_the_quick_way_are_those_of_the_command():
    import typer

    group = typer.main.get_command(app)
    assert isinstance(group, Directory)
    params = [param for param in group.load("submit").params if param.param_type_name == "option"]
    own = {name: param.name for param in params for name in param.opts}
    listed = {**shortcut.VALUES, **shortcut.FLAGS, **shortcut.LISTS}
    left_to_the_long_way = {"-c", "--connect"}
    assert {name for name in own if name not in listed} == left_to_the_long_way
    assert {name: own[name] for name in listed} == listed
    assert {name for param in params if param.is_flag for name in param.opts} == {
        *shortcut.FLAGS,
        *left_to_the_long_way,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit", "-c", "a.yaml"],
        ["submit", "--help"],
        ["submit", "-ialpine", "--", "ls"],
        ["submit", "-j"],
        ["submit", "--hold=yes", "a.yaml"],
        ["submit"],
        ["submit", "-o", "xml", "a.yaml"],
        ["submit", "--set", "nothing", "a.yaml"],
        ["list"],
        ["--wat", "submit", "a.yaml"],
        [],
    ],
)
def test_what_is_not_understood_at_once_goes_the_long_way(arguments):
    shortcut.take(arguments)  # It would have ended this test otherwise.


def test_an_interrupted_submission_says_so_by_its_exit_code(service, write):
    write(GOOD)
    code = (
        "import sys, jobman.cli.submission as s\n"
        "def interrupt(*_): raise KeyboardInterrupt\n"
        "s.send = interrupt\n"
        "sys.argv = ['jobman', 'submit', 'job.yaml']\n"
        "from jobman.cli.main import main; main()\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert (process.returncode, process.stderr.strip()) == (130, "")


def test_without_a_service_that_can_be_started_the_exit_code_is_5(real_jobman, write, tmp_path):
    (tmp_path / "state").write_text("in the way")
    answer = real_jobman("submit", write(GOOD))
    assert (answer.code, answer.out) == (5, "")
    assert answer.err.startswith("jobman: The service cannot be started")
