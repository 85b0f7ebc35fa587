"""Alembic's entry: runs the revisions on the connection, and in the transaction, that `migration.migrate` opened."""

from alembic import context

from perdure.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
