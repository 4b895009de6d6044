"""Runs migrations on the connection of the store, in the transaction that it has begun."""

from __future__ import annotations

from alembic import context

from jobman.control.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
