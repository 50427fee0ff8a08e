"""The fan-out that one writes with asyncssh: a task a host behind a semaphore, known_hosts read once, host keys
checked. A peer for sshoal's benchmarks."""

import argparse
import asyncio
import sys

import asyncssh


async def run(args, host, known_hosts, identity, slots):
    """Returns the lines of the answer, or raises what went wrong."""
    async with slots:
        async with asyncssh.connect(
            host,
            args.port,
            username=args.user,
            client_keys=[identity],
            known_hosts=known_hosts,
            agent_path=None,
            config=None,
            connect_timeout=60,
        ) as connection:
            result = await connection.run(args.command, check=True)
            return result.stdout.splitlines()


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--port", type=int, default=22)
    parser.add_argument("--user", required=True)
    parser.add_argument("--identity", required=True)
    parser.add_argument("--known-hosts", required=True)
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("command")
    args = parser.parse_args()

    with open(args.hosts, encoding="ascii") as file:
        hosts = file.read().split()
    known_hosts = asyncssh.read_known_hosts(args.known_hosts)
    identity = asyncssh.read_private_key(args.identity)
    slots = asyncio.Semaphore(args.window)
    results = await asyncio.gather(
        *(run(args, host, known_hosts, identity, slots) for host in hosts), return_exceptions=True
    )
    bad = 0
    for host, result in zip(hosts, results):
        if isinstance(result, BaseException):
            bad += 1
            print(f"{host}: {result!r}", file=sys.stderr)
        else:
            for line in result:
                print(f"{host}: {line}")
    print(f"{len(hosts) - bad} ok, {bad} failed", file=sys.stderr)
    sys.exit(1 if bad or not hosts else 0)


asyncio.run(main())
