"""The API of a cluster as we use it: few verbs, on any kind of object."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from jobman.engines.kubernetes.access import Access
from jobman.engines.kubernetes.errors import (
    AlreadyExists,
    Expired,
    KubernetesError,
    NotFound,
    ServerFault,
    TooMany,
    Unreachable,
    from_status,
)
from jobman.engines.kubernetes.kinds import KINDS, PODS, Kind
from jobman.engines.kubernetes.link import JSON, Link, Query
from jobman.engines.kubernetes.objects import Change, Kept, Page, Status, Written
from jobman.engines.kubernetes.trials import Trials
from jobman.engines.kubernetes.upgrading import Upgraded

T = TypeVar("T", bound=Kept)
Propagation = Literal["Background", "Foreground", "Orphan"]

EVERYWHERE = ""
"""As a namespace: all of them."""
MANAGER = "jobman"
"""As whom we own fields."""
PAGE = 500
_MERGE = "application/merge-patch+json"
_OF_KIND = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"  # which JSON is, too
_STEPS = "application/json-patch+json"
_WATCH_SECONDS = (240, 300)
_LATE = 30.0
"""Seconds after which a watch that the server should have ended is broken."""


class Listed(NamedTuple, Generic[T]):
    """All objects of a list, and the version to watch from."""

    items: Sequence[T]
    resource_version: str


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Resource(msgspec.Struct, frozen=True):
    name: str
    kind: str = ""
    namespaced: bool = True


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource] = []


class Version(msgspec.Struct, frozen=True, rename="camel"):
    """What a cluster says it is."""

    git_version: str = ""
    major: str = ""
    minor: str = ""


class Api:
    """One cluster. Belongs to one event loop; errors are those of `errors`.

    A namespace of None is the one of the kubeconfig's context, and EVERYWHERE all of them.
    """

    def __init__(
        self,
        access: Access,
        *,
        patience: float = 15.0,
        link: Link | None = None,
        guard: Callable[[], None] | None = None,
    ) -> None:
        self.access = access
        self.namespace = access.namespace
        self._link = link or Link(access, patience=patience, guard=guard)
        self._line = msgspec.json.Decoder(_Line)
        self._found: dict[tuple[str, str], Kind[Any]] = dict(KINDS)

    async def __aenter__(self) -> Api:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all connections."""
        await self._link.close()

    # -- reading -------------------------------------------------------------------------------------------

    async def get(self, kind: Kind[T], name: str, namespace: str | None = None) -> T:
        """One object; raises NotFound."""
        return _decode(kind.one, await self._get(kind.path(self._in(namespace), name), None, kind.accept))

    async def find(self, kind: Kind[T], name: str, namespace: str | None = None) -> T | None:
        """One object, if it is there."""
        try:
            return await self.get(kind, name, namespace)
        except NotFound:
            return None

    async def get_whole(self, kind: Kind[Any], name: str, namespace: str | None = None) -> Written:
        """One object with all its fields."""
        return _decode(_WHOLE, await self._get(kind.path(self._in(namespace), name)))

    async def pages(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
    ) -> AsyncGenerator[Page[T], None]:
        """A list in parts, all of one moment; raises Expired where that moment is forgotten on the way."""
        path = kind.path(self._in(namespace))
        query: dict[str, str | int] = {"labelSelector": labels, "fieldSelector": fields}
        if limit:
            query["limit"] = limit
        while True:
            page = _decode(kind.page, await self._get(path, query, kind.accept_list))
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def list(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
    ) -> Listed[T]:
        """All objects. Begins anew where the list expires on the way, and then asks for it in one piece."""
        for size in (limit, 0):
            found: list[T] = []
            version = ""
            try:
                async for page in self.pages(kind, namespace, labels=labels, fields=fields, limit=size):
                    found += page.items
                    version = page.metadata.resource_version
            except Expired:
                if not size:
                    raise
            else:
                return Listed(found, version)
        raise AssertionError("a list without a limit has one part")

    async def watch(
        self,
        kind: Kind[T],
        since: str,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[Change[T], None]:
        """Changes after the version of a list: ADDED, MODIFIED and DELETED, for ever.

        Goes on by itself behind the last change when a connection ends or breaks. Raises Expired when the
        version is forgotten: list anew, and watch from there; and Unreachable when patience is over.
        """
        path = kind.path(self._in(namespace))
        trials = Trials(self._link.patience)
        while True:
            failure: KubernetesError = Unreachable("The cluster ends every watch at once.")
            seconds = random.randint(*_WATCH_SECONDS)
            query = _watching(since, labels, fields, seconds)
            lines = self._link.lines(
                path, query, silence=seconds + _LATE, opened=trials.opened, accept=kind.accept
            )
            try:
                async with aclosing(lines) as open_lines:
                    async for line in open_lines:
                        change = self._change(kind, line)
                        since = change.object.metadata.resource_version or since
                        if change.type != "BOOKMARK":
                            yield change
            except (Unreachable, TooMany, ServerFault) as error:
                failure = error
            await trials.next(failure)

    def _change(self, kind: Kind[T], line: bytes) -> Change[T]:
        read = _decode(self._line, line)
        if read.type == "ERROR":
            raise from_status(_decode(_STATUS, read.object))
        return Change(type=read.type, object=_decode(kind.one, read.object))

    async def logs(
        self,
        pod: str,
        namespace: str | None = None,
        *,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        since_time: str = "",
        limit_bytes: int | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """What a container wrote, as it comes. Raises TooEarly where the container has not started yet.

        Raises Unreachable where it breaks off; with time stamps, `since_time` leads back to that place.
        """
        query: Query = {
            "container": container,
            "follow": follow or None,
            "previous": previous or None,
            "timestamps": timestamps or None,
            "tailLines": tail,
            "sinceTime": since_time,
            "limitBytes": limit_bytes,
        }
        parts = self._link.stream(PODS.path(self._in(namespace), pod, "log"), query)
        async with aclosing(parts) as open_parts:
            async for part in open_parts:
                yield part

    async def upgrade(
        self,
        pod: str,
        part: str,
        namespace: str | None = None,
        *,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
    ) -> Upgraded:
        """A connection into a pod: `part` is exec or portforward."""
        return await self._link.upgrade(PODS.path(self._in(namespace), pod, part), query, headers)

    # -- writing -------------------------------------------------------------------------------------------

    async def create(self, written: Written, namespace: str | None = None) -> Kept:
        """Make an object; every field must be known to the cluster. Raises AlreadyExists."""
        kind = await self.kind_of(written)
        return _made(kind, await self._post(kind, written, namespace, safe=False))

    async def ensure(self, written: Written, namespace: str | None = None) -> Kept:
        """Make an object of a name that nobody else gives, unless an earlier trial made it already.

        May be called again, and goes on when a connection breaks. Raises AlreadyExists where what has the
        name does not have our labels, or is being deleted.
        """
        kind = await self.kind_of(written)
        try:
            return _made(kind, await self._post(kind, written, namespace, safe=True))
        except AlreadyExists:
            there: Kept = await self.get(kind, written["metadata"]["name"], _namespace_of(written, namespace))
            if _is_ours(written, there) and there.metadata.deletion_timestamp is None:
                return there
            raise

    async def dry_run(self, written: Written, namespace: str | None = None) -> Written:
        """What the cluster would make of it: all is checked, admission too, and nothing kept."""
        kind = await self.kind_of(written)
        return _decode(_WHOLE, await self._post(kind, written, namespace, safe=True, dry_run=True))

    async def _post(
        self,
        kind: Kind[Any],
        written: Written,
        namespace: str | None,
        *,
        safe: bool,
        dry_run: bool = False,
    ) -> bytes:
        path = kind.path(self._in(_namespace_of(written, namespace)))
        return await self._link.ask("POST", path, _changing(dry_run), _encode(written), safe=safe)

    async def apply_patch(
        self, written: Written, namespace: str | None = None, *, force: bool = False, dry_run: bool = False
    ) -> Kept:
        """Make it or change it so that it has these fields. Raises Conflict where others own them."""
        kind = await self.kind_of(written)
        query = {**_changing(dry_run), "force": force}
        path = kind.path(self._in(_namespace_of(written, namespace)), written["metadata"]["name"])
        data = await self._link.ask("PATCH", path, query, _encode(written), form=_APPLY, safe=True)
        return _made(kind, data)

    async def merge_patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Written,
        namespace: str | None = None,
        *,
        part: str | None = None,
    ) -> T:
        """Change some fields; one that is None is removed. With a resourceVersion in it: raises Conflict."""
        path = kind.path(self._in(namespace), name, part)
        body = _encode(patch)
        data = await self._link.ask("PATCH", path, _changing(False), body, form=_MERGE, safe=True)
        return _decode(kind.one, data)

    async def kind_patch(self, kind: Kind[T], name: str, patch: Written, namespace: str | None = None) -> T:
        """Change some fields as a built-in kind knows how to, lists by their keys: cheap for a cluster."""
        path = kind.path(self._in(namespace), name)
        body = _encode(patch)
        data = await self._link.ask("PATCH", path, _changing(False), body, form=_OF_KIND, safe=True)
        return _decode(kind.one, data)

    async def json_patch(
        self, kind: Kind[T], name: str, steps: Sequence[Written], namespace: str | None = None
    ) -> T:
        """Change it step by step, all or none; a `test` that does not hold raises Invalid."""
        path = kind.path(self._in(namespace), name)
        body = _encode(steps)
        data = await self._link.ask("PATCH", path, _changing(False), body, form=_STEPS, safe=False)
        return _decode(kind.one, data)

    async def replace(self, written: Written, namespace: str | None = None) -> Kept:
        """Put an object in the place of one; raises Conflict where its version is no longer the last."""
        kind = await self.kind_of(written)
        path = kind.path(self._in(_namespace_of(written, namespace)), written["metadata"]["name"])
        body = _encode(written)
        return _made(kind, await self._link.ask("PUT", path, _changing(False), body, safe=False))

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str | None = None,
        *,
        propagation: Propagation = "Background",
        grace: int | None = None,
        uid: str = "",
    ) -> bool:
        """Delete one, with all it owns; whether it was there. With another uid it raises Conflict."""
        body = _encode(_deletion(propagation, grace, uid))
        try:
            await self._link.ask("DELETE", kind.path(self._in(namespace), name), body=body, safe=True)
        except NotFound:
            return False
        return True

    async def delete_all(
        self,
        kind: Kind[Any],
        labels: str,
        namespace: str | None = None,
        *,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete what has these labels, in one namespace."""
        inside = self._in(namespace)
        if not labels or (kind.namespaced and not inside):
            raise ValueError("deleting many needs labels and a namespace")
        body = _encode(_deletion(propagation, None, ""))
        await self._link.ask("DELETE", kind.path(inside), {"labelSelector": labels}, body, safe=True)

    # -- asking about the cluster --------------------------------------------------------------------------

    async def version(self) -> Version:
        """Which Kubernetes it is."""
        return _decode(_VERSION, await self._get("/version"))

    async def serves(self, kind: Kind[Any]) -> bool:
        """Whether the cluster knows this kind, which may be a custom resource."""
        return any(found.name == kind.plural for found in await self._resources(kind.root))

    async def whoami(self) -> str:
        """The name by which the cluster knows us; empty where it is too old to say."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        try:
            answer = _decode(_WHOLE, await self._link.ask("POST", path, None, _encode(body), safe=True))
        except NotFound:
            return ""
        return str(answer.get("status", {}).get("userInfo", {}).get("username", ""))

    async def may(
        self, verb: str, kind: Kind[Any], namespace: str | None = None, *, part: str = "", name: str = ""
    ) -> bool:
        """Whether we are allowed to."""
        attributes = {
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
            "subresource": part,
            "name": name,
            "namespace": self._in(namespace) if kind.namespaced else "",
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = _decode(_WHOLE, await self._link.ask("POST", path, None, _encode(body), safe=True))
        return bool(answer.get("status", {}).get("allowed"))

    async def kind_of(self, written: Written) -> Kind[Any]:
        """The kind of an object as it names it; raises NotFound where the cluster does not know it."""
        name = written["apiVersion"], written["kind"]
        if name not in self._found:
            self._found[name] = await self._discover(*name)
        return self._found[name]

    async def _discover(self, api: str, kind: str) -> Kind[Any]:
        root = f"/apis/{quote(api)}" if "/" in api else f"/api/{quote(api)}"
        for found in await self._resources(root):
            if found.kind == kind and "/" not in found.name:
                return Kind(api, kind, found.name, Kept, namespaced=found.namespaced)
        message = f"The cluster does not know {kind} of {api}."
        raise from_status(Status(code=404, reason="NotFound", message=message))

    async def _resources(self, root: str) -> Sequence[_Resource]:
        try:
            return _decode(_RESOURCES, await self._get(root)).resources
        except NotFound:
            return ()

    async def _get(self, path: str, query: Query | None = None, accept: str = JSON) -> bytes:
        return await self._link.ask("GET", path, query, accept=accept, safe=True)

    def _in(self, namespace: str | None) -> str:
        return self.namespace if namespace is None else namespace


_WHOLE: msgspec.json.Decoder[Written] = msgspec.json.Decoder(dict[str, Any])
_STATUS = msgspec.json.Decoder(Status)
_RESOURCES = msgspec.json.Decoder(_Resources)
_VERSION = msgspec.json.Decoder(Version)
_encode = msgspec.json.encode

R = TypeVar("R")


def _decode(decoder: msgspec.json.Decoder[R], data: bytes | msgspec.Raw) -> R:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unreachable(
            f"The cluster gave an answer that is not understood: {error}.",
            "Is it the API server of a cluster that listens at this address?",
        ) from error


def _is_ours(written: Written, there: Kept) -> bool:
    labels = written["metadata"].get("labels")
    return bool(labels) and labels.items() <= there.metadata.labels.items()


def _made(kind: Kind[Any], data: bytes) -> Kept:
    made: Kept = _decode(kind.one, data)
    return made


def _watching(since: str, labels: str, fields: str, seconds: int) -> Query:
    return {
        "watch": True,
        "allowWatchBookmarks": True,
        "resourceVersion": since,
        "labelSelector": labels,
        "fieldSelector": fields,
        "timeoutSeconds": seconds,
    }


def _changing(dry_run: bool) -> dict[str, str | int | bool | None]:
    return {
        "fieldManager": MANAGER,
        "fieldValidation": "Strict",
        "dryRun": "All" if dry_run else None,
    }


def _namespace_of(written: Written, namespace: str | None) -> str | None:
    own: str | None = written.get("metadata", {}).get("namespace")
    return own or namespace


def _deletion(propagation: Propagation, grace: int | None, uid: str) -> Written:
    options: Written = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if uid:
        options["preconditions"] = {"uid": uid}
    return options
