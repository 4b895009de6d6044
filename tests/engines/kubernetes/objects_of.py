"""Documents and what is made of them, for the tests of the compiler."""

import yaml

from jobman.api import loads
from jobman.engines.kubernetes.compile import Target, compile_plan, to_yaml

ID = "0123456789ab"
SMALL = "{type: slot, count: 1, with: [{type: memory, count: 32Mi}]}"
IMAGE = "localhost/jobman-busybox:1"


def target(**more):
    given = {
        "namespace": "lab",
        "job_id": ID,
        "owner": "ada",
        "document": "version: 1",
        "default_image": IMAGE,
    }
    return Target(**{**given, **more})


def plan_of(text, settings=None):
    spec = loads(text, settings=settings)
    assert [problem for problem in spec.problems if problem.severity == "error"] == []
    return spec.plan()


def task(more="", top="", command="[echo, hello]", shape=SMALL):
    """A document of one small task."""
    extra = f", {more}" if more else ""
    written = f"{{name: a, command: {command}, resources: {shape}{extra}}}"
    return f"version: 1\nname: job\n{top}\ntasks:\n- {written}\n"


def compiled(text, settings=None, **more):
    """What comes out, by way of its text."""
    found = compile_plan(plan_of(text, settings), target(**more))
    return [each for each in yaml.load_all(to_yaml(found), Loader=yaml.CSafeLoader) if each]


def jobs(objects):
    return [each for each in objects if each["kind"] == "Job"]


def only_job(text, **more):
    (job,) = jobs(compiled(text, **more))
    return job


def pod(text, **more):
    return only_job(text, **more)["spec"]["template"]["spec"]


def container(text, **more):
    return pod(text, **more)["containers"][0]


def variables(written):
    """The variables of a container that have a plain value."""
    return {each["name"]: each.get("value") for each in written["env"]}
