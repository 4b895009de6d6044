"""Which form a script takes: one copy on one node, copies in slots, or the driver of a group."""

import pytest

from tests.convert.scripts import (
    NOW,
    SRUN_INSIDE,
    codes,
    complaints,
    convert_sbatch,
    converted,
    document,
    part,
    script,
)

PREPARES = """\
set -euo pipefail
module load gcc openmpi
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
source "$HOME/venv/bin/activate"
cd $SLURM_SUBMIT_DIR
# and now
srun --mpi=pmix -n 4 ./a.out --title 'a b' "$HOME" > /dev/null"""


def text_of(found):
    return found["command"][2]


def test_a_script_without_steps_is_one_copy():
    found = part("-n 4", body="./threads")
    assert found["command"][0] == "/bin/bash"
    assert found["command"][3:] == ["job.sh"]
    assert "srun" not in text_of(found)


def test_arguments_of_the_script_are_those_of_the_command():
    assert part(arguments=["a b", "-n"])["command"][3:] == ["job.sh", "a b", "-n"]


def test_a_script_with_steps_on_one_node_has_a_stand_in_for_srun():
    found = converted("-N 1 -n 4", body=SRUN_INSIDE)
    [task] = found.document["tasks"]
    assert "JOBMAN_SRUN" in text_of(task)
    assert (codes(found), complaints(found)) == ([], [])


def test_steps_without_a_number_of_nodes_are_asked_for_on_one_and_that_is_told():
    assert codes(converted("-n 4", body=SRUN_INSIDE)) == ["JC203"]


def test_a_script_with_steps_on_several_nodes_leads_a_group():
    found = converted("-N 2 -n 4 -t 5", body=SRUN_INSIDE)
    [group] = found.document["groups"]
    assert group["attributes"] == {"duration": "5m"}
    [task] = group["tasks"]
    assert (task["name"], task["local"]) == ("script", True)
    assert (codes(found), complaints(found)) == (["JC205"], [])


def test_a_script_without_steps_on_several_nodes_is_told_that_they_stand_idle():
    found = converted("-N 2", body="./alone")
    assert "groups" in found.document
    assert codes(found) == ["JC203"]


def test_an_array_of_such_groups_has_no_form():
    found = converted("-N 2 -a 1-3", body=SRUN_INSIDE)
    assert (codes(found), found.ok) == (["JC110"], False)
    assert codes(converted("-N 2 -a 1-3", body="srun ./a")) == []


def test_what_prepares_and_ends_with_srun_becomes_copies():
    body = PREPARES.replace(" > /dev/null", "")
    found = part("-n 4 -c 1", body=body)
    assert found["resources"]["count"] == 4
    lines = text_of(found).splitlines()
    assert lines[-1] == "exec ./a.out --title 'a b' \"$HOME\""
    assert "module load gcc openmpi" in lines
    assert 'export SLURM_PROCID="${SLURM_PROCID:-$JOBMAN_RANK}"' in lines


@pytest.mark.parametrize(
    "body",
    [
        "srun ./a",
        "srun -n 4 ./a",
        "srun -n $SLURM_NTASKS ./a",
        "srun --ntasks=4 --cpu-bind=cores --mpi=pmi2 ./a",
        "srun bash -c 'echo $SLURM_PROCID'",
        "export A=1\nsrun ./a $A",
    ],
)
def test_a_plain_srun(body):
    assert "exec " in text_of(part("-n 4", body=body)).splitlines()[-1]
    assert part("-n 4", body=body)["resources"]["count"] == 4


@pytest.mark.parametrize(
    "body",
    [
        PREPARES,
        "srun ./a > out.txt",
        "srun ./a | tee out.txt",
        "srun ./a &\nwait",
        "srun -n 2 ./a",
        "srun --label ./a",
        "srun -o out.%t ./a",
        "srun ./a $SLURM_PROCID",
        "srun ./a $(hostname)",
        "srun ./a `hostname`",
        "echo begin\nsrun ./a",
        "srun ./a\necho end",
        "export HOST=$(hostname)\nsrun ./a",
        "srun \\\n  ./a",
        "if true; then\nsrun ./a\nfi",
        "mpirun ./a",
        "srun",
    ],
)
def test_what_is_more_than_a_plain_srun_stays_a_script(body):
    found = document("-N 1 -n 4", body=body)["tasks"][0]
    assert found["resources"]["count"] == 1
    assert text_of(found).endswith(f"{body}\n")


def test_one_copy_needs_no_other_form():
    assert part("-n 1", body="srun ./a")["resources"]["count"] == 1


def test_a_script_of_another_interpreter_is_kept_in_a_file():

    text = script("-n 1", body="print('JOBMAN_SCRIPT')", shell="/usr/bin/env python3")
    found = convert_sbatch("job.py", text, NOW, arguments=["x"])
    command = found.document["tasks"][0]["command"]
    assert (command[:2], command[3:]) == (["/bin/sh", "-c"], ["job.py", "x"])
    assert "<<'JOBMAN_SCRIPT_'\n" in command[2]
    assert command[2].endswith('exec /usr/bin/env python3 "${JOBMAN_SCRATCH:-/tmp}/script.$$" "$@"\n')
    assert complaints(found) == []


def test_options_of_the_interpreter_stay():

    found = convert_sbatch("job.sh", script(shell="/bin/bash -l"), NOW)
    assert found.document["tasks"][0]["command"][:3] == ["/bin/bash", "-l", "-c"]
