"""A registry that speaks the OCI distribution protocol: its catalog, its tags, its manifests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from urllib.parse import quote

import msgspec

from jobman.client.images.answers import Details, Image, Platform
from jobman.client.images.challenges import next_page
from jobman.client.images.errors import Denied, NoCatalog, NotFound, RegistryError, Unreachable
from jobman.client.images.link import Link
from jobman.client.images.manifests import (
    ACCEPTED,
    Config,
    Manifest,
    check_digest,
    chosen,
    description_in,
    digest_of,
    fill,
    platforms_of,
    read_config,
    read_manifest,
)
from jobman.client.images.names import matches, meant, visible
from jobman.client.images.wire import Answer
from jobman.spec.suggest import did_you_mean, listing

PAGE = 100
_CATALOG = "registry:catalog:*"
LISTED = "`jobman images` lists those there are"


class _Catalog(msgspec.Struct):
    repositories: list[str] | None = None


class _Tags(msgspec.Struct):
    tags: list[str] | None = None


class Oci:
    """Questions to a plain registry."""

    def __init__(self, link: Link, page: int = PAGE) -> None:
        self.link = link
        self._page = page

    async def repositories(self, patterns: Sequence[str] = ()) -> list[str]:
        """The names of all images, or of those that a pattern means."""
        found: dict[str, None] = {}
        async for answer in _pages(self.link, f"/v2/_catalog?n={self._page}", _CATALOG):
            if not answer.is_good:
                await self._no_catalog(answer)
            found |= dict.fromkeys(self.link.decode(answer, _Catalog).repositories or ())
        return [name for name in found if matches(name, patterns)]

    async def image(self, repository: str) -> Image | None:
        """An image at a glance; None where there is nothing under the name any more, or no image."""
        found = Image(image="", registry=self.link.registry.name, repository=repository)
        try:
            found.tags = await self.tags(repository)
            if not found.tags:
                return None
            manifest, _ = await self._manifest(repository, found.tags[0])
            if not manifest.is_image:
                return None
            index = manifest
            if manifest.is_index:
                of = chosen(platforms_of(manifest), None)
                if of is None:
                    return found
                manifest, _ = await self._manifest(repository, of.digest)
            found.size = manifest.size
            config = await self._config(repository, manifest)
        except NotFound:
            return found if found.tags else None
        except (Unreachable, Denied):
            raise
        except RegistryError:
            return found
        labels = config.config.labels if config.config is not None else None
        found.description = description_in(index.annotations, manifest.annotations, labels)
        details = Details(image="", registry="", repository="")
        fill(details, config)
        found.updated_at = details.created_at
        return found

    async def tags(self, repository: str) -> list[str]:
        """All tags of an image; raises NotFound."""
        found: list[str] = []
        path = f"/v2/{quote(repository)}/tags/list?n={self._page}"
        async for answer in _pages(self.link, path, _pull(repository)):
            if answer.status == 404:
                raise NotFound(f"the registry at {self.link.registry.url} has no image {repository}")
            if not answer.is_good:
                self.link.refuse(answer, repository)
            found += self.link.decode(answer, _Tags).tags or ()
        return visible(dict.fromkeys(found))

    async def details(self, repository: str, version: str, platform: str | None) -> Details:
        """All that is known of an image under a tag or digest; without one, of its newest tag."""
        found = Details(image="", registry=self.link.registry.name, repository=repository)
        found.tags = await self._tags_or_guess(repository)
        version = version or next(iter(found.tags), "")
        if not version:
            raise NotFound(f"the image {repository} has no tag", "name it by its digest: `NAME@sha256:…`")
        try:
            manifest, found.digest = await self._manifest(repository, version)
        except NotFound as error:
            raise unknown_version(repository, version, found.tags) from error
        found.tag = "" if ":" in version else version
        top = manifest
        if manifest.is_index:
            found.platforms = platforms_of(manifest)
            of = chosen_or_refused(found, platform)
            if of is None:
                return found
            manifest, _ = await self._manifest(repository, of.digest)
            found.platform = of.platform
        found.size = manifest.size
        found.annotations = {**(top.annotations or {}), **(manifest.annotations or {})}
        if not manifest.is_image:
            kind = manifest.config.media_type if manifest.config is not None else manifest.media_type
            raise RegistryError(f"{repository} is not an image, but {kind or 'something unknown'}")
        config = await self._config(repository, manifest)
        fill(found, config)
        if platform is not None and not found.platforms:
            refuse_platform(found, platform)
        found.description = description_in(found.annotations, found.labels)
        return found

    async def _tags_or_guess(self, repository: str) -> list[str]:
        try:
            return await self.tags(repository)
        except NotFound as error:
            # A registry that does not tell its catalog leaves it at that.
            try:
                known = await self.repositories()
            except RegistryError:
                known = []
            raise NotFound(error.message, LISTED, meant(repository, known)) from None

    async def _manifest(self, repository: str, version: str) -> tuple[Manifest, str]:
        path = f"/v2/{quote(repository)}/manifests/{quote(version, safe=':')}"
        answer = await self.link.get(path, accept=ACCEPTED, scope=_pull(repository))
        if answer.status == 404:
            raise NotFound(f"the image {repository} has no {version}")
        if not answer.is_good:
            self.link.refuse(answer, repository)
        if ":" in version:
            check_digest(answer.body, version)
        form = answer.headers.get("content-type", "").partition(";")[0].strip()
        return read_manifest(answer.body, form), version if ":" in version else digest_of(answer.body)

    async def _config(self, repository: str, manifest: Manifest) -> Config:
        assert manifest.config is not None
        digest = manifest.config.digest
        path = f"/v2/{quote(repository)}/blobs/{quote(digest, safe=':')}"
        answer = await self.link.get(path, accept=("*/*",), scope=_pull(repository))
        if answer.status == 404:
            raise NotFound(f"the image {repository} has lost its configuration {digest}", "push it anew")
        if not answer.is_good:
            self.link.refuse(answer, repository)
        check_digest(answer.body, digest)
        return read_config(answer.body)

    async def _no_catalog(self, answer: Answer) -> None:
        if answer.status not in (404, 405, 501):
            self.link.refuse(answer, "the list of its images")
        if (await self.link.get("/v2/")).status not in (200, 401):
            self.link.strange(answer)
        url = self.link.registry.url
        raise NoCatalog(
            f"the registry at {url} does not tell which images it has (HTTP {answer.status})",
            "ask for one by its name: `jobman image-details -i NAME`",
        )


def _pull(repository: str) -> str:
    return f"repository:{repository}:pull"


async def _pages(link: Link, path: str, scope: str) -> AsyncGenerator[Answer, None]:
    """The answers of a list, one after another, until there is no next."""
    seen: set[str] = set()
    following: str | None = path
    while following is not None:
        if following in seen:
            raise Unreachable(
                f"a list of the registry at {link.registry.url} never ends", "tell whoever runs it"
            )
        seen.add(following)
        answer = await link.get(following, scope=scope)
        yield answer
        following = next_page(answer.headers.get("link", "")) if answer.is_good else None


def unknown_version(repository: str, version: str, tags: Sequence[str]) -> NotFound:
    """There is the image, but not this tag of it."""
    if ":" in version:
        return NotFound(
            f"the image {repository} has no digest {version}", "`jobman image-details` shows its tags"
        )
    otherwise = f"there are {listing(tags)}" if tags else "it has no tags at all"
    return NotFound(
        f"the image {repository} has no tag {version}", did_you_mean(meant(version, tags), otherwise)
    )


def chosen_or_refused(details: Details, platform: str | None) -> Platform | None:
    """The platform to show; raises NotFound where there is none like the one that was asked for."""
    of = chosen(details.platforms, platform)
    if of is None and platform is not None:
        refuse_platform(details, platform)
    return of


def refuse_platform(details: Details, platform: str) -> None:
    """Raise NotFound unless the image is for this platform."""
    names = [each.platform for each in details.platforms] or [details.platform]
    if not any(f"{name}/".startswith(f"{platform}/") for name in names):
        there = listing(name for name in names if name)
        raise NotFound(f"the image {details.repository} is not there for {platform}", f"it is for {there}")
