"""Keep with each attempt at an effect what it asked a person, where that is how it ended."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; attempts so far asked nothing."""
    op.add_column("effect_attempts", sa.Column("asked", sa.Text(), nullable=True))
