"""Secrets on this machine: what the vault gives, laid out in a private folder of the attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jobman.engines import vault
from jobman.engines.local import private
from jobman.engines.local.orders import CannotRun
from jobman.engines.local.private import Owner
from jobman.engines.vault import Arrangement, Kind
from jobman.spec.access import EnvFrom, Secret

__all__ = ["Arrangement", "Kind", "Vault", "arrange", "lay_out", "variables_from"]


@contextmanager
def _as_cannot_run() -> Iterator[None]:
    try:
        yield
    except vault.Unavailable as error:
        raise CannotRun(error.message) from None


class Vault(vault.Vault):
    """The secrets and configurations of one user; what is missing keeps an order from being carried out."""

    def entries(self, kind: Kind, name: str) -> dict[str, bytes]:
        with _as_cannot_run():
            return super().entries(kind, name)

    def chosen(self, secret: Secret) -> dict[str, bytes]:
        with _as_cannot_run():
            return super().chosen(secret)


def arrange(secrets: Sequence[Secret], shelf: Vault) -> Arrangement:
    """Variables, files and folders for the secrets of a task."""
    with _as_cannot_run():
        return vault.arrange(secrets, shelf)


def variables_from(origins: Sequence[EnvFrom], shelf: Vault, cwd: Path) -> dict[str, str]:
    """The variables of `env_from`, later entries over earlier ones."""
    with _as_cannot_run():
        return vault.variables_from(origins, shelf, cwd)


def lay_out(arrangement: Arrangement, folder: Path, owner: Owner) -> None:
    """Write the files of an arrangement below a private folder that is there already."""
    for below in arrangement.folders.values():
        private.make_inside(folder, below, owner)
    for path, content in arrangement.files.items():
        private.make_inside(folder, str(Path(path).parent), owner)
        private.write(folder / path, content, owner)
