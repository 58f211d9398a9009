"""Alembic's entry point; gets the open, locked connection of `database.migrate`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
