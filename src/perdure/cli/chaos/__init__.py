"""`perdure chaos`: an agent run twice, once undisturbed and once under kills, and every promise judged."""
