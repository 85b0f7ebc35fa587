"""A shop that plays the outside world for forty real retail conversations, and its judge."""
