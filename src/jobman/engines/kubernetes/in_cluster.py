"""The cluster that this process itself runs in, as every pod finds it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jobman.engines.kubernetes.access import Access, Login, Material

_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


def in_cluster(environment: Mapping[str, str], folder: str | Path = _FOLDER) -> Access | None:
    """The way to it with the service account of the pod; None outside of a pod or without its token."""
    host = environment.get("KUBERNETES_SERVICE_HOST")
    port = environment.get("KUBERNETES_SERVICE_PORT")
    folder = Path(folder)
    if not host or not port or not (folder / "token").exists():
        return None
    authority = folder / "ca.crt"
    return Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=environment.get("POD_NAMESPACE") or _first_line(folder / "namespace") or "default",
        source="the service account of this pod",
        authority=Material(file=str(authority)) if authority.exists() else Material(),
        login=Login(token_file=str(folder / "token")),
    )


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
