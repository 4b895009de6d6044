"""All of an installation, file by file: objects, a kustomization, and how its image is made."""

from __future__ import annotations

from typing import NamedTuple

import yaml

from jobman.engines.kubernetes.installation import rights, server, tasks, walls
from jobman.engines.kubernetes.installation.site import PORT, Site
from jobman.engines.kubernetes.manifest import titled
from jobman.engines.kubernetes.objects import Written
from jobman.version import __version__

CONTAINERFILE = "Containerfile"
KUSTOMIZATION = "kustomization.yaml"


class Item(NamedTuple):
    """An object, the file it belongs to, and what it is for."""

    file: str
    title: str
    written: Written

    @property
    def text(self) -> str:
        return titled(self.title, self.written)

    @property
    def name(self) -> str:
        """As kubectl would say it."""
        return f"{self.written['kind'].lower()}/{self.written['metadata']['name']}"


def objects(site: Site) -> list[Item]:
    """Every object once, in an order in which they can be created."""
    found = [Item("namespaces.yaml", title, written) for title, written in walls.namespaces(site)]
    found.append(Item("rights.yaml", "as whom the server speaks to the cluster", rights.account(site)))
    found += [Item("rights.yaml", title, written) for title, written in rights.rights(site)]
    found += [Item("network.yaml", title, written) for title, written in walls.policies(site)]
    found.append(Item("settings.yaml", "the settings of the server", server.settings(site)))
    if (claim := server.storage(site)) is not None:
        found.append(Item("storage.yaml", "what jobs wrote", claim))
    found.append(Item("service.yaml", "where the leader is found", server.service(site)))
    found.append(Item("deployment.yaml", "the servers, of which one leads", server.deployment(site)))
    found.append(Item("disruption.yaml", "one server is taken away at a time", server.budget(site)))
    if site.tasks is not None:
        found += [Item("tasks.yaml", title, written) for title, written in tasks.objects(site, site.tasks)]
    return found


def files(site: Site) -> dict[str, str]:
    """The texts of a folder that kustomize understands."""
    texts: dict[str, str] = {}
    for item in objects(site):
        texts[item.file] = texts.get(item.file, "") + item.text
    texts[KUSTOMIZATION] = kustomization(list(texts))
    texts[CONTAINERFILE] = containerfile()
    return texts


def kustomization(names: list[str]) -> str:
    """What `kubectl apply -k` reads first."""
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": names,
    }
    return yaml.safe_dump(content, sort_keys=False)


def containerfile() -> str:
    """How the image of the server is made of a checkout. Nothing in it runs as root."""
    user = server.USER
    return f"""\
# The image of `jobman server`, in a checkout: podman build -t jobman:{__version__} -f {CONTAINERFILE} .
# It has the jobman of that checkout, and not what a package index has under the name.
FROM python:3.12-slim

COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir --root-user-action=ignore "/source[postgres,kubernetes]" \\
 && groupadd --gid {user} jobman \\
 && useradd --uid {user} --gid {user} --home-dir {server.HOME} --create-home --shell /usr/sbin/nologin jobman

ENV HOME={server.HOME} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER {user}:{user}
WORKDIR {server.HOME}
EXPOSE {PORT}
STOPSIGNAL SIGTERM
ENTRYPOINT ["jobman"]
CMD ["--help"]
"""
