"""Harbor, by its API of version 2: projects, repositories with descriptions, artifacts with their tags."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from jobman.client.images.answers import Details, Image
from jobman.client.images.artifacts import (
    Artifact,
    Project,
    Repository,
    are_images,
    fill_from,
    newest,
    tagged,
    tags_of,
    vulnerabilities_of,
)
from jobman.client.images.challenges import next_page
from jobman.client.images.errors import Denied, NotFound, RegistryError
from jobman.client.images.link import Link
from jobman.client.images.manifests import description_in
from jobman.client.images.names import is_wild, matches, meant
from jobman.client.images.oci import LISTED, chosen_or_refused, refuse_platform, unknown_version
from jobman.client.images.times import moment
from jobman.client.images.wire import Answer

API = "/api/v2.0"
PAGE = 100
"""The most that Harbor gives at once."""
_FUZZY = re.compile(r"[a-z0-9._/-]+")
_FULL: dict[str, Any] = {"with_tag": "true", "with_scan_overview": "true"}

T = TypeVar("T")


async def is_harbor(link: Link) -> bool:
    """Whether a registry is one of Harbor's."""
    answer = await link.get_openly(f"{API}/ping", ("text/plain", "application/json"))
    return answer.status == 200 and answer.body.strip().strip(b'"') == b"Pong"


class Harbor:
    """Questions to Harbor."""

    def __init__(self, link: Link, page: int = PAGE) -> None:
        self.link = link
        self._page = page
        self._logged_in = not link.login.username
        self._repositories: dict[str, Repository] = {}

    async def repositories(self, patterns: Sequence[str] = ()) -> list[str]:
        """The names of all images that one may see, or of those that a pattern means; with their projects."""
        await self._log_in()
        written = self.link.registry.projects
        projects = written or [each.name for each in await self._projects()]
        found = await asyncio.gather(
            *(self._of_project(each, _fuzzy(patterns)) for each in projects), return_exceptions=not written
        )
        lists = [each for each in found if not isinstance(each, BaseException)]
        for error in found:
            # A project that may be seen need not let one look into it; but something has to be left.
            if isinstance(error, BaseException) and not (lists and isinstance(error, Denied)):
                raise error
        self._repositories = {each.name: each for records in lists for each in records}
        return [name for name in self._repositories if matches(name, patterns)]

    async def image(self, repository: str) -> Image | None:
        """An image at a glance; None where it is none, but a chart for instance, or gone."""
        record = self._repositories.get(repository) or Repository(name=repository)
        artifacts = await self._artifacts(repository, {"with_tag": "true"})
        if artifacts is None or not are_images(artifacts):
            return None
        last = newest(artifacts)
        return Image(
            image="",
            registry=self.link.registry.name,
            repository=repository,
            description=_one_line(record.description),
            tags=tags_of(artifacts),
            updated_at=(last.pushed_at if last is not None else 0) or moment(record.update_time),
            size=last.size if last is not None else None,
        )

    async def details(self, repository: str, version: str, platform: str | None) -> Details:
        """All that is known of an image under a tag or digest; without one, of what was pushed last."""
        await self._log_in()
        record = await self._repository(repository)
        artifacts = await self._artifacts(repository, _FULL) or []
        found = Details(
            image="",
            registry=self.link.registry.name,
            repository=repository,
            description=(record.description or "").strip(),
            tags=tags_of(artifacts),
        )
        artifact = await self._artifact(repository, version, artifacts) if version else newest(artifacts)
        if artifact is None:
            return found
        if artifact.type not in ("IMAGE", ""):
            raise RegistryError(f"{repository} is not an image, but of the type {artifact.type}")
        own = [tag.name for tag in artifact.tags or ()]
        found.tag = version if version and ":" not in version else _first(found.tags, own)
        found.digest, found.pushed_at = artifact.digest, artifact.pushed_at or None
        found.platforms = artifact.platforms
        of = chosen_or_refused(found, platform) if found.platforms else None
        shown = artifact if of is None else await self._artifact(repository, of.digest, [])
        found.platform = of.platform if of is not None else ""
        fill_from(found, shown)
        if not found.platforms and platform is not None:
            refuse_platform(found, platform)
        found.platform = of.platform if of is not None else found.platform
        found.annotations = {**(artifact.annotations or {}), **(shown.annotations or {})}
        found.description = found.description or description_in(found.annotations, found.labels)
        found.vulnerabilities = vulnerabilities_of(artifact, shown)
        return found

    async def _log_in(self) -> None:
        """Find out whether the login is right: with a wrong one, lists are those for nobody."""
        if self._logged_in:
            return
        answer = await self.link.get_basic("/v2/")
        if answer.status in (401, 403):
            raise self.link.denied(answer, "anything as this user")
        self._logged_in = True

    # Lists only, no questions for single things: those are not answered to people who log in elsewhere (OIDC)
    # and have nothing but a secret for their tools.

    async def _projects(self) -> list[Project]:
        query = {"sort": "name", "with_detail": "false"}
        return await self._list("/projects", query, "its projects", list[Project]) or []

    async def _of_project(self, project: str, query: dict[str, Any]) -> list[Repository]:
        path = f"/projects/{quote(project, safe='')}/repositories"
        # Harbor does not tell projects that are not there from those that one may not see.
        what = f"the project {project}, or there is none"
        found = await self._list(path, {"sort": "name", **query}, what, list[Repository])
        if found is None:
            raise NotFound(f"the Harbor at {self.link.registry.url} has no project {project}")
        return found

    async def _repository(self, name: str) -> Repository:
        project, slash, _ = name.partition("/")
        if slash:
            for record in await self._of_project(project, _fuzzy([name])):
                if record.name == name:
                    return record
            known = [each.name for each in await self._of_project(project, {})]
        else:
            known = await self.repositories()
        url = self.link.registry.url
        advice = LISTED if slash else f"images of Harbor are in projects; {LISTED}"
        raise NotFound(f"the Harbor at {url} has no image {name}", advice, meant(name, known))

    async def _artifacts(self, repository: str, query: dict[str, Any]) -> list[Artifact] | None:
        # Without a tag nobody can name it, and builds leave many of those behind.
        asked = {"q": "tags=*", "sort": "-push_time", **query}
        return await self._list(f"{_path(repository)}/artifacts", asked, repository, list[Artifact])

    async def _artifact(self, repository: str, version: str, known: Sequence[Artifact]) -> Artifact:
        if (found := tagged(list(known), version)) is not None:
            return found
        if ":" in version:
            query = {**_FULL, "q": f"base=*,digest={version}"}
            path = f"{_path(repository)}/artifacts"
            if by_digest := await self._list(path, query, repository, list[Artifact]):
                return by_digest[0]
        raise unknown_version(repository, version, tags_of(list(known)))

    async def _list(self, path: str, query: dict[str, Any], what: str, kind: type[list[T]]) -> list[T] | None:
        """All pages of a list; None where there is nothing to list from."""
        found: list[T] = []
        number = 1
        while True:
            answer = await self._get(path, {**query, "page": number, "page_size": self._page})
            if answer.status == 404:
                return None
            if not answer.is_good:
                self.link.refuse(answer, what)
            page = self.link.decode(answer, kind) if answer.body.strip() != b"null" else []
            found += page
            if not page or not _has_more(answer, number * self._page):
                return found
            number += 1

    async def _get(self, path: str, query: dict[str, Any]) -> Answer:
        tail = f"?{urlencode(query)}" if query else ""
        return await self.link.get_basic(f"{API}{path}{tail}")


