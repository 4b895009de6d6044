"""What stands in a cluster for an image, as plain data: a Deployment, and who changes its size.

A pod is a worker and its agent. The worker is a container that starts first and is ended last, so that an
agent that is told to end finds its worker there until all it has is done. The image is used as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from jobman.engines.kubernetes.objects import Written
from jobman.engines.kubernetes.quantities import format_quantity
from jobman.tasks.mapper import Executor
from jobman.tasks.scaling import Limits

PREFIX = "jobman.io/"
IMAGE = PREFIX + "image"
"""As a label the short form of an image, as an annotation its name."""
LABELS = {"app.kubernetes.io/name": "jobman", "app.kubernetes.io/component": "task-worker"}
SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
OUTSTANDING, BUSY, WORKABLE = "jobman_outstanding_seconds", "jobman_slots_busy", "jobman_workable_seconds"
AGENT, WORKER = "agent", "worker"
"""Names of containers."""
WORKER_PORT, AGENT_PORT = 7101, 7102
USER = 10001
_PING = (
    "import socket, sys; there = socket.create_connection(('127.0.0.1', {port}), 2); there.settimeout(2); "
    "there.sendall(b'GET /ping HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); "
    "sys.exit(b' 200 ' not in there.recv(64))"
)
_TRUST, _TRUSTED = "jobman-trust", "/etc/jobman/trust"
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class Toleration(msgspec.Struct, frozen=True, kw_only=True):
    """A taint that does not keep workers from a node."""

    key: str
    value: str = ""
    effect: str = ""
    """Every one where nothing is said."""

    @property
    def written(self) -> dict[str, str]:
        found = {"key": self.key, "operator": "Equal" if self.value else "Exists"}
        said = {"value": self.value, "effect": self.effect}
        return found | {name: text for name, text in said.items() if text}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where workers stand, and for whom they work."""

    namespace: str
    broker: str
    """The URL that agents reach it by."""
    agent_image: str
    """An image with this program."""
    token_secret: str = ""
    """The Secret with the token of agents, under the key `token`; none where the broker asks for none."""
    grace: int = 900
    """Seconds that an agent has to finish what it has; what is not done then is done elsewhere."""
    lost: int = 30
    """Seconds after which the pods of a node that is not heard of are replaced."""
    authority: str = ""
    """Who signed the certificate of the broker, in PEM; empty where agents know that already."""
    node_labels: Mapping[str, str] = {}
    """Of the nodes that workers run on; any where nothing is said."""
    tolerations: tuple[Toleration, ...] = ()


def short(image: str) -> str:
    """An image as a label can carry it: as it is, or with other letters and then a digest of the true one."""
    if _LABEL.fullmatch(image):
        return image
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", image.rpartition("/")[2])[:50].strip("._-")
    return f"{plain or 'image'}-{_digest(image)}"


def name_of(image: str) -> str:
    """Of all objects that stand for an image."""
    plain = re.sub(r"[^a-z0-9]+", "-", image.rpartition("/")[2].lower()).strip("-")[:30].strip("-")
    return f"jobman-{plain or 'image'}-{_digest(image)}"


def _digest(image: str) -> str:
    return hashlib.sha256(image.encode()).hexdigest()[:8]


def labels_of(image: str) -> dict[str, str]:
    return {**LABELS, IMAGE: short(image)}


# -- pods ----------------------------------------------------------------------------------------------------


def deployment(executor: Executor, limits: Limits, place: Place) -> Written:
    """Pods of an image; how many, others say."""
    labels = labels_of(executor.image)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(executor.image, place),
        "spec": {
            "selector": {"matchLabels": labels},
            "revisionHistoryLimit": 1,
            "template": {
                "metadata": {"labels": labels, "annotations": {IMAGE: executor.image}},
                "spec": _pod(executor, limits, place),
            },
        },
    }


def _metadata(image: str, place: Place) -> dict[str, Any]:
    return {
        "name": name_of(image),
        "namespace": place.namespace,
        "labels": labels_of(image),
        "annotations": {IMAGE: image},
    }


def _pod(executor: Executor, limits: Limits, place: Place) -> dict[str, Any]:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": place.grace,
        # The first process of a container does not hear TERM unless it listens, as few workers do, and would
        # hold up its pod. Beside the agent's, in one space of processes, it is not the first.
        "shareProcessNamespace": True,
        # Nothing is lost with a worker, so nobody waits long for a node that may come back.
        "tolerations": [
            *(each.written for each in place.tolerations),
            *(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": place.lost}
                for key in _LOST
            ),
        ],
        **({"nodeSelector": dict(place.node_labels)} if place.node_labels else {}),
        "initContainers": [_worker(executor)],
        "containers": [_agent(executor.image, limits, place)],
        **({"volumes": [{"name": "trust", "configMap": {"name": _TRUST}}]} if place.authority else {}),
    }


