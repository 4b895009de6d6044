"""How plain Kubernetes realises each feature of the language."""

from __future__ import annotations

from jobman.engines import features
from jobman.engines.base import Refused
from jobman.engines.features import Support, emulated, native, refused
from jobman.engines.kubernetes.bounds import beyond
from jobman.engines.kubernetes.driving import only_driven
from jobman.engines.kubernetes.target import Target
from jobman.plan.model import Plan

_ELSEWHERE = "for that engine only; not looked at here"
_DRIVEN = "driven by `jobman run`, which starts and stops each Job in turn; `submit` refuses it"
_IN_TURN = (
    "a JobSet where the cluster makes them and it means the same; else driven by `jobman run`, "
    "and `submit` refuses it"
)
_SHELL = "by a shell around the command, which the image must have"
_OWN_PODS = "every copy is a pod of its own; that all or none of them start is likely, not certain"
_LAST = "where the last replica meets the goal after others failed, jobman calls the failed Job a success"
_WHOLE = "nothing else of jobman's comes to the node; other pods may"

_DOCUMENT: dict[str, Support] = {
    "queue": refused(
        "a plain cluster has no queues; leave `queue` out, or for Kueue write the label "
        "`kueue.x-k8s.io/queue-name`"
    ),
    "account": refused("nothing is charged on a plain cluster; leave `account` out"),
    "start.earliest": emulated(_DRIVEN),
    "start.latest": emulated(_DRIVEN),
    "labels": native("on every object"),
    "annotations": native("on every Job and pod"),
    "managed_by": native("the label `app.kubernetes.io/managed-by`"),
    "owner": native("the label `app.kubernetes.io/part-of`"),
}
_TASKS: dict[str, Support] = {
    "command": native("instead of the image's entry point"),
    "steps-only": refused("files would go with their pod; write them in the task that needs them"),
    "replicas": native("the indexes of a Job; a Job for each where a replica has several copies"),
    "matrix": native("a Job for each combination"),
    "depends_on.success": emulated(_IN_TURN),
    "depends_on.failure": emulated(_DRIVEN),
    "depends_on.any": emulated(_DRIVEN),
    "depends_on.started": emulated(_IN_TURN),
    "depends_on.ready": emulated(_IN_TURN),
    "local": emulated(f"a pod that asks for nothing; {_DRIVEN}"),
    "service": emulated(_DRIVEN),
    "when.failure": emulated(_DRIVEN),
    "when.always": emulated(_DRIVEN),
    "image": native(),
}
_GROUPS: dict[str, Support] = {
    "group": emulated("each task asks for its own share when it starts; nothing is kept for the group"),
    "group.nested": emulated("as any group"),
    "group.replicas": emulated(_DRIVEN),
    "group.grow": emulated("each task asks for its own share"),
}
_SHAPES: dict[str, Support] = {
    "shape.node": native(f"copies that avoid each other's node; {_OWN_PODS}"),
    "shape.slot": native(f"{_OWN_PODS}; what a node holds beside its slots is divided among them"),
    "shape.anywhere": native(_OWN_PODS),
    "shape.exclusive": emulated(_WHOLE),
    "shape.socket": refused("a cluster does not count sockets; ask for cores"),
    "shape.core": native("requests and limits of `cpu`"),
    "shape.gpu": native("`nvidia.com/gpu`, or what the settings say"),
    "shape.memory": native("requests and limits"),
    "shape.storage": native("requests and limits of `ephemeral-storage`"),
    "shape.site-type": native("an extended resource by its full name, such as `example.org/fpga`"),
    "shape.levels": emulated("one of a level, by affinity; more cannot be counted"),
    "shape.either": emulated(
        "where only `requires` differs, by affinity and preference; nobody chooses among others"
    ),
    "shape.both": emulated(f"a Job for each part; {_OWN_PODS}"),
}
_ATTRIBUTES: dict[str, Support] = {
    "duration": native("of each attempt, from the moment its node has taken it"),
    "environment": native(),
    "cwd": native("an absolute path in the image or a volume"),
    "watch": emulated(_DRIVEN),
    "stdout": emulated(f"{_SHELL}; put the file on a volume"),
    "stderr": emulated(f"{_SHELL}; put the file on a volume"),
    "flags.slurm": native(_ELSEWHERE),
    "flags.flux": native(_ELSEWHERE),
    "flags.kubernetes": native("fields of the pod, laid over what is written"),
}
_REQUIRES: dict[str, Support] = {
    "requires": native("labels of the nodes"),
    "step.stage": emulated("files of up to 900 kB in all travel in a ConfigMap and cannot be written to"),
    "step.write": emulated("files in a ConfigMap, which cannot be written to"),
}
_POLICIES: dict[str, Support] = {
    "retries": native("after 10 seconds, then twice as long each time; `JOBMAN_ATTEMPT` needs a shell"),
    "retries.delay": emulated("the cluster's own waits, where they are not shorter"),
    "retries.on": native("exit codes, and the reasons a Job can tell apart"),
    "parallelism": native(),
    "completions": native(f"a success policy; {_LAST}"),
    "max_failed": emulated("the Job gives up when more failed; when fewer did, jobman calls it a success"),
    "on_failure.retry": native(),
    "on_failure.ignore": emulated(f"exit codes only, {_SHELL}"),
    "on_failure.fail-task": native(),
    "on_failure.fail-job": native("of a job with one task; nothing stops the others of several"),
    "on_failure.restart-group": emulated(_DRIVEN),
    "success": native(_LAST),
    "restart.on-failure": native("`JOBMAN_ATTEMPT` needs a shell"),
    "restart.always": emulated(_DRIVEN),
    "replace.failed": native(),
    "replace.terminating": refused(
        "a Job that looks at failures replaces a pod only when it has ended; leave `replace` out"
    ),
    "hold": native("a suspended Job"),
    "suspend.requeue": native("a suspended Job gives its pods up"),
    "suspend.freeze": refused("pods cannot be frozen; use `suspend: requeue`"),
    "hooks.before": emulated(_SHELL),
    "hooks.after": emulated(_SHELL),
    "hooks.on_stop": native(),
    "grace": native("in whole seconds"),
    "signal": emulated(_SHELL),
    "checks.ready": native("in whole seconds"),
    "checks.alive": native("in whole seconds"),
    "checks.started": native("in whole seconds"),
    "checks.exec": native(),
    "checks.http": native(),
    "checks.tcp": native(),
    "gates": native("scheduling gates of a Job that is suspended until they are open"),
    "placement.labels": native(),
    "placement.near": native(),
    "placement.apart": native(),
    "placement.spread": native(),
    "placement.exclusive": emulated(_WHOLE),
    "priority": native(),
    "scheduler": native(),
    "runtime.class": native(),
    "runtime.os": native(),
    "identity": native("without it copies get no token of the cluster"),
    "secrets": native("Secrets of the namespace"),
    "env_from": native("Secrets and ConfigMaps of the namespace; files travel in a ConfigMap"),
    "profiles": native(),
    "security": native(f"`umask` {_SHELL}"),
    "security.privileged": native(),
    "devices": native("resource claims, which a cluster has from version 1.34"),
}
_STORAGE: dict[str, Support] = {
    "volumes.host": native(),
    "volumes.scratch": native(),
    "volumes.ephemeral": native(),
    "volumes.claim": native(),
    "volumes.csi": native(),
    "volumes.nfs": native(),
    "volumes.git": emulated("a clone made before the start, by the task's image, which must have git"),
    "volumes.image": native("read only; a cluster has it from version 1.33"),
    "volumes.secret": native(),
    "volumes.config": native(),
    "volumes.memory": native("counts as memory of the copy"),
}
_NETWORK: dict[str, Support] = {
    "ports": native(),
    "ports.free": native("every pod has an address of its own, so the number is chosen beforehand"),
    "ports.expose": native("a Service inside the cluster"),
    "result_file": native("the termination message"),
    "coordinator": native("its name in the job's headless Service"),
    "network.connect": refused(
        "a plain cluster does not let jobs overlap on purpose; put the tasks into one job"
    ),
    "network.isolated": native("a NetworkPolicy, where the cluster's network obeys it"),
}
FEATURES: dict[str, Support] = {
    **_DOCUMENT,
    **_TASKS,
    **_GROUPS,
    **_SHAPES,
    **_ATTRIBUTES,
    **_REQUIRES,
    **_POLICIES,
    **_STORAGE,
    **_NETWORK,
}


def refusals(plan: Plan, target: Target) -> list[Refused]:
    """What of a plan has no object on a cluster: features, and values of features that ask for too much.

    What only needs somebody who starts one after another is told by `driving`.
    """
    undriven = [] if target.driven else only_driven(plan)
    return features.refusals(plan, FEATURES) + undriven + beyond(plan, target)
