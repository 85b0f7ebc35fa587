"""Temporal: the workflow around the core, its activities, the worker, and the one door to a server."""
