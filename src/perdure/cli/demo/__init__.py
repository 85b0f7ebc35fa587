"""The demo: a support agent whose worker is killed, judged by the outside world's own log."""
