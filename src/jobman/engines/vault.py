"""Secrets and configurations: folders of entries under the user's own, handed to copies and to nobody else.

A secret is the folder `secrets/NAME`, a configuration `configs/NAME`; each file in it is an entry. No value
stands in any message, record or argument.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from jobman.engines.endings import why
from jobman.engines.peers import shouted
from jobman.spec.access import EnvFrom, Secret

OWN_PREFIX = "JOBMAN_"
"""Before the names of variables that are jobman's own to set."""

Kind = Literal["secret", "config"]
_FOLDERS: dict[Kind, str] = {"secret": "secrets", "config": "configs"}
_NOUNS: dict[Kind, str] = {"secret": "secret", "config": "configuration"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPEN_TO_OTHERS = 0o077


class Unavailable(Exception):
    """Something that cannot be handed to a copy, in a user's words."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Vault:
    """The secrets and configurations of one user."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def entries(self, kind: Kind, name: str) -> dict[str, bytes]:
        """All entries; raises Unavailable where there is no such secret or it is open to others."""
        folder = self._folder(kind, name)
        try:
            files = [
                each for each in sorted(folder.iterdir()) if not each.name.startswith(".") and each.is_file()
            ]
            return {each.name: self._read(kind, name, each) for each in files}
        except (FileNotFoundError, NotADirectoryError):
            raise Unavailable(
                f"there is no {_NOUNS[kind]} `{name}`: it would be the folder {folder}"
            ) from None
        except OSError as error:
            raise Unavailable(
                f"the {_NOUNS[kind]} `{name}` in {folder} cannot be read: {why(error)}"
            ) from None

    def chosen(self, secret: Secret) -> dict[str, bytes]:
        """The entries a document asks for: one, or all."""
        entries = self.entries("secret", secret.name)
        if secret.key is None:
            return entries
        if secret.key not in entries:
            where = self._folder("secret", secret.name) / secret.key
            raise Unavailable(
                f"the secret `{secret.name}` has no entry `{secret.key}`: it would be the file {where}"
            )
        return {secret.key: entries[secret.key]}

    def _folder(self, kind: Kind, name: str) -> Path:
        return self._home / _FOLDERS[kind] / name

    def _read(self, kind: Kind, name: str, file: Path) -> bytes:
        if kind == "secret":
            self._check_is_closed(name, file)
        return file.read_bytes()

    def _check_is_closed(self, name: str, file: Path) -> None:
        """One closed folder on the way is enough."""
        way = (self._home / _FOLDERS["secret"], file.parent, file)
        if all(stat.S_IMODE(each.stat().st_mode) & _OPEN_TO_OTHERS for each in way):
            raise Unavailable(
                f"the secret `{name}` can be read by others and is not used; `chmod 700 {way[0]}` closes it"
            )


class Arrangement(msgspec.Struct):
    """What secrets come down to for the copies of an attempt."""

    variables: dict[str, str] = {}
    files: dict[str, bytes] = {}
    """Content by path below the private folder."""
    places: dict[str, str] = {}
    """From where a copy looks for a file or folder to its path below the private folder."""
    folders: dict[str, str] = {}
    """From a variable to the folder, below the private one, whose path it carries."""


def arrange(secrets: Sequence[Secret], vault: Vault) -> Arrangement:
    """Variables, files and folders for the secrets of a task."""
    result = Arrangement()
    for number, secret in enumerate(secrets):
        entries = vault.chosen(secret)
        if secret.variable is not None:
            result.variables[secret.variable] = as_variable(secret.name, *_only(secret, entries))
        if secret.path is not None:
            _place(result, secret.path, f"files/{number}", entries)
        if secret.variable is None and secret.path is None:
            folder = f"secrets/{secret.name}"
            _fill(result, folder, entries)
            result.folders[variable_of(secret.name)] = folder
    return result


def variable_of(name: str) -> str:
    """The variable that says where the entries of a secret are."""
    return f"{OWN_PREFIX}SECRET_{shouted(name)}"


def variables_from(origins: Sequence[EnvFrom], vault: Vault, cwd: Path) -> dict[str, str]:
    """The variables of `env_from`, later entries over earlier ones; what cannot be a variable is left out."""
    found: dict[str, str] = {}
    for origin in origins:
        for name, value in _values(origin, vault, cwd).items():
            variable = origin.prefix + name
            if _VARIABLE.fullmatch(variable) and not variable.startswith(OWN_PREFIX):
                found[variable] = value
    return found


def _values(origin: EnvFrom, vault: Vault, cwd: Path) -> dict[str, str]:
    if origin.file is not None:
        return _read_variables(cwd / origin.file)
    kind: Kind = "config" if origin.secret is None else "secret"
    name = origin.secret or origin.config or ""
    return {key: as_variable(name, key, value) for key, value in vault.entries(kind, name).items()}


def _read_variables(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unavailable(f"`env_from` names {path}, which is not a text in UTF-8") from None
    except OSError as error:
        raise Unavailable(f"`env_from` names {path}, which cannot be read: {why(error)}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.removesuffix("\r").partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            raise Unavailable(f"line {number} of {path} is not of the form NAME=value")
        found[name] = value
    return found


def as_variable(name: str, key: str, value: bytes) -> str:
    """A value as a variable carries it: without the line break that editors put at the end."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Unavailable(
            f"the entry `{key}` of `{name}` is no text, so no variable can carry it; give it a `path`"
        )
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def _only(secret: Secret, entries: dict[str, bytes]) -> tuple[str, bytes]:
    if len(entries) == 1:
        return next(iter(entries.items()))
    known = ", ".join(f"`{key}`" for key in entries) or "none"
    raise Unavailable(
        f"the variable {secret.variable} can carry one entry of the secret `{secret.name}`, not {known}; "
        "say which with `key`"
    )


def _place(result: Arrangement, path: str, below: str, entries: dict[str, bytes]) -> None:
    """A single entry is a file at that path; several are a folder of files."""
    if len(entries) == 1:
        (content,) = entries.values()
        result.files[below] = content
    else:
        _fill(result, below, entries)
    result.places[path] = below


def _fill(result: Arrangement, folder: str, entries: dict[str, bytes]) -> None:
    result.files.update({f"{folder}/{key}": content for key, content in entries.items()})
