"""Keep with each attempt at a model call which of an agent's models it asked."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Of earlier attempts it is not known, and empty."""
    op.add_column("model_calls", sa.Column("model", sa.Text(), nullable=False, server_default=""))
