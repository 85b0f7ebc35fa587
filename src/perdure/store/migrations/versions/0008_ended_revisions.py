"""Keep with which revision a task ended: its own moves with every later write beneath it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_PLACES = """
UPDATE tasks SET ended_revision = ended.place
FROM (
  SELECT task_id, ROW_NUMBER() OVER (ORDER BY status_at_ms, task_id) AS place
  FROM tasks WHERE terminal_number <= contiguous
) AS ended
WHERE ended.task_id = tasks.task_id
"""


def upgrade() -> None:
    """Add the column. Of what has ended already the time of its last status tells the order.

    Their places are smaller than any revision that is still to come: each of these tasks was given one at least.
    """
    op.add_column("tasks", sa.Column("ended_revision", sa.BigInteger(), nullable=True))
    op.execute(_PLACES)
