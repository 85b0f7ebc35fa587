"""Worker processes as children: started, known to be ready, killed or ended, always reaped.

A child is `perdure worker AGENT` with a pipe as its standard input: when this process dies, however it dies, the pipe
closes and the child drains and ends.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from perdure.core.errors import ConfigurationError, Unavailable

EXIT_WRONG = 2
"""How a worker ends that refuses its agent or its settings; its last line says why."""

WORDS_BYTES_MAX = 2000

READY_WITHIN_S = 60.0
"""A cold start imports for about two seconds; on a loaded machine many at once take far longer."""


class WorkerProcess:
    """One child. `pid` is its process id."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; negative for a signal, None while it runs."""
        return self._process.returncode

    @classmethod
    async def start(
        cls,
        reference: str,
        home: Path,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> Self:
        """Start a worker for `module:agent` over the data folder `home` and wait until it takes tasks.

        `folder` is where the module is found (default: here). What the child prints goes to `log`, or to this
        process's standard error.

        Raises:
            ConfigurationError: The child refuses the agent or a setting; names it.
            Unavailable: It ended before it was ready; the text has its last words.
        """
        command = [sys.executable, "-m", "perdure.cli.main", "worker", reference, "--json", "--until-stdin-closes"]
        errors = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        logged_bytes = 0 if errors is None else os.fstat(errors).st_size
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env={**os.environ, **(environment or {}), "PERDURE_HOME": str(home)},
                start_new_session=True,  # a terminal's Ctrl-C is the parent's to handle, and to pass on
            )
        finally:
            if errors is not None:
                os.close(errors)
        worker = cls(process)
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                await worker._until_ready(reference, log, logged_bytes)
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def _until_ready(self, reference: str, log: Path | None, logged_bytes: int) -> None:
        stdout = self._process.stdout
        if stdout is None:
            raise Unavailable("the worker has no standard output")
        async for line in stdout:
            if _is_ready(line):
                return
        code = await self._process.wait()
        words = "" if log is None else await asyncio.to_thread(_last_words, log, logged_bytes)
        if code == EXIT_WRONG and words:
            field, _, problem = words.splitlines()[-1].removeprefix("error: ").partition(": ")
            raise ConfigurationError(field, problem or "the worker refuses it")
        raise Unavailable(
            f"the worker for {reference} ended with {code} before it was ready{': ' if words else ''}{words}"
        )

    async def kill(self) -> int:
        """SIGKILL the child and reap it; return how it ended."""
        if self._process.returncode is None:
            self._process.kill()
        return await self.wait()

    async def end(self) -> int:
        """Ask the child to end (SIGTERM: it drains) and reap it; return how it ended."""
        if self._process.returncode is None:
            self._process.terminate()
        return await self.wait()

    async def wait(self) -> int:
        """Wait for the child's death and reap it; return how it ended."""
        code = await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return code


def _is_ready(line: bytes) -> bool:
    try:
        return bool(json.loads(line).get("event") == "ready")
    except (ValueError, AttributeError):
        return False


def _last_words(log: Path, logged_bytes: int) -> str:
    """Return the end of what was logged past the first `logged_bytes`."""
    with log.open("rb") as file:
        file.seek(max(logged_bytes, file.seek(0, os.SEEK_END) - WORDS_BYTES_MAX))
        return file.read(WORDS_BYTES_MAX).decode(errors="replace").strip()
