"""The demo's shop as two MCP servers over stdio: what somebody has who never heard of this package.

They use the MCP SDK and the outside world, and nothing of the harness: the idempotency key comes in `_meta`, as from
any client that sends one. `orders.py` changes things, `policy.py` only tells; `dying.py` is for tests.
"""
