"""Where things are wired: agents, settings, the application and its tasks."""
