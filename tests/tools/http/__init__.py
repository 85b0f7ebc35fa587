"""HTTP services as tools."""
