"""What keeps a pod that has its node from running: images, configuration, volumes, crashes, checks. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jobman.engines.kubernetes import endings
from jobman.engines.kubernetes.blockers import Trouble
from jobman.engines.kubernetes.objects import ContainerStatus, Event, Pod, Waiting

_PULLS = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed")
# What a registry's refusal means, by words in it; the first that is found.
_PULL_CAUSES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("toomanyrequests", "429 Too Many"),
        "the registry wants fewer requests",
        "wait, or log in to the registry with a pull secret",
    ),
    (
        ("no match for platform", "no matching manifest"),
        "there is none for the architecture of the node",
        "build the image for it, or ask for other nodes with `requires`",
    ),
    (
        ("unauthorized", "authentication required", "401", "403", "denied", "no basic auth"),
        "the registry does not let us have it, or it does not exist",
        "check the name, and give the service account a pull secret for the registry",
    ),
    (
        ("not found", "manifest unknown", "name unknown", "404"),
        "there is no such image or tag",
        "check the name and the tag: `jobman images` lists what there is",
    ),
    (
        ("x509", "certificate"),
        "the certificate of the registry is not trusted by the node",
        "ask who runs the cluster to trust it",
    ),
    (
        ("connection refused", "no such host", "i/o timeout", "no route to host", "server misbehaving"),
        "the registry cannot be reached from the node",
        "check the host in the image's name, and that the registry is up",
    ),
)
_MISSING = re.compile(r'(secret|configmap) "([^"]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (\S+) in (Secret|ConfigMap) \S+?/(\S+)")
_NO_VOLUME_KEY = re.compile(r"references non-existent (secret|config) key: (\S+)")
_VOLUME = re.compile(r'volume "([^"]+)"')
_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}


def why_not_running(pod: Pod, events: Sequence[Event]) -> Trouble | None:
    """What is wrong with a pod that is on a node, or what it is doing until it runs; None if it runs well."""
    own = [event for event in events if endings.concerns(event, pod)]
    for status in [*pod.status.init_container_statuses, *pod.status.container_statuses]:
        if found := _of_container(pod, status, own):
            return found
    if _is_created(pod):
        return _unready(pod, own)
    return _mounting(own) or _preparing(pod)


def _of_container(pod: Pod, status: ContainerStatus, events: Sequence[Event]) -> Trouble | None:
    waiting = status.state.waiting
    if waiting and (explain := _WAITING.get(waiting.reason)):
        return explain(status, waiting, events)
    ended = status.state.terminated or status.last_state.terminated
    helper = any(
        one.name == status.name and one.restart_policy == "Always" for one in pod.spec.init_containers
    )
    if status.restart_count and ended and not status.state.running and (ended.exit_code or helper):
        return _crashing(status)
    return None


def _is_created(pod: Pod) -> bool:
    return bool(pod.status.container_statuses) and all(
        status.state.running or status.state.terminated for status in pod.status.container_statuses
    )


# -- images --------------------------------------------------------------------------------------------------


def _not_pulled(status: ContainerStatus, waiting: Waiting, events: Sequence[Event]) -> Trouble:
    # Older kubelets tell the cause in an event alone.
    said = [event.message for event in events if event.message.startswith("Failed to pull image")]
    text = " ".join([waiting.message, *said[-1:]])
    for words, cause, advice in _PULL_CAUSES:
        if any(word in text for word in words):
            return Trouble("image", f"the image {status.image} cannot be pulled: {cause}", advice)
    detail = waiting.message or waiting.reason
    return Trouble("image", f"the image {status.image} cannot be pulled: {detail}", "check the image's name")


def _misnamed(status: ContainerStatus, waiting: Waiting, _: Sequence[Event]) -> Trouble:
    cause = waiting.message.rpartition("invalid reference format: ")[2] or waiting.message
    message = f"{status.image} is not the name of an image: {cause}"
    return Trouble("image", message, "names are host/path:tag in lower-case letters")


def _not_there(status: ContainerStatus, *_: object) -> Trouble:
    message = f"the image {status.image} is not on the node, and it may not be pulled"
    return Trouble("image", message, "put the image on the node, or let it be pulled")


# -- configuration -------------------------------------------------------------------------------------------


def _misconfigured(status: ContainerStatus, waiting: Waiting, _: Sequence[Event]) -> Trouble:
    said = waiting.message
    if found := _missing(said):
        return found
    if match := _NO_KEY.search(said):
        message = f"the {match[2]} {match[3]} has no key {match[1]}"
        return Trouble("configuration", message, f"add the key to it, or ask for another of {match[3]}")
    if "runAsNonRoot" in said:
        message = f"the image {status.image} runs as root, and it may not"
        return Trouble("refused", message, "set `security: {uid: …}` to a user that is not root")
    return Trouble("configuration", f"container {status.name} cannot be made: {endings.launch_words(said)}")


def _missing(said: str) -> Trouble | None:
    match = _MISSING.search(said)
    if match is None:
        return None
    kind, name = _KINDS[match[1]], match[2]
    return Trouble(
        "configuration",
        f"there is no {kind} {name} in its namespace",
        f"create it, and the pod goes on by itself; or correct the name of the {kind}",
    )


# -- volumes -------------------------------------------------------------------------------------------------


def _mounting(events: Sequence[Event]) -> Trouble | None:
    for event in reversed(events):
        if event.reason in ("FailedMount", "FailedAttachVolume"):
            return _not_mounted(event.message)
        if event.reason == "FailedCreatePodSandBox":
            return Trouble("node", f"its node cannot make a pod: {event.message}", "ask who runs the cluster")
    return None


def _not_mounted(said: str) -> Trouble:
    if found := _missing(said):
        return found
    match = _VOLUME.search(said)
    name = f"volume {match[1]}" if match else "a volume"
    if key := _NO_VOLUME_KEY.search(said):
        message = f"{name} needs the key {key[2]}, which is not there"
        return Trouble("volume", message, "add the key, or ask for others")
    if "Multi-Attach" in said:
        message = f"{name} is in use on another node"
        return Trouble(
            "volume", message, "wait until the other pod ends, or use a volume that many may write to"
        )
    cause = said.partition(" : ")[2] or said
    return Trouble("volume", f"{name} cannot be mounted: {cause}", "look at the volume under `volumes`")


# -- running, more or less -----------------------------------------------------------------------------------


def _crashing(status: ContainerStatus, *_: object) -> Trouble:
    ended = status.state.terminated or status.last_state.terminated
    how = endings.ended_words(ended) if ended else "ended"
    again = f"was started again {_times(status.restart_count)}, and soon is once more"
    return Trouble("retry", f"container {status.name} {how}; it {again}", "`jobman logs` shows what it said")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _unready(pod: Pod, events: Sequence[Event]) -> Trouble | None:
    unready = [one.name for one in pod.status.container_statuses if one.state.running and not one.ready]
    said = [event.message for event in events if event.reason == "Unhealthy"]
    if not unready or not said:
        return None
    message = f"container {unready[0]} runs, but its check does not pass: {said[-1].strip().rstrip(':')}"
    return Trouble("health", message, "look at `checks`, and at what it says in `jobman logs`")


def _preparing(pod: Pod) -> Trouble:
    for status in pod.status.init_container_statuses:
        if status.state.running and endings.is_step(pod, status.name):
            return Trouble("start", f"its step {status.name} runs, and the command comes after it")
    return Trouble("start", f"its containers are being made on {pod.spec.node_name}")


_Explain = Callable[[ContainerStatus, Waiting, Sequence[Event]], Trouble]
_WAITING: dict[str, _Explain] = {
    **dict.fromkeys(_PULLS, _not_pulled),
    "ImageInspectError": _not_pulled,
    "InvalidImageName": _misnamed,
    "ErrImageNeverPull": _not_there,
    "CreateContainerConfigError": _misconfigured,
    "CreateContainerError": _misconfigured,
    "RunContainerError": _misconfigured,
    "CrashLoopBackOff": _crashing,
}
