"""Run the A2A conformance kit against `perdure serve` (README.md beside this file).

    python -m tests.conformance.run KIT [--python PYTHON] [--off WHAT …] [-- options of the kit]

It serves the conformance agent with authentication on, a gateway before it that shows a key for the kit, and runs the
kit as it is. The kit's own reports are in its folder `reports`. Ends as the kit does.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from tests.a2a.house import free_port
from tests.conformance.gateway import Gateway

ROOT = Path(__file__).parents[2]
PERDURE = (sys.executable, "-m", "perdure.cli.main")
WAIT_S = 60.0


def main() -> int:
    """Return the kit's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", type=Path, help="a clone of the kit")
    parser.add_argument("--python", type=Path, help="the Python that has the kit installed; default KIT/.venv's")
    parser.add_argument("--off", action="append", default=[], help="what the server leaves out; may be repeated")
    parser.add_argument("options", nargs="*", help="options of the kit's run_tck.py, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "PERDURE_HOME": home,
            "PERDURE_AUTH": "keys",
            "PERDURE_PUSH_NETWORKS": "127.0.0.0/8,::1/128",  # the kit's receiver is on this machine
        }
        made = subprocess.run(
            [*PERDURE, "keys", "add", "kit"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        ports = [free_port() for _ in range(3)]
        off = [word for what in ["v0.3", *given.off] for word in ("--off", what)]
        serving = subprocess.Popen(
            [
                *PERDURE,
                "serve",
                "tests.conformance.agent:agent",
                *("--port", str(ports[0]), "--grpc-port", str(ports[1]), "--url", f"http://127.0.0.1:{ports[2]}"),
                *off,
            ],
            cwd=ROOT,
            env=environment,
        )
        try:
            return asyncio.run(_run(given, ports, made.stdout.strip()))
        finally:
            serving.terminate()
            serving.wait()


async def _run(given: argparse.Namespace, ports: list[int], key: str) -> int:
    gateway = Gateway(f"http://127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}", key)
    async with gateway.open(ports[2]) as server:
        standing = asyncio.create_task(server.serve())
        url = f"http://127.0.0.1:{ports[2]}"
        await _until_served(url)
        kit = await asyncio.create_subprocess_exec(
            given.python or given.kit / ".venv/bin/python",
            *("run_tck.py", "--sut-host", url, *given.options),
            cwd=given.kit,
        )
        status = await kit.wait()
        server.should_exit = True
        await standing
    return status


async def _until_served(url: str) -> None:
    async with asyncio.timeout(WAIT_S), httpx.AsyncClient() as client:
        while True:
            try:
                if (await client.get(f"{url}/.well-known/agent-card.json")).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
