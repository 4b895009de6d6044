"""Harbor's answers, and what they mean: repositories, artifacts with their tags, and reports of scanners."""

from __future__ import annotations

import msgspec

from jobman.client.images.answers import Details, Platform, Vulnerabilities
from jobman.client.images.manifests import Config, PlatformRecord, Runtime, fill
from jobman.client.images.names import visible
from jobman.client.images.times import moment

IMAGE = "IMAGE"
_SEVERITIES = ("Critical", "High", "Medium", "Low", "Negligible", "Unknown", "None")


class Project(msgspec.Struct, kw_only=True):
    name: str = ""


class Repository(msgspec.Struct, kw_only=True):
    """An image with all its tags; the project is the first part of its name."""

    name: str = ""
    description: str | None = None
    update_time: str | None = None


class Tag(msgspec.Struct, kw_only=True):
    name: str = ""
    push_time: str | None = None


class ExtraAttributes(msgspec.Struct, kw_only=True):
    """What Harbor took from the configuration of an image; empty for an index."""

    created: str | None = None
    os: str | None = None
    architecture: str | None = None
    config: Runtime | None = None


class Reference(msgspec.Struct, kw_only=True):
    """An artifact that an index refers to."""

    child_digest: str = ""
    platform: PlatformRecord | None = None
    annotations: dict[str, str] | None = None


class Summary(msgspec.Struct, kw_only=True):
    total: int = 0
    fixable: int = 0
    summary: dict[str, int] | None = None


class Scanner(msgspec.Struct, kw_only=True):
    name: str | None = None
    version: str | None = None


class Report(msgspec.Struct, kw_only=True):
    """What a scanner says of an artifact, in short."""

    scan_status: str = ""
    severity: str | None = None
    end_time: str | None = None
    summary: Summary | None = None
    scanner: Scanner | None = None


class Artifact(msgspec.Struct, kw_only=True):
    """What tags point to: an image, an index of images, a chart."""

    type: str = ""
    digest: str = ""
    size: int | None = None
    push_time: str | None = None
    tags: list[Tag] | None = None
    references: list[Reference] | None = None
    annotations: dict[str, str] | None = None
    extra_attrs: ExtraAttributes | None = None
    scan_overview: dict[str, Report] | None = None

    @property
    def pushed_at(self) -> float:
        """When it got its newest tag, or came at all."""
        moments = [moment(tag.push_time) for tag in self.tags or ()]
        return max([moment(self.push_time) or 0.0, *(each for each in moments if each is not None)])

    @property
    def platforms(self) -> list[Platform]:
        return [
            Platform(platform=str(each.platform), digest=each.child_digest)
            for each in self.references or ()
            if each.platform is not None and str(each.platform) and each.platform.os != "unknown"
        ]


def are_images(artifacts: list[Artifact]) -> bool:
    """Whether something can be started from them; what has no tags is counted as an image."""
    return not artifacts or any(each.type in (IMAGE, "") for each in artifacts)


def tags_of(artifacts: list[Artifact]) -> list[str]:
    """All tags, the newest first; of those that came at once the highest."""
    moments: dict[str, float] = {}
    for artifact in artifacts:
        for tag in artifact.tags or ():
            moments[tag.name] = moment(tag.push_time) or artifact.pushed_at
    return sorted(visible(moments), key=lambda name: -moments[name])


def newest(artifacts: list[Artifact]) -> Artifact | None:
    """The one that was pushed last, of images where there are some."""
    images = [each for each in artifacts if each.type in (IMAGE, "")] or artifacts
    return max(images, key=lambda each: each.pushed_at, default=None)


def tagged(artifacts: list[Artifact], version: str) -> Artifact | None:
    """The one with a tag, or with a digest."""
    return next(
        (
            each
            for each in artifacts
            if each.digest == version or version in [tag.name for tag in each.tags or ()]
        ),
        None,
    )


def fill_from(details: Details, artifact: Artifact) -> None:
    """Write what Harbor knows of the image for one platform into the details."""
    details.size = artifact.size
    extra = artifact.extra_attrs or ExtraAttributes()
    fill(
        details,
        Config(created=extra.created, os=extra.os, architecture=extra.architecture, config=extra.config),
    )


def vulnerabilities_of(*artifacts: Artifact) -> Vulnerabilities | None:
    """The first report there is; each scanner writes one, and an index may have none of its own."""
    reports = [report for each in artifacts for report in (each.scan_overview or {}).values()]
    if not reports:
        return None
    report = next((each for each in reports if each.summary is not None), reports[0])
    summary = report.summary or Summary()
    counts = summary.summary or {}
    known = {name: counts[name] for name in _SEVERITIES if counts.get(name)}
    scanner = report.scanner or Scanner()
    return Vulnerabilities(
        status=report.scan_status,
        severity=report.severity or "",
        total=summary.total,
        fixable=summary.fixable,
        counts=known | {name: count for name, count in counts.items() if count and name not in known},
        scanner=" ".join(filter(None, (scanner.name, scanner.version))),
        scanned_at=moment(report.end_time),
    )
