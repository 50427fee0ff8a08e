"""The fan-out that one writes with parallel-ssh, on libssh2. It reads no known_hosts: host keys go unchecked. A peer
for sshoal's benchmarks."""

import argparse
import sys

from pssh.clients import ParallelSSHClient


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--port", type=int, default=22)
    parser.add_argument("--user", required=True)
    parser.add_argument("--identity", required=True)
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("command")
    args = parser.parse_args()

    with open(args.hosts, encoding="ascii") as file:
        hosts = file.read().split()
    client = ParallelSSHClient(
        hosts,
        user=args.user,
        port=args.port,
        pkey=args.identity,
        pool_size=args.window,
        allow_agent=False,
        identity_auth=False,
        num_retries=1,
        timeout=60,
    )
    good = 0
    for output in client.run_command(args.command, stop_on_errors=False):
        if output.exception is not None:
            print(f"{output.host}: {output.exception!r}", file=sys.stderr)
            continue
        for line in output.stdout:
            print(f"{output.host}: {line}")
        good += output.exit_code == 0
    bad = len(hosts) - good
    print(f"{good} ok, {bad} failed", file=sys.stderr)
    sys.exit(1 if bad or not hosts else 0)


main()
