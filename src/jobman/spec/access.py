"""What the copies are given and allowed: secrets, variables from elsewhere, rights on the node."""

from __future__ import annotations

from typing import Annotated, Any

from yaml.nodes import Node

from jobman.spec.kinds import Flag, Forms, Items, Text, Whole
from jobman.spec.names import ABSOLUTE_PATH, NAME, OCTAL_MODE, PATH, VARIABLE, WORD
from jobman.spec.reading import BAD, Reading
from jobman.spec.records import Key, Of, Record, has_key


class Secret(Record, frozen=True, kw_only=True):
    """A secret or licence token given to the copies; its value never enters a document."""

    noun = "a secret"
    habits = {"env": "variable", "as": "variable", "to": "path", "file": "path"}
    name: Annotated[str, Key(NAME, "name of the secret", required=True)]
    key: Annotated[str | None, Key(WORD, "one entry of it; without it all")] = None
    variable: Annotated[str | None, Key(VARIABLE, "environment variable that carries it")] = None
    path: Annotated[str | None, Key(ABSOLUTE_PATH, "file that carries it")] = None


class _SecretName(Text):
    def read(self, node: Node, reading: Reading) -> Any:
        name = NAME.read(node, reading)
        return BAD if name is BAD else Secret(name=name)


SECRETS = Items(Forms("a secret", scalar=_SecretName(), mapping=Of(Secret)), "a list of secrets")


class EnvFrom(Record, frozen=True, kw_only=True):
    """Variables that come from elsewhere: exactly one of secret, config and file."""

    noun = "an `env_from` entry"
    habits = {"config_map": "config", "configmap": "config", "secret_ref": "secret", "path": "file"}
    secret: Annotated[str | None, Key(NAME, "every entry of a secret")] = None
    config: Annotated[str | None, Key(NAME, "every entry of a configuration")] = None
    file: Annotated[str | None, Key(PATH, "a file of NAME=value lines")] = None
    prefix: Annotated[str, Key(VARIABLE, "put before each name")] = ""


def _one_origin(entry: EnvFrom, node: Node, reading: Reading) -> Any:
    given = [name for name in ("secret", "config", "file") if has_key(node, name)]
    if len(given) != 1:
        reading.report(
            "JS704", node, found=" and ".join(given) or "none of them", do="keep" if given else "add"
        )
        return BAD
    return entry


ENV_FROM = Items(Of(EnvFrom, _one_origin), "a list of origins")


class Capabilities(Record, frozen=True, kw_only=True):
    noun = "`capabilities`"
    add: Annotated[
        tuple[str, ...], Key(Items(Text("a capability", r"[A-Z_]+", "upper case"), unique=True), "give")
    ] = ()
    drop: Annotated[
        tuple[str, ...], Key(Items(Text("a capability", r"[A-Z_]+", "upper case"), unique=True), "take")
    ] = ()


class Security(Record, frozen=True, kw_only=True):
    noun = "`security`"
    habits = {
        "run_as_user": "uid",
        "runasuser": "uid",
        "user": "uid",
        "run_as_group": "gid",
        "group": "gid",
        "fs_group": "groups",
        "readonlyrootfilesystem": "read_only_root",
        "allowprivilegeescalation": "no_new_privileges",
        "no_new_privs": "no_new_privileges",
    }
    uid: Annotated[int | None, Key(Whole(0, 2**31 - 1, "a user id"), "user id of the copies")] = None
    gid: Annotated[int | None, Key(Whole(0, 2**31 - 1, "a group id"), "group id of the copies")] = None
    groups: Annotated[
        tuple[int, ...] | None, Key(Items(Whole(0, 2**31 - 1), unique=True), "further group ids")
    ] = None
    capabilities: Annotated[Capabilities | None, Key(Of(Capabilities), "Linux capabilities")] = None
    privileged: Annotated[bool | None, Key(Flag(), "every right on the node")] = None
    no_new_privileges: Annotated[
        bool | None, Key(Flag(), "no rights gained by running a program; on unless privileged")
    ] = None
    read_only_root: Annotated[bool | None, Key(Flag(), "the image cannot be written to")] = None
    umask: Annotated[str | None, Key(OCTAL_MODE, "mode bits taken from new files")] = None
    seccomp: Annotated[str | None, Key(WORD, "seccomp profile: `default`, `unconfined` or a path")] = None
