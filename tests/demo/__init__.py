"""The demo's own tests."""
