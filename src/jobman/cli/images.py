"""`jobman images` and `image-details`: which images the registries have, and what is in one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from jobman.cli.options import Output, Utc
from jobman.cli.state import ExitCode, State, emit, misused, say

if TYPE_CHECKING:
    from jobman.cli.tables import Cell
    from jobman.client.images.answers import Details, Image, Vulnerabilities
    from jobman.client.images.catalogue import Catalogue
    from jobman.client.images.errors import RegistryError

_TAGS_SHOWN = 6
_COLOURS = {"Critical": "bold red", "High": "red", "Medium": "yellow"}


def images(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN…", help="Only images with this in their names, or like `fit*`."),
    ] = None,
    registry: Annotated[
        str | None, typer.Option("--registry", metavar="NAME", help="Ask this registry of the settings only.")
    ] = None,
    bare: Annotated[
        bool, typer.Option("--names", help="Only names, which is quick where there are thousands.")
    ] = False,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """List the images of the registries: tags, description, size."""
    state: State = context.obj
    form = state.format(output)
    catalogue = _catalogue(state, form)
    from jobman.client.images.errors import RegistryError

    try:
        found = catalogue.images(patterns or (), registry, bare=bare)
    except RegistryError as error:
        _end(error, form)
    if form != "table":
        emit(found, form)
    elif bare:
        sys.stdout.write("".join(f"{image.image}\n" for image in found.items))
    elif found.items:
        _print_images(found.items, utc=utc)
    elif not found.failures:
        say("no image is like that" if patterns else "there are no images, or none that you may see")
    for failure in found.failures:
        say(failure.message, failure.advice)
    code = next((failure.exit for failure in found.failures if failure.exit), ExitCode.DONE)
    raise typer.Exit(code)


def image_details(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="IMAGE", help="Its name as in a document; a tag is not needed.")
    ] = None,
    image: Annotated[
        str | None, typer.Option("-i", "--image", metavar="IMAGE", help="The same as the argument IMAGE.")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", metavar="OS/ARCH", help="Of several, the one to show: linux/arm64."),
    ] = None,
    utc: Utc = False,
    output: Output = None,
) -> None:
    """Show an image: description, tags, platforms, what it runs, what scanners found."""
    state: State = context.obj
    form = state.format(output)
    if (name is None) is (image is None):
        misused("which image? `jobman images` lists them" if name is None else "name one image", "-i")
    catalogue = _catalogue(state, form)
    from jobman.client.images.errors import RegistryError

    try:
        found = catalogue.details(name or image or "", platform)
    except RegistryError as error:
        _end(error, form)
    if form == "table":
        _print_details(found, utc=utc)
    else:
        emit(found, form)


def _catalogue(state: State, form: str) -> Catalogue:
    settings = state.settings(form)
    try:
        from jobman.client.images.catalogue import Catalogue
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        say("asking registries needs the package httpx", "pip install 'jobman[kubernetes]'")
        raise SystemExit(ExitCode.UNABLE) from None
    return Catalogue(settings.values.get("registries", {}), settings.site().image_prefix)


def _end(error: RegistryError, form: str) -> NoReturn:
    from jobman.cli.calls import refused
    from jobman.control.answers import Failure

    refused(Failure(code=error.code, message=error.message, advice=error.advice, exit=error.exit_code), form)


# -- the list -----------------------------------------------------------------------------------------------


def _print_images(found: list[Image], *, utc: bool) -> None:
    from jobman.cli.amounts import size
    from jobman.cli.tables import Column, print_table
    from jobman.cli.times import when

    columns = (
        Column("image"),
        Column("tags", rank=1, folds=True, least=12),
        Column("description", rank=2, folds=True),
        Column("size", rank=3, right=True),
        Column("updated", rank=4),
    )
    rows = [
        (
            image.image,
            _some(image.tags),
            image.description,
            size(image.size or 0),
            when(image.updated_at, utc=utc) if image.updated_at else "",
        )
        for image in found
    ]
    print_table(columns, rows)


def _some(tags: list[str]) -> str:
    shown = ", ".join(tags[:_TAGS_SHOWN])
    return shown if len(tags) <= _TAGS_SHOWN else f"{shown} and {len(tags) - _TAGS_SHOWN} more"


# -- one image ----------------------------------------------------------------------------------------------


def _print_details(image: Details, *, utc: bool) -> None:
    from jobman.cli.tables import Column, print_facts, print_table

    print_facts(_facts(image, utc=utc))
    for title, values in (("variable", image.env), ("label", image.labels)):
        if values:
            sys.stdout.write("\n")
            print_table((Column(title), Column("value", folds=True)), sorted(values.items()))
    lines = image.description.strip().splitlines()
    if len(lines) > 1:
        from jobman.cli.colours import clean

        sys.stdout.write("\n" + "".join(f"{clean(line)}\n" for line in lines))


def _facts(image: Details, *, utc: bool) -> Iterator[tuple[str, str | Cell]]:
    from jobman.cli.amounts import size
    from jobman.cli.tables import Cell
    from jobman.cli.times import clock, when

    def at(moment: float | None) -> str:
        if moment is None:
            return ""
        return when(moment, utc=True) if utc else f"{when(moment, utc=False)} ({clock(moment)})"

    several = "\n" in image.description.strip()
    yield "image", Cell(f"{image.image}:{image.tag}" if image.tag else image.image, "bold")
    yield "registry", image.registry
    yield "description", "below" if several else image.description.strip()
    yield "tags", ", ".join(image.tags)
    yield "digest", image.digest
    yield "created", at(image.created_at)
    yield "pushed", at(image.pushed_at)
    yield "size", size(image.size or 0)
    yield "platforms", ", ".join(each.platform for each in image.platforms)
    yield "platform", image.platform
    yield "entrypoint", _words(image.entrypoint)
    yield "command", _words(image.command)
    yield "folder", image.workdir
    yield "user", image.user
    yield "ports", ", ".join(image.ports)
    if image.vulnerabilities is not None:
        yield "vulnerabilities", _found(image.vulnerabilities)
        yield (
            "scanned",
            " ".join(filter(None, (at(image.vulnerabilities.scanned_at), _by(image.vulnerabilities)))),
        )


def _found(found: Vulnerabilities) -> Cell:
    from jobman.cli.tables import Cell

    if found.status.lower() != "success":
        return Cell(f"not known: the scan is in the state {found.status or 'unknown'}", "yellow")
    if not found.total:
        return Cell("none found", "green")
    counts = ", ".join(f"{count} {name.lower()}" for name, count in found.counts.items())
    worst = next(iter(found.counts), "")
    return Cell(f"{counts}; {found.fixable} of {found.total} can be fixed", _COLOURS.get(worst, ""))


def _by(found: Vulnerabilities) -> str:
    return f"by {found.scanner}" if found.scanner else ""


def _words(command: list[str]) -> str:
    import shlex

    return shlex.join(command)
