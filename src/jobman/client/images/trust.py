"""Whom to believe that it is the registry: authorities of the system, and those of the settings."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from jobman.client.images.credentials import located
from jobman.client.images.errors import WrongSettings
from jobman.settings.registries import Registry


def trust(registry: Registry, environment: Mapping[str, str]) -> ssl.SSLContext:
    """For connections to a registry; raises WrongSettings."""
    context = ssl.create_default_context()
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whoever is named is trusted, not only a root
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # many sites sign their own, and not by every rule
    if registry.ca is None:
        return context
    try:
        context.load_verify_locations(cafile=located(registry.ca, environment))
    except OSError as error:  # of OpenSSL, too
        reason = "it is not a certificate in PEM form"
        if not isinstance(error, ssl.SSLError) and error.strerror:
            reason = error.strerror.lower()
        raise WrongSettings(
            f"{registry.ca} cannot be used: {reason}",
            f"`ca` of the registry {registry.name} in the settings names a file of certificates (PEM)",
        ) from None
    return context
