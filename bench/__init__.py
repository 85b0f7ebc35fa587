"""Benchmarks: absolute figures beside a ratio to a floor measured in the same run."""
