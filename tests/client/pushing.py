"""Pushes images into a registry through its own protocol: blobs first, then what refers to them."""

from __future__ import annotations

import hashlib
import io
import json
import ssl
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker.distribution."
DESCRIPTION = "org.opencontainers.image.description"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def a_layer(content: bytes) -> bytes:
    """A layer with one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("content")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Pusher:
    """Somebody who may push."""

    def __init__(
        self, url: str, authority: Path | None = None, login: tuple[str, str] | None = None, token: str = ""
    ) -> None:
        verify = ssl.create_default_context(cafile=authority) if authority is not None else False
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, verify=verify, auth=login, headers=headers, trust_env=False)

    def __enter__(self) -> Pusher:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def blob(self, repository: str, data: bytes) -> str:
        begun = self._client.post(f"/v2/{repository}/blobs/uploads/").raise_for_status()
        place = urljoin(str(begun.url), begun.headers["location"])
        joined = f"{place}{'&' if '?' in place else '?'}digest={digest_of(data)}"
        form = {"Content-Type": "application/octet-stream"}
        self._client.put(joined, content=data, headers=form).raise_for_status()
        return digest_of(data)

    def manifest(self, repository: str, manifest: dict[str, Any], *tags: str) -> str:
        """Put a manifest or an index under its tags; returns its digest."""
        data = json.dumps(manifest).encode()
        headers = {"Content-Type": manifest["mediaType"]}
        for version in tags or (digest_of(data),):
            path = f"/v2/{repository}/manifests/{version}"
            self._client.put(path, content=data, headers=headers).raise_for_status()
        return digest_of(data)

    def image(
        self,
        repository: str,
        *tags: str,
        config: dict[str, Any] | None = None,
        platform: str = "linux/amd64",
        created: str = "2026-02-28T10:00:00.123456789Z",
        annotations: dict[str, str] | None = None,
        docker: bool = False,
        content: bytes = b"hello",
    ) -> str:
        """An image of one layer; returns the digest of its manifest."""
        layer = a_layer(content)
        system, _, architecture = platform.partition("/")
        told = {
            "created": created,
            "os": system,
            "architecture": architecture,
            "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
        }
        kept = json.dumps(told).encode()
        self.blob(repository, layer)
        self.blob(repository, kept)
        types = (
            (f"{DOCKER}manifest.v2+json", "application/vnd.docker.container.image.v1+json")
            if docker
            else (f"{OCI}manifest.v1+json", f"{OCI}config.v1+json")
        )
        manifest: dict[str, Any] = {
            "schemaVersion": 2,
            "mediaType": types[0],
            "config": {"mediaType": types[1], "digest": digest_of(kept), "size": len(kept)},
            "layers": [{"mediaType": f"{OCI}layer.v1.tar", "digest": digest_of(layer), "size": len(layer)}],
        }
        if annotations is not None:
            manifest["annotations"] = annotations
        return self.manifest(repository, manifest, *tags)

    def index(self, repository: str, tag: str, images: dict[str, str], docker: bool = False) -> str:
        """An index of images that are there, by their platforms."""
        inner = f"{DOCKER}manifest.v2+json" if docker else f"{OCI}manifest.v1+json"
        listed = [
            {
                "mediaType": inner,
                "digest": digest,
                "size": self._size(repository, digest, inner),
                "platform": dict(zip(("os", "architecture", "variant"), platform.split("/"), strict=False)),
            }
            for platform, digest in images.items()
        ]
        outer = f"{DOCKER}manifest.list.v2+json" if docker else f"{OCI}index.v1+json"
        return self.manifest(repository, {"schemaVersion": 2, "mediaType": outer, "manifests": listed}, tag)

    def _size(self, repository: str, digest: str, form: str) -> int:
        path = f"/v2/{repository}/manifests/{digest}"
        return len(self._client.get(path, headers={"Accept": form}).raise_for_status().content)

    def delete(self, repository: str, digest: str) -> None:
        self._client.delete(f"/v2/{repository}/manifests/{digest}").raise_for_status()
