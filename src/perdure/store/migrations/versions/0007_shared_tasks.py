"""Keep whom a task is shared with: in its row, and by principal to be listed."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table. What is there already is shared with nobody."""
    op.add_column("tasks", sa.Column("shared_with", sa.Text(), nullable=False, server_default="[]"))
    op.create_table(
        "task_shares",
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("principal", "task_id"),
    )
