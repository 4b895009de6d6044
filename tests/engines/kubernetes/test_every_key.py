"""No key of section 7 is dropped in silence: to write it changes the objects, or it is refused."""

# ruff: noqa: E501 - a document stands in one line

from typing import Any

import pytest

from jobman.engines.kubernetes.compile import CannotCompile, StagedFile
from jobman.settings import load_settings
from jobman.spec.access import Capabilities, EnvFrom, Secret, Security
from jobman.spec.checks import Check, Checks, HttpCheck, TcpCheck
from jobman.spec.devices import Device
from jobman.spec.failures import Condition, FailureRule, Retries, Success
from jobman.spec.lifecycle import Hooks, Signal
from jobman.spec.networks import Network, Port
from jobman.spec.placement import Placement, Relation, Runtime, Spread
from jobman.spec.policies import Bonds, Policies
from jobman.spec.volumes import Volume
from tests.engines.kubernetes.objects_of import compiled, task
from tests.plan.test_features import SETTINGS

FILES = {"v.env": (StagedFile("", b"A=1\n"),)}


def volume(kind, more=""):
    return f"volumes: [{{name: v, kind: {kind}, to: /v{', ' if more else ''}{more}}}]"


def check(more="", what="tcp: 80"):
    return f"checks: {{ready: {{{what}{', ' if more else ''}{more}}}}}"


def rule(more):
    return f"replicas: 3, on_failure: [{{{more}}}]"


