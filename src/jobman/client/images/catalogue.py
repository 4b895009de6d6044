"""Which registries are asked: all of the settings for a list, and the right one for an image."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jobman.client.images import names
from jobman.client.images.answers import Details, Failed, Image, Images
from jobman.client.images.errors import Denied, NotFound, RegistryError, WrongName
from jobman.client.images.harbor import Harbor, is_harbor
from jobman.client.images.link import Link
from jobman.client.images.oci import LISTED, Oci
from jobman.client.images.wire import PATIENCE
from jobman.settings.registries import Registry, is_host
from jobman.spec.suggest import did_you_mean, listing

_MANY = 200
"""Images whose answers are waited for at a time."""


class Wanted(NamedTuple):
    """An image, and where to look for it."""

    registry: Registry
    reference: names.Reference


class Catalogue:
    """The images that the registries of the settings have."""

    def __init__(
        self,
        registries: Mapping[str, Registry],
        prefix: str = "",
        *,
        environment: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._known = dict(registries)
        self._prefix = prefix
        self._environment = environment
        self._patience = patience

    def registries(self, name: str | None = None) -> list[Registry]:
        """Those that are asked: all of the settings, or the one that is named, or that of the prefix."""
        if name is not None:
            if name not in self._known:
                hint = did_you_mean(names.meant(name, self._known), self._others())
                raise WrongName(f"there is no registry {name} in the settings", hint)
            return [self._known[name]]
        host, _ = names.split_host(self._prefix)
        found = list(self._known.values())
        if is_host(host) and all(each.host != host.lower() for each in found):
            found.append(self._at(host))
        if not found:
            raise RegistryError("there is no registry in the settings", _HOW)
        return found

    def _others(self) -> str:
        return f"there are {listing(self._known)}" if self._known else _HOW

    def _at(self, host: str) -> Registry:
        """The registry of a host, whether the settings have it or not."""
        own = next((each for each in self._known.values() if each.host == host.lower()), None)
        return own or Registry(name=host, url=f"https://{host.lower()}")

    def link(self, registry: Registry) -> Link:
        configured = registry.name in self._known
        return Link(registry, configured=configured, environment=self._environment, patience=self._patience)

    # -- the list --------------------------------------------------------------------------------------------

    def images(
        self, patterns: Sequence[str] = (), registry: str | None = None, *, bare: bool = False
    ) -> Images:
        """All images, those of each registry by name; `bare` asks for nothing but names.

        A registry that fails is told in the answer, unless it is the only one.
        """
        return asyncio.run(self._images(self.registries(registry), patterns, bare))

    async def _images(self, registries: Sequence[Registry], patterns: Sequence[str], bare: bool) -> Images:
        asked = [self._images_of(each, patterns, bare) for each in registries]
        results = await asyncio.gather(*asked, return_exceptions=True)
        found = Images()
        for registry, result in zip(registries, results, strict=True):
            if isinstance(result, RegistryError):
                if len(registries) == 1:
                    raise result
                found.failures.append(_failed(registry, result))
            elif isinstance(result, BaseException):
                raise result
            else:
                found.items += result.items
                found.failures += result.failures
        return found

    async def _images_of(self, registry: Registry, patterns: Sequence[str], bare: bool) -> Images:
        host = f"{registry.host}/"
        own = [pattern.removeprefix(host) for pattern in patterns]
        async with self.link(registry) as link:
            source = await _source(link)
            repositories = sorted(filter(names.is_repository, await source.repositories(own)))
            if bare:
                return Images(items=[self._bare(registry, each) for each in repositories])
            found: list[Image] = []
            denied: list[Denied] = []
            for start in range(0, len(repositories), _MANY):
                await self._look(source, repositories[start : start + _MANY], found, denied)
        return Images(items=found, failures=_partly(registry, denied))

    async def _look(
        self, source: Harbor | Oci, repositories: Sequence[str], found: list[Image], denied: list[Denied]
    ) -> None:
        """Look into images; one that may not be looked into is in the list all the same."""
        registry = source.link.registry
        tasks = [asyncio.ensure_future(source.image(each)) for each in repositories]
        try:
            for repository, task in zip(repositories, tasks, strict=True):
                try:
                    image = await task
                except Denied as error:
                    denied.append(error)
                    image = self._bare(registry, repository)
                if image is not None:
                    found.append(self._named(image, registry))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _bare(self, registry: Registry, repository: str) -> Image:
        return self._named(Image(image="", registry=registry.name, repository=repository), registry)

    def _named(self, image: Image, registry: Registry) -> Image:
        image.image = self._written(registry, image.repository)
        return image

    # -- one image -------------------------------------------------------------------------------------------

    def details(self, text: str, platform: str | None = None) -> Details:
        """All that is known of one image, named as a document names it, or by the end of its name."""
        return asyncio.run(self._details(text, platform))

    async def _details(self, text: str, platform: str | None) -> Details:
        reference = names.parse(text)
        if not reference.host and self._prefix:
            reference = names.parse(self._prefix + text)
        wanted = (
            Wanted(self._at(reference.host), reference) if reference.host else await self._search(reference)
        )
        async with self.link(wanted.registry) as link:
            source = await _source(link)
            try:
                found = await source.details(wanted.reference.repository, wanted.reference.version, platform)
            except NotFound as error:
                raise self._guessed(error, wanted.registry) from error
        found.image = self._written(wanted.registry, found.repository)
        return found

    def _guessed(self, error: NotFound, registry: Registry) -> NotFound:
        """The same, with a guess that can be typed as it is."""
        guess = None if error.guess is None else self._written(registry, error.guess)
        return NotFound(error.message, did_you_mean(guess, error.advice))

    def _written(self, registry: Registry, repository: str) -> str:
        """An image as a document names it."""
        return names.shortened(f"{registry.host}/{repository}", self._prefix)

    async def _search(self, reference: names.Reference) -> Wanted:
        """The one image of all registries whose name ends like this."""
        found: list[tuple[Registry, str]] = []
        known: dict[str, Registry] = {}
        for registry in self.registries():
            async with self.link(registry) as link:
                source = await _source(link)
                if len(self._known) == 1 and isinstance(source, Oci):
                    # It may not have a catalog, and a plain registry has no projects to leave out.
                    return Wanted(registry, reference)
                repositories = await source.repositories()
            known |= dict.fromkeys(repositories, registry)
            ending = [each for each in repositories if names.ends_with(each, reference.repository)]
            exact = [each for each in ending if each == reference.repository]
            found += [(registry, each) for each in exact or ending]
        if len(found) == 1:
            registry, repository = found[0]
            return Wanted(registry, reference._replace(repository=repository))
        name = reference.repository
        if found:
            several = listing(f"{registry.host}/{repository}" for registry, repository in found)
            raise WrongName(f"{name} could be several images", f"name one of {several}")
        guess = names.meant(name, known)
        hint = did_you_mean(None if guess is None else self._written(known[guess], guess), LISTED)
        raise NotFound(f"there is no image {name}", hint)


_HOW = "add one: `registries: [{name: lab, url: 'https://registry.example.org'}]`"


async def _source(link: Link) -> Harbor | Oci:
    kind = link.registry.kind
    if kind is None:
        kind = "harbor" if link.registry.projects or await is_harbor(link) else "oci"
    return Harbor(link) if kind == "harbor" else Oci(link)


def _failed(registry: Registry, error: RegistryError) -> Failed:
    return Failed(
        registry=registry.name,
        code=error.code,
        message=error.message,
        advice=error.advice,
        exit=error.exit_code,
    )


def _partly(registry: Registry, denied: Sequence[Denied]) -> list[Failed]:
    """What is told where only the insides of some images are hidden; the list itself is whole."""
    if not denied:
        return []
    first = _failed(registry, denied[0])
    first.exit = 0
    if len(denied) > 1:
        first.message = f"{first.message}; nor {len(denied) - 1} others"
    return [first]
