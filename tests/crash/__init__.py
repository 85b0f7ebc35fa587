"""Crashes at exact instructions."""