KEYS: dict[type[Any], dict[str, tuple[str | None, str]]] = {
    Policies: {
        "retries": ("", "retries: 2"),
        "parallelism": ("replicas: 3", "replicas: 3, parallelism: 2"),
        "completions": ("replicas: 3", "replicas: 3, completions: 2"),
        "max_failed": ("replicas: 3", "replicas: 3, max_failed: 2"),
        "on_failure": ("", "on_failure: [{exit_codes: 3, action: fail-task}]"),
        "success": ("replicas: 3", "replicas: 3, success: {count: 1}"),
        "hold": ("", "hold: true"),
        "gates": ("", "gates: budget"),
        "hooks": ("", "hooks: {before: x}"),
        "restart": ("", "restart: on-failure"),
        "replace": (None, "replace: terminating"),
        "suspend": ("", "suspend: requeue"),
        "grace": ("", "grace: 5s"),
        "signal": ("attributes: {duration: 1h}", "attributes: {duration: 1h}, signal: USR1"),
        "checks": ("", check()),
        "placement": ("", "placement: {exclusive: true}"),
        "priority": ("", "priority: high"),
        "scheduler": ("", "scheduler: other"),
        "runtime": ("", "runtime: gvisor"),
        "identity": ("", "identity: robot"),
        "secrets": ("", "secrets: [token]"),
        "env_from": ("", "env_from: [{config: c}]"),
        "profiles": ("", "profiles: tools"),
        "security": ("", "security: {uid: 5}"),
        "devices": ("", "devices: [gpu.example.org]"),
        "volumes": ("", volume("scratch")),
        "ports": ("", "ports: 80"),
        "result_file": ("", "result_file: /r"),
    },
    Bonds: {"coordinator": ("", "TOP coordinator: a"), "network": ("", "TOP network: {isolated: true}")},
    Network: {"connect": (None, "TOP network: {connect: other}"), "isolated": ("", "TOP network: {isolated: true}")},
    Retries: {
        "limit": ("retries: 1", "retries: 2"),
        "delay": (None, "retries: {limit: 1, delay: 1h}"),
        "factor": (None, "retries: {limit: 9, delay: 1s, factor: 9}"),
        "on": ("retries: 1", "retries: {limit: 1, on: {exit_codes: 5}}"),
    },
    Condition: {
        "exit_codes": ("retries: {limit: 1, on: {exit_codes: 5}}", "retries: {limit: 1, on: {exit_codes: [5-6]}}"),
        "reasons": ("retries: {limit: 1, on: {reasons: exit}}", "retries: {limit: 1, on: {reasons: [exit, launch-failed]}}"),
    },
    FailureRule: {
        "exit_codes": (rule("exit_codes: 3, action: fail-task"), rule("exit_codes: 4, action: fail-task")),
        "reasons": (rule("reasons: exit, action: fail-task"), rule("reasons: [exit, launch-failed], action: fail-task")),
        "replicas": (rule("exit_codes: 3, action: ignore"), rule("exit_codes: 3, replicas: 1, action: ignore")),
        "action": (rule("exit_codes: 3, action: fail-task"), rule("exit_codes: 3, action: retry")),
    },
    Success: {
        "replicas": ("replicas: 4, success: {count: 1}", "replicas: 4, success: {replicas: [0-1], count: 1}"),
        "count": ("replicas: 4, success: {count: 1}", "replicas: 4, success: {count: 2}"),
    },
    Hooks: {key: ("", f"hooks: {{{key}: x}}") for key in ("before", "after", "on_stop")},
    Signal: {
        "name": ("attributes: {duration: 1h}, signal: USR1", "attributes: {duration: 1h}, signal: USR2"),
        "before": ("attributes: {duration: 1h}, signal: USR1", "attributes: {duration: 1h}, signal: {name: USR1, before: 5s}"),
    },
    Checks: {key: ("", f"checks: {{{key}: {{tcp: 80}}}}") for key in ("ready", "alive", "started")},
    Check: {
        "exec": (check(), check(what="exec: x")),
        "http": (check(), check(what="http: {port: 80}")),
        "tcp": (check(), check(what="tcp: 81")),
        "delay": (check(), check("delay: 5s")),
        "every": (check(), check("every: 5s")),
        "timeout": (check(), check("timeout: 5s")),
        "failures": (check(), check("failures: 5")),
        "successes": (check(), check("successes: 5")),
    },
    HttpCheck: {
        "port": (check(what="http: {port: 80}"), check(what="http: {port: 81}")),
        "path": (check(what="http: {port: 80}"), check(what="http: {port: 80, path: /x}")),
        "scheme": (check(what="http: {port: 80}"), check(what="http: {port: 80, scheme: https}")),
        "headers": (check(what="http: {port: 80}"), check(what="http: {port: 80, headers: {A: b}}")),
    },
    TcpCheck: {"port": (check(what="tcp: {port: 80}"), check(what="tcp: {port: 81}"))},
    Placement: {
        "labels": ("", "placement: {labels: {a: b}}"),
        "near": ("", "placement: {near: {by: zone}}"),
        "apart": ("", "placement: {apart: {by: zone}}"),
        "spread": ("", "placement: {spread: zone}"),
        "exclusive": ("", "placement: {exclusive: true}"),
    },
    Relation: {
        "tasks": ("placement: {near: {by: node}}", "placement: {near: {by: node, tasks: b}}"),
        "by": ("placement: {near: {by: node}}", "placement: {near: {by: zone}}"),
        "required": ("placement: {apart: {by: node}}", "placement: {apart: {by: node, required: false}}"),
    },
    Spread: {
        "by": ("placement: {spread: zone}", "placement: {spread: rack}"),
        "skew": ("placement: {spread: zone}", "placement: {spread: {by: zone, skew: 2}}"),
        "required": ("placement: {spread: zone}", "placement: {spread: {by: zone, required: false}}"),
    },
    Runtime: {"class_": ("", "runtime: {class: kata}"), "os": ("", "runtime: {os: linux}")},
    Secret: {
        "name": ("secrets: [a]", "secrets: [b]"),
        "key": ("secrets: [a]", "secrets: [{name: a, key: k}]"),
        "variable": ("secrets: [{name: a, key: k}]", "secrets: [{name: a, key: k, variable: V}]"),
        "path": ("secrets: [{name: a, key: k}]", "secrets: [{name: a, key: k, path: /p}]"),
    },
    EnvFrom: {
        "secret": ("", "env_from: [{secret: s}]"),
        "config": ("", "env_from: [{config: c}]"),
        "file": ("", "env_from: [{file: v.env}]"),
        "prefix": ("env_from: [{config: c}]", "env_from: [{config: c, prefix: P_}]"),
    },
    Security: {
        "uid": ("", "security: {uid: 5}"),
        "gid": ("", "security: {gid: 5}"),
        "groups": ("", "security: {groups: [5]}"),
        "capabilities": ("", "security: {capabilities: {add: [NET_ADMIN]}}"),
        "privileged": ("", "security: {privileged: true}"),
        "no_new_privileges": ("", "security: {no_new_privileges: false}"),
        "read_only_root": ("", "security: {read_only_root: true}"),
        "umask": ("", "security: {umask: '0027'}"),
        "seccomp": ("", "security: {seccomp: unconfined}"),
    },
    Capabilities: {
        "add": ("", "security: {capabilities: {add: [NET_ADMIN]}}"),
        "drop": ("", "security: {capabilities: {drop: [ALL]}}"),
    },
    Device: {
        "class_": ("devices: [{class: a, name: n}]", "devices: [{class: b, name: n}]"),
        "name": ("devices: [a]", "devices: [{class: a, name: n}]"),
        "count": ("devices: [a]", "devices: [{class: a, count: 2}]"),
        "selectors": ("devices: [a]", "devices: [{class: a, selectors: 'device.driver == \"x\"'}]"),
        "shared": ("devices: [a]", "devices: [{class: a, shared: true}]"),
    },
    Volume: {
        "name": (volume("scratch"), volume("scratch").replace("name: v", "name: w")),
        "kind": (volume("scratch"), volume("memory", "size: 1Gi")),
        "to": (volume("scratch"), volume("scratch").replace("/v", "/w")),
        "read_only": (volume("host", "path: /a"), volume("host", "path: /a, read_only: true")),
        "path": (volume("host", "path: /a"), volume("host", "path: /b")),
        "create": (volume("host", "path: /a"), volume("host", "path: /a, create: true")),
        "size": (volume("scratch"), volume("scratch", "size: 1Gi")),
        "class_": (volume("ephemeral", "size: 1Gi"), volume("ephemeral", "size: 1Gi, class: fast")),
        "claim": (volume("claim", "claim: a"), volume("claim", "claim: b")),
        "driver": (volume("csi", "driver: a"), volume("csi", "driver: b")),
        "attributes": (volume("csi", "driver: a"), volume("csi", "driver: a, attributes: {x: y}")),
        "fs_type": (volume("csi", "driver: a"), volume("csi", "driver: a, fs_type: ext4")),
        "server": (volume("nfs", "path: /a, server: s"), volume("nfs", "path: /a, server: t")),
        "repository": (volume("git", "repository: 'https://a.example.org'"), volume("git", "repository: 'https://b.example.org'")),
        "revision": (volume("git", "repository: 'https://a.example.org'"), volume("git", "repository: 'https://a.example.org', revision: v2")),
        "image": (volume("image", "image: 'a:1'"), volume("image", "image: 'a:2'")),
        "secret": (volume("secret", "secret: a"), volume("secret", "secret: b")),
        "config": (volume("config", "config: a"), volume("config", "config: b")),
        "mode": (volume("secret", "secret: a"), volume("secret", "secret: a, mode: '0400'")),
    },
    Port: {
        "name": ("ports: [80]", "ports: [{name: web, port: 80}]"),
        "port": ("ports: [{name: web, port: 80}]", "ports: [{name: web, port: 81}]"),
        "protocol": ("ports: [80]", "ports: [{port: 80, protocol: udp}]"),
        "expose": ("ports: [80]", "ports: [{port: 80, expose: true}]"),
    },
}  # fmt: skip
"""For each key a task without it and one with it; None where it is refused."""


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "settings.yaml"
    path.write_text(SETTINGS)
    return load_settings(path)


def document(fragment):
    """Two tasks, the first with something on it or on the document."""
    top, more = (fragment[4:], "") if fragment.startswith("TOP ") else ("", fragment)
    return task(more, top) + "- {name: b, command: [echo], resources: {type: slot, count: 1}}\n"


def objects(fragment, settings):
    """What comes out, without what is only kept of the document."""
    found = compiled(document(fragment), settings, files=FILES)
    found[0]["metadata"].pop("annotations")
    return found


@pytest.mark.parametrize("record", list(KEYS))
def test_the_table_has_every_key(record):
    assert set(KEYS[record]) == set(record.__struct_fields__)


@pytest.mark.parametrize(
    ("without", "with_it"),
    [
        pytest.param(*pair, id=f"{record.__name__}.{key}")
        for record in KEYS
        for key, pair in KEYS[record].items()
    ],
)
def test_a_key_changes_what_comes_out_or_is_refused(without, with_it, settings):
    if without is None:
        with pytest.raises(CannotCompile):
            objects(with_it, settings)
    else:
        assert objects(with_it, settings) != objects(without, settings)
