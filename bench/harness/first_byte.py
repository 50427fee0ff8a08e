"""Runs one client on the host behind the delay line and prints, as JSON, when its first byte of output came.

Started by round_trips.py inside the client's network namespace.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import clients, round_trips  # noqa: E402
from harness.measure import environment  # noqa: E402

# Seconds, several round trips.
LINGER = 0.5


def main():
    folder, name, kex, command = sys.argv[1:]
    hosts = round_trips.host_set(Path(folder), os.environ["SSHOAL_WAN_SERVER"])
    client = next(one for one in clients.single() if (one.name, one.kex) == (name, kex))
    argv = client.argv(hosts, 1, command)
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        with subprocess.Popen(
            argv,
            env=environment(home, client.environment(hosts)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as process:
            first = process.stdout.read(1)
            first_byte = time.perf_counter() - started
            rest = process.stdout.read()
            status = process.wait()
        wall = time.perf_counter() - started
    # The connection's last packets cross the line before it is taken down.
    time.sleep(LINGER)
    print(json.dumps({"first_byte_s": first_byte, "wall_s": wall, "argv": argv}))
    sys.exit(status or (first + rest).strip().split(b" ")[-1] != b"first")


if __name__ == "__main__":
    main()
