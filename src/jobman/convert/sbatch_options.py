"""Every option of sbatch 22.05, and what becomes of it."""

from __future__ import annotations

from jobman.convert.options import Fate, Option, Table, Takes


def _carried(name: str, short: str = "", words: str = "", takes: Takes = "value", *also: str) -> Option:
    return Option(name, short, takes, "carried", words, also)


def _slurm(name: str, short: str = "", words: str = "", takes: Takes = "value", *also: str) -> Option:
    return Option(name, short, takes, "engine", words, also)


def _left(name: str, short: str, words: str, advice: str, takes: Takes = "value") -> Option:
    return Option(name, short, takes, "left", words, advice=advice)


def _command(name: str, short: str = "", words: str = "", takes: Takes = "nothing") -> Option:
    return Option(name, short, takes, "command", words)


_ELSEWHERE = "the engine decides by itself"
_BINDING = "copies are bound as the engine does it"
_ANY_NODE = "any node that fits is taken"
_OWN_GPU = "GPUs are as the node has them"
_NOTHING = "nothing is done about it"

_CARRIED = (
    _carried("account", "A", "`account`"),
    _carried(
        "array", "a", "`replicas`, with `%N` as `parallelism`; `SLURM_ARRAY_TASK_ID` has the array's number"
    ),
    _carried("begin", "b", "`start.earliest`"),
    _carried("chdir", "D", "`attributes.cwd`"),
    _carried("comment", "", "the annotation `comment`"),
    _carried("constraint", "C", "`requires`, for `a` and `a&b`; other forms are kept for Slurm alone"),
    _carried("cpus-per-gpu", "", "cores in the shape"),
    _carried("cpus-per-task", "c", "cores in the shape"),
    _carried("deadline", "", "`start.latest`: the deadline less the time limit"),
    _carried("error", "e", "`attributes.stderr`, or a redirection where the name has the job's number in it"),
    _carried(
        "exclusive",
        "",
        "`exclusive: true` on the nodes; `=user` and `=mcs` are kept for Slurm alone",
        "maybe",
    ),
    _carried(
        "export", "", "`NAME=value` as `attributes.environment`; the rest of the environment comes, too"
    ),
    _carried("gpus", "G", "GPUs in the shape; a type is kept for Slurm alone"),
    _carried("gpus-per-node", "", "GPUs in the shape; a type is kept for Slurm alone"),
    _carried("gpus-per-task", "", "GPUs in the shape; a type is kept for Slurm alone"),
    _carried("gres", "", "`gpu` as GPUs in the shape; the rest is kept for Slurm alone"),
    _carried("hold", "H", "`hold: true`", "nothing"),
    _carried("input", "i", "a redirection in the script"),
    _carried("job-name", "J", "`name`"),
    _carried("mem", "", "memory in the shape"),
    _carried("mem-per-cpu", "", "memory in the shape, times the cores"),
    _carried("mem-per-gpu", "", "memory in the shape, times the GPUs"),
    _carried("no-requeue", "", "`on_failure`: a lost node or a preemption fails the task", "nothing"),
    _carried("nodes", "N", "nodes of the shape; of `2-4` the smaller number"),
    _carried("ntasks", "n", "slots of the shape, or cores of a script that starts no copies"),
    _carried("ntasks-per-node", "", "slots of each node", "value", "tasks-per-node"),
    _carried("ntasks-per-socket", "", "slots of each socket, where the script becomes copies"),
    _carried(
        "output", "o", "`attributes.stdout`, or a redirection where the name has the job's number in it"
    ),
    _carried("partition", "p", "`queue`; a list of several is kept for Slurm alone"),
    _carried(
        "requeue", "", "nothing to write: what fails for the infrastructure is tried again anyway", "nothing"
    ),
    _carried("signal", "", "`signal`, to the whole process group"),
    _carried("time", "t", "`attributes.duration`"),
    _carried("tmp", "", "storage in the shape"),
    _carried("wrap", "", "the script itself"),
)
_FOR_SLURM = (
    _slurm("acctg-freq", "", _NOTHING),
    _slurm("batch", "", "the script runs on the first node"),
    _slurm("bb", "", "there is no burst buffer"),
    _slurm("bbf", "", "there is no burst buffer"),
    _slurm("cluster-constraint", "", _ELSEWHERE),
    _slurm("clusters", "M", "the job runs where jobman sends it", "value", "cluster"),
    _slurm("container", "", "give the document an `image`"),
    _slurm("context", "", _NOTHING),
    _slurm("contiguous", "", "nodes need not be neighbours", "nothing"),
    _slurm("core-spec", "S", "no core is kept for the system"),
    _slurm("cores-per-socket", "", _ANY_NODE),
    _slurm("cpu-freq", "", "processors run as fast as they do"),
    _slurm("delay-boot", "", "no node is booted"),
    _slurm("distribution", "m", _BINDING),
    _slurm("exclude", "x", _ANY_NODE),
    _slurm("extra-node-info", "B", _ANY_NODE),
    _slurm("gpu-bind", "", _OWN_GPU),
    _slurm("gpu-freq", "", _OWN_GPU),
    _slurm("gpus-per-socket", "", "GPUs are not counted by socket"),
    _slurm("gres-flags", "", _OWN_GPU),
    _slurm("hint", "", _BINDING),
    _slurm("licenses", "L", "no licence is counted"),
    _slurm("mcs-label", "", _NOTHING),
    _slurm("mem-bind", "", _BINDING),
    _slurm("mincpus", "", _ANY_NODE),
    _slurm("network", "", _NOTHING),
    _slurm("nice", "", "the job has the priority of its queue", "maybe"),
    _slurm("no-kill", "k", "a lost node ends the attempt", "maybe"),
    _slurm("nodefile", "F", _ANY_NODE),
    _slurm("nodelist", "w", _ANY_NODE),
    _slurm("ntasks-per-core", "", _BINDING),
    _slurm("ntasks-per-gpu", "", "copies are counted by `--ntasks`"),
    _slurm("ntasks-per-tres", "", "copies are counted by `--ntasks`"),
    _slurm("open-mode", "", "output is added to what is there"),
    _slurm("overcommit", "O", "every copy has its own cores", "nothing"),
    _slurm("oversubscribe", "s", "cores are not shared", "nothing"),
    _slurm("power", "", _NOTHING),
    _slurm("prefer", "", _ANY_NODE),
    _slurm("priority", "", "the job has the priority of its queue"),
    _slurm("profile", "", _NOTHING),
    _slurm("propagate", "", "limits are those of the service", "maybe"),
    _slurm("qos", "q", "the job has the quality of service of its queue"),
    _slurm("reboot", "", "no node is booted", "nothing"),
    _slurm("reservation", "", "give `--reservation` to `jobman submit`"),
    _slurm("sockets-per-node", "", _ANY_NODE),
    _slurm("spread-job", "", "nodes are as few as will do", "nothing"),
    _slurm("switches", "", _ANY_NODE),
    _slurm("thread-spec", "", "no thread is kept for the system"),
    _slurm("threads-per-core", "", _ANY_NODE),
    _slurm("time-min", "", "the whole time limit is asked for"),
    _slurm("use-min-nodes", "", _ELSEWHERE, "nothing"),
    _slurm("wait-all-nodes", "", "a job starts when all its nodes are there"),
    _slurm("wckey", "", _NOTHING),
)
_MAIL = "jobman sends no mail"
_ROOT = "a job runs as who submits it"
_ENVIRONMENT = "the environment of submission is the script's"
_LEFT = (
    _left(
        "dependency",
        "d",
        "it names jobs by their number",
        "write both jobs into one document, with `depends_on`",
    ),
    _left("export-file", "", _ENVIRONMENT, "write the variables into `attributes.environment` or `env_from`"),
    _left("get-user-env", "", _ENVIRONMENT, "start the script with `#!/bin/bash -l`", "maybe"),
    _left("gid", "", _ROOT, "remove it, or write `security: {{gid: …}}`"),
    _left("ignore-pbs", "", "`#PBS` lines are not read anyway", "remove it", "nothing"),
    _left("kill-on-invalid-dep", "", "there is no dependency to be invalid", "remove it"),
    _left("mail-type", "", _MAIL, "`jobman wait JOB` ends when the job does"),
    _left("mail-user", "", _MAIL, "`jobman wait JOB` ends when the job does"),
    _left("uid", "", _ROOT, "remove it, or write `security: {{uid: …}}`"),
)
_OF_THE_COMMAND = (
    _command("help", "h", "shows the help"),
    _command("parsable", "", "prints the job's id and nothing else"),
    _command("quiet", "Q", "says nothing but errors"),
    _command("test-only", "", "checks the job and submits nothing"),
    _command("usage", "", "shows the help"),
    _command("verbose", "v", "prints the document as well"),
    _command("version", "V", "prints the version"),
    _command("wait", "W", "waits for the end, and ends with the job's exit code"),
)
SBATCH = Table((*_CARRIED, *_FOR_SLURM, *_LEFT, *_OF_THE_COMMAND))
_OTHERWISE = {
    "array": "ARRAY_INX",
    "mem": "MEM_PER_NODE",
    "switches": "REQ_SWITCH",
    "time": "TIMELIMIT",
    "verbose": "DEBUG",
}
_FROM_THE_SHELL = [
    "account",
    "acctg-freq",
    "array",
    "batch",
    "clusters",
    "constraint",
    "container",
    "core-spec",
    "cpus-per-gpu",
    "verbose",
    "delay-boot",
    "distribution",
    "error",
    "exclusive",
    "export",
    "get-user-env",
    "gpu-bind",
    "gpu-freq",
    "gpus",
    "gpus-per-node",
    "gpus-per-task",
    "gres",
    "gres-flags",
    "hint",
    "ignore-pbs",
    "input",
    "job-name",
    "mem-bind",
    "mem-per-cpu",
    "mem-per-gpu",
    "mem",
    "network",
    "no-kill",
    "no-requeue",
    "open-mode",
    "output",
    "overcommit",
    "partition",
    "power",
    "profile",
    "qos",
    "switches",
    "requeue",
    "reservation",
    "signal",
    "spread-job",
    "thread-spec",
    "threads-per-core",
    "time",
    "use-min-nodes",
    "wait",
    "wait-all-nodes",
    "wckey",
]
VARIABLES = {
    f"SBATCH_{_OTHERWISE.get(name, name.upper().replace('-', '_'))}": SBATCH.long[name]
    for name in _FROM_THE_SHELL
}
"""Variables of the shell that stand for options: stronger than lines, weaker than the command line."""
FATES: dict[Fate, str] = {
    "carried": "carried over",
    "engine": "kept for Slurm alone",
    "left": "not carried over",
    "command": "of the command itself",
}
