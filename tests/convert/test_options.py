"""Options of sbatch: every one is in the table, and read as getopt_long reads it."""

import pytest

from jobman.convert import carrying, flux_batch
from jobman.convert.flux_options import FLUX_BATCH
from jobman.convert.options import Where
from jobman.convert.remarks import Remarks
from jobman.convert.sbatch_options import SBATCH
from jobman.convert.words import Word
from tests.convert.scripts import codes, converted
from tests.convert.slurm import slurm

# What sbatch 22.05 lists where a long option is too short to be clear, and those alone with their letter.
OF_SBATCH = [
    "account",
    "acctg-freq",
    "array",
    "batch",
    "begin",
    "bb",
    "bbf",
    "chdir",
    "cluster-constraint",
    "cluster",
    "clusters",
    "comment",
    "container",
    "context",
    "contiguous",
    "constraint",
    "core-spec",
    "cores-per-socket",
    "cpu-freq",
    "cpus-per-gpu",
    "cpus-per-task",
    "deadline",
    "delay-boot",
    "dependency",
    "distribution",
    "error",
    "exclude",
    "exclusive",
    "export",
    "export-file",
    "extra-node-info",
    "get-user-env",
    "gid",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-socket",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "help",
    "hint",
    "hold",
    "ignore-pbs",
    "input",
    "job-name",
    "kill-on-invalid-dep",
    "licenses",
    "mail-type",
    "mail-user",
    "mcs-label",
    "mem",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mincpus",
    "network",
    "nice",
    "no-kill",
    "no-requeue",
    "nodefile",
    "nodelist",
    "nodes",
    "ntasks",
    "ntasks-per-core",
    "ntasks-per-gpu",
    "ntasks-per-node",
    "ntasks-per-socket",
    "ntasks-per-tres",
    "open-mode",
    "output",
    "overcommit",
    "oversubscribe",
    "parsable",
    "partition",
    "power",
    "prefer",
    "priority",
    "profile",
    "propagate",
    "qos",
    "quiet",
    "reboot",
    "requeue",
    "reservation",
    "signal",
    "sockets-per-node",
    "spread-job",
    "switches",
    "tasks-per-node",
    "test-only",
    "thread-spec",
    "threads-per-core",
    "time",
    "time-min",
    "tmp",
    "uid",
    "use-min-nodes",
    "usage",
    "verbose",
    "version",
    "wait",
    "wait-all-nodes",
    "wckey",
    "wrap",
]
SHORT = "abcdehikmnopqstvwxABCDFGHJLMNOQSVW"


def read(*words):
    remarks = Remarks()
    given, rest = SBATCH.read([Word(word, 0, 0) for word in words], Where(), remarks)
    found = [(one.option.name, one.value) for one in given]
    return found, [word.text for word in rest], [problem.code for problem in remarks.in_order()]


def test_every_option_of_sbatch_is_in_the_table():
    assert sorted(SBATCH.long) == sorted(OF_SBATCH)
    assert sorted(SBATCH.short) == sorted(SHORT)


@pytest.mark.component("slurm")
@pytest.mark.parametrize("letter", sorted({name[0] for name in OF_SBATCH} - set("jkl")))
def test_the_list_is_that_of_the_real_sbatch(letter):
    """It lists the options that a letter may stand for; of three letters there is only one."""
    found = slurm("sbatch", f"--{letter}=x", "--wrap=true", "--test-only").stderr
    listed = found.split("possibilities:")[1].split("\n")[0].split()
    assert {word.strip("'-") for word in listed} == {name for name in OF_SBATCH if name[0] == letter}


def test_every_option_says_what_becomes_of_it():
    assert [option.name for option in SBATCH.options if not option.words] == []
    assert [option.name for option in SBATCH.options if option.fate == "left" and not option.advice] == []
    assert [option.name for option in FLUX_BATCH.options if not option.words] == []


def test_what_is_said_to_be_carried_is_read_by_somebody():
    assert {option.name for option in SBATCH.options if option.fate == "carried"} == carrying.CARRIED
    assert {option.name for option in FLUX_BATCH.options if option.fate == "carried"} == flux_batch.CARRIED


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["-n", "4"], [("ntasks", "4")]),
        (["-n4"], [("ntasks", "4")]),
        (["--ntasks", "4"], [("ntasks", "4")]),
        (["--ntasks=4"], [("ntasks", "4")]),
        (["--tasks-per-node=3"], [("ntasks-per-node", "3")]),
        (["-Hn4"], [("hold", None), ("ntasks", "4")]),
        (["--part=debug"], [("partition", "debug")]),
        (["--clusters=a"], [("clusters", "a")]),
        (["--nice"], [("nice", None)]),
        (["--nice=-5"], [("nice", "-5")]),
        (["--exclusive", "-N2"], [("exclusive", None), ("nodes", "2")]),
        (["--export=ALL,A=b"], [("export", "ALL,A=b")]),
    ],
)
def test_an_option_in_all_its_spellings(words, given):
    assert read(*words) == (given, [], [])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--wat=3"], "JC101"),
        (["-y"], "JC101"),
        (["-J"], "JC102"),
        (["--job-name"], "JC102"),
        (["--hold=yes"], "JC103"),
        (["--ntask=4"], "JC104"),
        (["--n=4"], "JC104"),
    ],
)
def test_a_wrong_option_is_told(words, code):
    assert read(*words)[2] == [code]


def test_words_that_are_no_options_are_left():
    assert read("-n", "4", "foo", "--hold", "--", "-x") == (
        [("ntasks", "4"), ("hold", None)],
        ["foo", "-x"],
        [],
    )


def test_a_misspelt_option_gets_a_guess_and_its_place():
    [problem] = converted("-n 2", "--ntassk-per-node=3").problems
    assert str(problem.place) == "job.sh:3:9"
    assert problem.advice == "did you mean `--ntasks-per-node`?"
    assert problem.line_text == "#SBATCH --ntassk-per-node=3"


def test_options_end_where_the_commands_begin():
    found = converted(body="echo\n#SBATCH -n 4")
    assert codes(found) == ["JC204"]
    assert found.problems[0].place.line == 3


@pytest.mark.parametrize("line", [" #SBATCH -n 4", "# SBATCH -n 4", "#PBS -l nodes=2"])
def test_a_line_that_looks_like_options_is_told(line):
    found = converted(body=f"{line}\ntrue")
    assert codes(found) == ["JC204"]


def test_comments_and_blank_lines_may_stand_between():
    assert converted(body="\n# a comment\n\n#SBATCH -J later\ntrue").document["name"] == "later"


@pytest.mark.parametrize(("line", "code"), [('-J "a', "JC106"), ("-n 4 foo", "JC107")])
def test_a_broken_line_is_told(line, code):
    assert codes(converted(line)) == [code]


def test_all_errors_are_told_in_the_order_of_the_file():
    assert codes(converted("-n x", "--wat", "-t soon")) == ["JC105", "JC101", "JC105"]
