"""The front door: A2A over the app, the store and the tasks' workflows. `server.py` puts it together."""
