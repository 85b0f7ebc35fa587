"""The commands that talk to a served agent."""
