"""Give tasks the time of their latest status, by which they are listed to clients."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. What is there already gets the time of its latest change, the nearest that is known."""
    op.add_column("tasks", sa.Column("status_at_ms", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE tasks SET status_at_ms = updated_at_ms")
    op.create_index("tasks_by_status", "tasks", ["principal", "status_at_ms", "task_id"])
