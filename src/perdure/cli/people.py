"""Who sits at this command line, as it is recorded with what they approve."""

import getpass


def user_here() -> str:
    """Return the user's name; empty where the system does not know one (a container without a user of its own)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
