"""The pytest plugin: the `chaos` fixture, there wherever Perdure is installed beside pytest.

```python
async def test_a_refund_is_never_paid_twice(chaos):
    outcome = await chaos.kill_at("tool.after_effect:refund").run("shop.agents:support", "Refund order A-1")
    assert outcome.broken == ()
    assert outcome.begun("refund") == 1
    assert len(shop.refunds("A-1")) == 1  # the outside world has the last word
```

`perdure.core.faults.POINTS` lists the points. A run takes some seconds: it has real worker processes, really killed.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from perdure.app.chaos import Chaos


@pytest.fixture
def chaos(tmp_path: Path) -> "Chaos":
    """Worker processes that die at named points: `await chaos.kill_at("tool.begun").run("module:agent", "…")`."""
    # Imported on use: pytest loads this module in every project that has Perdure installed.
    from perdure.app.chaos import Chaos  # noqa: PLC0415

    return Chaos(tmp_path / "chaos")
