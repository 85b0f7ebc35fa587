"""Races around runs, stops and crashes, with real processes that are really killed."""
