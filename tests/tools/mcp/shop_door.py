"""The shop's server as it is started: it notes that it was, and ends at once where `FOLDER/closed` exists.

python shop_door.py FOLDER
"""

import json
import runpy
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with (folder / "starts").open("a") as file:
        file.write(json.dumps({"at_s": time.time()}) + "\n")
    if (folder / "closed").exists():
        sys.exit("the shop is closed")
    runpy.run_path(str(Path(__file__).with_name("shop_server.py")), run_name="__main__")
