"""JS82x: registries of images, in the settings."""

from __future__ import annotations

from jobman.spec.codes.catalogue import Code, error

REGISTRY_CODES: tuple[Code, ...] = (
    error(
        "JS821",
        "not an address of a registry",
        '"{text}" is not the address of a registry',
        "write it as `https://host` or `https://host:port`, without a path",
        "A registry is asked at the root of its host. Projects and folders belong to the names of images, or under `projects`.",
    ),
    error(
        "JS822",
        "password in the settings",
        "{where} holds a password, and settings are not the place for one",
        "write it into a file that only you can read, and name that file: `password_file: ~/.jobman/password`",
        "Settings are printed, and travel with jobs to services and clusters. A password stands in a file of its own, or where `docker login` and `podman login` keep theirs.",
    ),
    error(
        "JS823",
        "password without encryption",
        "a password would travel to {url} unencrypted",
        "write `https://{host}`, or remove `username` and `password_file`",
        "A password is sent through TLS only, or to this very machine.",
    ),
    error(
        "JS824",
        "half a login",
        "the registry has `{given}` and no `{missing}`",
        "add `{missing}`; without both, jobman asks as docker or podman logged in, or as nobody",
        "Who logs in has a name and a password.",
    ),
    error(
        "JS825",
        "projects of a plain registry",
        "a registry of the kind `oci` has no `projects`",
        "remove them, or write `kind: harbor`",
        "Projects are Harbor's. A plain registry has names of images only, and `jobman images PATTERN` chooses among them.",
    ),
)
