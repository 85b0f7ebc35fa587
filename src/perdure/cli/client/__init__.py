"""Commands that talk to a served agent over A2A alone: `send`, `watch`, `answer`, `cancel`, `tasks URL`."""
