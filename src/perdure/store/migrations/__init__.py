"""Alembic's environment and the schema's revisions; run by `perdure.store.migration`, never by hand."""
