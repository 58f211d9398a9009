"""Alembic's entry: it is handed the open, locked connection of `database.migrate`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
