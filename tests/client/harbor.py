"""A Harbor that keeps to its documented API of version 2, as far as lists and details of images need it.

It has what surprises clients of the real one: pages of at most 100, slashes of repositories encoded twice,
the same answer for projects that are hidden and for those that are not there, and lists that treat a wrong
password as nobody.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote, unquote_plus, urlencode

from tests.client.webserver import Reply, Request, as_json, refusal

API = "/api/v2.0"
REPORT = "application/vnd.security.vulnerability.report; version=1.1"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
_TERM = re.compile(r"(\w+)=(~?)(.*)")
_FOR_TOOLS = re.compile(rf"/v2.*|{re.escape(API)}/projects(/.*/repositories(/.*/artifacts)?)?")


class Harbor:
    """Projects with images, people and robots; called with a request it answers."""

    def __init__(self) -> None:
        self.public: dict[str, bool] = {}
        self.members: dict[str, set[str]] = {}
        self.passwords: dict[str, str] = {"admin": "Harbor12345"}
        self.elsewhere: set[str] = set()
        """Those who log in by OIDC: their password is a secret for tools, and only some paths take it."""
        self.repositories: dict[str, dict[str, Any]] = {}
        self.artifacts: dict[str, list[dict[str, Any]]] = {}

    # -- what is there ---------------------------------------------------------------------------------------

    def project(self, name: str, *, public: bool = True, members: tuple[str, ...] = ()) -> None:
        self.public[name] = public
        self.members[name] = set(members)

    def user(self, name: str, password: str) -> None:
        self.passwords[name] = password

    def image(self, name: str, description: str = "") -> None:
        """A repository; its project is made where there is none."""
        project = name.partition("/")[0]
        self.public.setdefault(project, True)
        self.members.setdefault(project, set())
        self.repositories[name] = {
            "id": len(self.repositories) + 1,
            "project_id": list(self.public).index(project) + 1,
            "name": name,
            "description": description,
            "artifact_count": 0,
            "pull_count": 0,
            "creation_time": "2026-01-01T00:00:00.000Z",
            "update_time": "2026-01-02T00:00:00.000Z",
        }
        self.artifacts[name] = []

    def push(
        self,
        name: str,
        *tags: str,
        at: str = "2026-03-01T12:00:00.000Z",
        size: int = 1_500_000,
        type: str = "IMAGE",
        config: dict[str, Any] | None = None,
        platform: str = "linux/amd64",
        scan: dict[str, Any] | None = None,
        annotations: dict[str, str] | None = None,
        references: list[dict[str, Any]] | None = None,
    ) -> str:
        """An artifact with its tags; returns its digest."""
        if name not in self.repositories:
            self.image(name)
        number = sum(map(len, self.artifacts.values())) + 1
        digest = f"sha256:{hashlib.sha256(f'{name} {number}'.encode()).hexdigest()}"
        system, _, architecture = platform.partition("/")
        extra = {
            "architecture": architecture,
            "author": "",
            "created": "2026-02-28T10:00:00.123456789Z",
            "os": system,
            "config": config or {},
        }
        artifact = {
            "id": number,
            "type": type,
            "digest": digest,
            "size": size,
            "media_type": INDEX if references else CONFIG,
            "manifest_media_type": INDEX if references else MANIFEST,
            "repository_name": name,
            "push_time": at,
            "pull_time": "0001-01-01T00:00:00.000Z",
            "extra_attrs": {} if references else extra,
            "references": references,
            "annotations": annotations,
            "tags": [
                {"id": n, "name": tag, "push_time": at, "immutable": False} for n, tag in enumerate(tags)
            ]
            or None,
        }
        if scan is not None:
            artifact["scan_overview"] = {REPORT: scan}
        self.artifacts[name].append(artifact)
        self.repositories[name]["artifact_count"] += 1
        return digest

    # -- answering -------------------------------------------------------------------------------------------

    def __call__(self, request: Request) -> Reply:
        who = self._who(request)
        if request.path == "/v2/":
            return self._login(request, who)
        if not request.path.startswith(f"{API}/"):
            return Reply(404, b"<html>404</html>", {"Content-Type": "text/html"})
        # The router decodes the path before it splits it: a slash that is encoded once is a slash.
        words = unquote(request.path.removeprefix(API)).strip("/").split("/")
        match words:
            case ["ping"]:
                return Reply(200, b"Pong", {"Content-Type": "text/plain; charset=utf-8"})
            case ["projects"]:
                seen = [name for name in self.public if self._may(who, name)]
                return self._page(request, [{"project_id": n, "name": name} for n, name in enumerate(seen)])
            case ["repositories"]:
                seen = [name for name in self.repositories if self._may(who, name.partition("/")[0])]
                return self._page(request, [self.repositories[name] for name in seen])
            case ["projects", project, "repositories", *rest]:
                return self._of_project(
                    request, who, project, [unquote(word) for word in rest[:1]] + rest[1:]
                )
        return refusal(404, "NOT_FOUND", f"path {request.path} was not found")

    def _who(self, request: Request) -> str:
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Basic":
            return ""
        name, _, password = base64.b64decode(encoded).decode().partition(":")
        if name in self.elsewhere and not _FOR_TOOLS.fullmatch(request.path):
            return ""
        return name if self.passwords.get(name) == password else ""

    def _login(self, request: Request, who: str) -> Reply:
        if who:
            return as_json({}, Docker_Distribution_Api_Version="registry/2.0")
        host = request.headers["Host"]
        token = f'Bearer realm="https://{host}/service/token",service="harbor-registry"'
        challenge = 'Basic realm="harbor"' if "Authorization" in request.headers else token
        return refusal(401, "UNAUTHORIZED", "unauthorized: unauthorized", Www_Authenticate=challenge)

    def _may(self, who: str, project: str) -> bool:
        return who == "admin" or self.public.get(project, False) or who in self.members.get(project, ())

    def _of_project(self, request: Request, who: str, project: str, rest: list[str]) -> Reply:
        if not self._may(who, project):
            status, code = (403, "FORBIDDEN") if who else (401, "UNAUTHORIZED")
            return refusal(status, code, code.lower())
        if project not in self.public:
            return refusal(404, "NOT_FOUND", f"project {project} not found")
        if not rest:
            own = [each for name, each in self.repositories.items() if name.startswith(f"{project}/")]
            return self._page(request, own)
        name = f"{project}/{rest[0]}"
        match rest[1:]:
            case []:
                if name not in self.repositories:
                    return refusal(404, "NOT_FOUND", f"repository {name} not found")
                return as_json(self.repositories[name])
            case ["artifacts"]:
                # What is only part of an index, and has no tag of its own, is told on request.
                inner = set() if "base=*" in unquote_plus(request.one("q")) else self._inner(name)
                shown = [each for each in self.artifacts.get(name, []) if each["digest"] not in inner]
                return self._page(request, [_told(request, each) for each in shown])
            case ["artifacts", reference]:
                for each in self.artifacts.get(name, []):
                    if reference in (each["digest"], *(tag["name"] for tag in each["tags"] or ())):
                        return as_json(_told(request, each))
                return refusal(404, "NOT_FOUND", f"artifact {name}:{reference} not found")
        return refusal(404, "NOT_FOUND", f"path {request.path} was not found")

    def _inner(self, name: str) -> set[str]:
        children = (each["references"] or () for each in self.artifacts.get(name, []))
        named = {each["digest"] for each in self.artifacts.get(name, []) if each["tags"]}
        return {reference["child_digest"] for references in children for reference in references} - named

    def _page(self, request: Request, rows: list[dict[str, Any]]) -> Reply:
        number, size = int(request.one("page", "1")), int(request.one("page_size", "10"))
        if size > 100:
            message = "page_size in query should be less than or equal to 100"
            return refusal(422, "UNPROCESSABLE_ENTITY", message)
        for term in filter(None, unquote_plus(request.one("q")).split(",")):
            match = _TERM.fullmatch(term)
            if match is None:
                return refusal(400, "BAD_REQUEST", f"invalid query string value: {term}")
            rows = [row for row in rows if _fits(row, *match.groups())]
        if sort := request.one("sort"):
            rows = sorted(rows, key=lambda row: str(row[sort.lstrip("-")]), reverse=sort.startswith("-"))
        headers = {"X-Total-Count": str(len(rows))}
        if links := ", ".join(_links(request, number, size, len(rows))):
            headers["Link"] = links
        shown = rows[(number - 1) * size : number * size]
        reply = as_json(shown)
        return reply._replace(headers={**reply.headers, **headers})


def _fits(row: dict[str, Any], key: str, fuzzy: str, value: str) -> bool:
    if key == "base":
        return value == "*"
    if key == "tags":
        names = [tag["name"] for tag in row.get("tags") or ()]
        return bool(names) if value == "*" else value in names
    return value in str(row[key]) if fuzzy else value == str(row[key])


def _links(request: Request, number: int, size: int, total: int) -> Iterator[str]:
    for page, name, there in (
        (number - 1, "prev", number > 1 and (number - 1) * size < total),
        (number + 1, "next", number * size < total),
    ):
        if there:
            query = {key: values[0] for key, values in request.query.items()}
            # Harbor takes the encoding of the query off again.
            shown = unquote_plus(urlencode({**query, "page": page, "page_size": size}))
            yield f'<{quote(unquote(request.path))}?{shown}>; rel="{name}"'


def _told(request: Request, artifact: dict[str, Any]) -> dict[str, Any]:
    """An artifact with what was asked for; scans are told on request only."""
    left_out = set()
    if request.one("with_tag", "true") != "true":
        left_out.add("tags")
    if request.one("with_scan_overview", "false") != "true":
        left_out.add("scan_overview")
    return {key: value for key, value in artifact.items() if key not in left_out and value is not None}


def child(digest: str, platform: str) -> dict[str, Any]:
    """How an index refers to an image."""
    system, architecture, *variant = platform.split("/")
    known = {"os": system, "architecture": architecture, **({"variant": variant[0]} if variant else {})}
    return {"child_digest": digest, "platform": known}


def a_scan(**counts: int) -> dict[str, Any]:
    """A report of a scanner that came to its end."""
    named = {name.capitalize(): count for name, count in counts.items()}
    return {
        "report_id": "r1",
        "scan_status": "Success",
        "severity": next(iter(named), "None"),
        "duration": 9,
        "summary": {"total": sum(named.values()), "fixable": 1 if named else 0, "summary": named},
        "start_time": "2026-03-01T12:59:51.000Z",
        "end_time": "2026-03-01T13:00:00.000Z",
        "scanner": {"name": "Trivy", "vendor": "Aqua Security", "version": "v0.61.0"},
    }
