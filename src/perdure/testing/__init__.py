"""What users test their agents with: a model that says what a script says.

```python
from perdure.testing import call, calls, last_result, say, scripted

model = scripted(
    call("get_order", {"order_id": "A-1"}),
    calls(call("refund", {"order_id": "A-1"}), call("notify", {"text": "refunded"})),
    lambda transcript: say(f"Done: {last_result(transcript)}"),
)
```

Any worker process that builds the same script goes on where another was killed, because the model keeps nothing: what
it says next follows from the transcript alone.
"""

from perdure.testing.script import Step, call, calls, fail, say
from perdure.testing.scripted import ScriptedModel, scripted
from perdure.testing.transcripts import last_result, last_user, replies, results

__all__ = [
    "ScriptedModel",
    "Step",
    "call",
    "calls",
    "fail",
    "last_result",
    "last_user",
    "replies",
    "results",
    "say",
    "scripted",
]
