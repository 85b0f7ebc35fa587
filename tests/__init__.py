"""The tests of perdure."""
