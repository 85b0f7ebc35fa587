"""Who else could read or change a file: what must hold before one is run or written to.

Root is trusted with everything, since it could read and change everything anyway.
"""

import os
import stat
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def distrust(path: Path, uid: int, others_write: int = OTHERS_WRITE) -> str | None:
    """Return why nothing at `path` may be relied on by user `uid`, with the fix, or None.

    Args:
        path: A file or folder that exists; symbolic links are followed.
        uid: The user who relies on it.
        others_write: The mode bits that must not be set.

    Raises:
        OSError: It cannot be looked at.
    """
    info = path.stat()
    if info.st_uid not in {uid, 0}:
        return f"{path} belongs to another user (uid {info.st_uid}); use one that is yours"
    if info.st_mode & others_write:
        mode = stat.S_IMODE(info.st_mode)
        return f"{path} can be written by others (mode {mode:04o}); run `chmod go-w {path}`, or use another"
    return None


def private_folder(folder: Path, uid: int) -> None:
    """Make `folder` with mode 0700, with its parents where they are missing; an existing one is left as it is.

    Raises:
        OSError: It cannot be made.
        PermissionError: It exists, and another user owns it or can write to it.
    """
    missing: list[Path] = []
    level = folder
    while not level.exists():
        missing.append(level)
        level = level.parent
    for level in reversed(missing):
        level.mkdir(mode=FOLDER_MODE, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    problem = distrust(folder, uid)
    if problem:
        raise PermissionError(problem)


def tighten(path: Path, uid: int) -> None:
    """Take every right of group and others from the file at `path`, if there is one.

    The mode is changed on the opened file, never by name, so that nothing can be put in its place in between.

    Raises:
        OSError: It is no regular file (a symbolic link is none), or it belongs to another user.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise PermissionError(f"{path} is not a regular file; move it away, or use another path")
        if info.st_uid not in {uid, 0}:
            raise PermissionError(f"{path} belongs to another user (uid {info.st_uid}); use another path")
        if stat.S_IMODE(info.st_mode) & 0o077:
            os.fchmod(fd, FILE_MODE)
    finally:
        os.close(fd)