def _worker(executor: Executor) -> dict[str, Any]:
    # What is restarted always, before the others, is ended behind them.
    return {
        "name": WORKER,
        "image": executor.image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "env": _variables({**executor.environment, **_ports()}),
        "resources": _resources(executor.resources),
    }


def _agent(image: str, limits: Limits, place: Place) -> dict[str, Any]:
    words = ["task", "agent", "--broker", place.broker, "--image", image, "--slots", str(limits.slots)]
    ping = ["python", "-I", "-S", "-c", _PING.format(port=WORKER_PORT)]
    return {
        "name": AGENT,
        "image": place.agent_image,
        "imagePullPolicy": "IfNotPresent",
        "args": [*words, "--worker", f"127.0.0.1:{WORKER_PORT}", "--listen", f"127.0.0.1:{AGENT_PORT}"],
        "env": [*_variables({**_ports(), **_trust(place)}), *_token(place)],
        **({"volumeMounts": [{"name": "trust", "mountPath": _TRUSTED}]} if place.authority else {}),
        # From inside the pod: a worker need not be reached by anybody else.
        "readinessProbe": {"exec": {"command": ping}, "periodSeconds": 10, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _ports() -> dict[str, str]:
    return {"JOBMAN_WORKER_PORT": str(WORKER_PORT), "JOBMAN_AGENT_PORT": str(AGENT_PORT)}


def _variables(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _token(place: Place) -> list[dict[str, Any]]:
    if not place.token_secret:
        return []
    source = {"secretKeyRef": {"name": place.token_secret, "key": "token"}}
    return [{"name": "JOBMAN_TOKEN", "valueFrom": source}]


def _trust(place: Place) -> dict[str, str]:
    return {"SSL_CERT_FILE": f"{_TRUSTED}/ca.crt"} if place.authority else {}


def trust(place: Place) -> Written:
    """Whose certificates agents trust."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _TRUST, "namespace": place.namespace, "labels": dict(LABELS)},
        "data": {"ca.crt": place.authority},
    }


def _resources(amounts: Mapping[str, str]) -> dict[str, Any]:
    """All is reserved; of all but cores, which may lie idle elsewhere, there is also not more."""
    limits = {name: amount for name, amount in amounts.items() if name != "cpu"}
    found = {"requests": dict(amounts), "limits": limits}
    return {key: value for key, value in found.items() if value}


# -- who changes the number of pods --------------------------------------------------------------------------


def autoscaler(image: str, limits: Limits, place: Place, owner: str) -> Written:
    """An HPA: as many pods as what is outstanding keeps busy, and none less than are busy."""
    seconds, slots = Fraction(str(limits.target)) * limits.slots, Fraction(limits.slots)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {**_metadata(image, place), "ownerReferences": [_owner(image, owner)]},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name_of(image)},
            "minReplicas": max(1, limits.least),
            "maxReplicas": max(1, limits.least, limits.most),
            "metrics": [_external(OUTSTANDING, image, seconds), _external(BUSY, image, slots)],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "selectPolicy": "Max",
                    "policies": [
                        {"type": "Percent", "value": 300, "periodSeconds": 15},
                        {"type": "Pods", "value": 10, "periodSeconds": 15},
                    ],
                },
                "scaleDown": {
                    "stabilizationWindowSeconds": min(3600, round(limits.calm)),
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                },
            },
        },
    }


def _external(metric: str, image: str, each: Fraction) -> dict[str, Any]:
    return {
        "type": "External",
        "external": {
            "metric": {"name": metric, "selector": {"matchLabels": {"image": short(image)}}},
            "target": {"type": "AverageValue", "averageValue": format_quantity(each)},
        },
    }


def scaled_object(image: str, limits: Limits, place: Place, owner: str, prometheus: str) -> Written:
    """The same for KEDA, which asks Prometheus and also scales to none and back."""
    seconds = limits.target * limits.slots
    quoted = image.replace("\\", "\\\\").replace('"', '\\"')
    asked = ((WORKABLE, seconds), (BUSY, float(limits.slots)))
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {**_metadata(image, place), "ownerReferences": [_owner(image, owner)]},
        "spec": {
            "scaleTargetRef": {"name": name_of(image)},
            "minReplicaCount": limits.least,
            "maxReplicaCount": max(1, limits.least, limits.most),
            "pollingInterval": 15,
            "cooldownPeriod": round(limits.calm),
            "triggers": [
                {
                    "type": "prometheus",
                    "metadata": {
                        "serverAddress": prometheus,
                        "query": f'sum({metric}{{image="{quoted}"}})',
                        "threshold": f"{threshold:g}",
                    },
                }
                for metric, threshold in asked
            ],
        },
    }


def _owner(image: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name_of(image), "uid": uid}