def _has_more(answer: Answer, seen: int) -> bool:
    """Whether a page is not the last, by its `Link`, or by the count of all."""
    if "link" in answer.headers:
        return next_page(answer.headers["link"]) is not None
    total = answer.headers.get("x-total-count", "")
    return total.isdigit() and int(total) > seen


def _path(name: str) -> str:
    """Where a repository is found; its slashes are encoded twice, as Harbor has it."""
    project, _, rest = name.partition("/")
    return f"/projects/{quote(project, safe='')}/repositories/{quote(quote(rest, safe=''), safe='')}"


def _fuzzy(patterns: Sequence[str]) -> dict[str, str]:
    """What Harbor can leave out by itself: where there is one plain word, all names without it."""
    if len(patterns) != 1 or is_wild(patterns[0]) or _FUZZY.fullmatch(patterns[0].lower()) is None:
        return {}
    return {"q": f"name=~{patterns[0].lower()}"}


def _first(tags: Sequence[str], own: Sequence[str]) -> str:
    """The newest of all tags that an artifact has."""
    return next((tag for tag in tags if tag in own), "")


def _one_line(text: str | None) -> str:
    """The first words of a description, which is often a page in Markdown."""
    lines = (line.strip().lstrip("#").strip() for line in (text or "").splitlines())
    return next(filter(None, lines), "")
