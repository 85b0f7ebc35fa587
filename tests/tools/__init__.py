"""Tests of the tools and of their execution through the ledger."""
