"""Every option of `flux batch`, as its directives may hold them, and what becomes of it."""

from __future__ import annotations

from jobman.convert.options import Option, Table, Takes


def _carried(name: str, short: str, words: str, takes: Takes = "value") -> Option:
    return Option(name, short, takes, "carried", words)


def _flux(name: str, short: str, words: str, takes: Takes = "value") -> Option:
    return Option(name, short, takes, "engine", words)


def _left(name: str, words: str, advice: str, takes: Takes = "value") -> Option:
    return Option(name, "", takes, "left", words, advice=advice)


_OF_FLUX = "it is about the instance of Flux that the script would run in"
_NO_INSTANCE = "there is no instance of Flux"
FLUX_BATCH = Table(
    (
        _carried("bank", "B", "`account`"),
        _carried("begin-time", "", "`start.earliest`"),
        _carried("cores-per-slot", "c", "cores in the shape"),
        _carried("cwd", "", "`attributes.cwd`"),
        _carried("env", "", "`NAME=value` as `attributes.environment`"),
        _carried("error", "", "`attributes.stderr`"),
        _carried("exclusive", "x", "`exclusive: true` on the nodes", "nothing"),
        _carried("gpus-per-slot", "g", "GPUs in the shape"),
        _carried("job-name", "", "`name`"),
        _carried("nodes", "N", "nodes of the shape; without `-n` whole ones"),
        _carried("nslots", "n", "slots of the shape"),
        _carried("output", "", "`attributes.stdout`"),
        _carried("queue", "q", "`queue`"),
        _carried("requires", "", "`requires`, for a list of properties; the rest is kept for Flux alone"),
        _carried("signal", "", "`signal`", "maybe"),
        _carried("time-limit", "t", "`attributes.duration`"),
        _flux("add-file", "", "bring the file by a `stage` or `write` step"),
        _flux("broker-opts", "", _NO_INSTANCE),
        _flux("conf", "", _NO_INSTANCE),
        _flux("dump", "", _NO_INSTANCE, "maybe"),
        _flux("flags", "", "nothing is done about it"),
        _flux("input", "", "nothing is read"),
        _flux("rlimit", "", "limits are those of the service"),
        _flux("setattr", "S", "nothing is done about it"),
        _flux("setopt", "o", "nothing is done about it"),
        _flux("unbuffered", "u", "output is not buffered anyway", "nothing"),
        _flux("urgency", "", "the job has the priority of its queue"),
        _left(
            "dependency", "it names jobs by their id", "write both jobs into one document, with `depends_on`"
        ),
        _left("env-file", "the file is not read", "write the variables into `attributes.environment`"),
        _left("env-remove", "the environment of submission is the script's", "`unset` it in the script"),
        _left("dry-run", _OF_FLUX, "remove it", "nothing"),
        _left("quiet", _OF_FLUX, "remove it", "nothing"),
        _left("wrap", _OF_FLUX, "remove it", "nothing"),
        _left("resources-shape", "such shapes are not read", "write it with -N, -n, -c and -g"),
        _left("resources-json", "such shapes are not read", "write it with -N, -n, -c and -g"),
    )
)
