#!/usr/bin/env python3
"""Copies the same files by several clients in turn, on the client's side of a line or on loopback; prints a JSON array of rows.

    bulk.py FOLDER ADDRESS ROUNDS WAY,WAY NAME,NAME

ADDRESS is the server's, or the word line for that of a delay line. FOLDER is what transfers.served() has made; ways are put, get and tree.
"""

import hashlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import copiers  # noqa: E402
from harness.measure import Failed, run_checked  # noqa: E402
from harness.rounds import interleaved  # noqa: E402
from harness.round_trips import host_set  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
# Longest that the server may take to end its sessions, in seconds.
PATIENCE = 60
# Clients that take longer, in seconds, are measured in so many rounds at most: what they take then is their round trips,
# which do not vary.
LONG = ((600, 1), (30, 2))


def digest(path):
    """Of a file; of a folder: of all names and contents in it."""
    if path.is_file():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for entry in sorted(entry for entry in path.rglob("*") if entry.is_file()):
        whole.update(f"{entry.relative_to(path)} {digest(entry)}\n".encode())
    return whole.hexdigest()


def server_cpu_s(server):
    """CPU of all sessions that have ended, with all that they waited for: what sshd has reaped."""
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{server}/task/{server}/children").read_text().strip() and time.monotonic() < deadline:
        time.sleep(0.01)
    fields = Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def empty(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o777)


def have_memory(folder, size):
    """Memory for a file of this size is used and given back, so that the next who needs it gets it at once: a virtual machine's
    host may have taken what nobody had used for a while, and takes its time to give it again."""
    ballast = folder / "ballast"
    with open(ballast, "wb") as file:
        for _ in range(size * 9 // 8 >> 20):
            file.write(bytes(1 << 20))
    ballast.unlink()


def octets(path):
    files = [path] if path.is_file() else [entry for entry in path.rglob("*") if entry.is_file()]
    return sum(file.stat().st_size for file in files)


def in_turn(clients, rounds, one):
    """A round to see who is able, then the others. A client that fails does not take the others' figures with it."""
    rows, able, times = [], [], {}
    for client in clients:
        try:
            found = interleaved([client], 1, one)
        except Failed as error:
            print(f"NOT MEASURED: {client.name}: {error}", file=sys.stderr)
            continue
        rows += found
        able.append(client)
        times[client.name] = found[0]["wall_s"]
    most = {name: min([rounds] + [most for least, most in LONG if taken > least]) for name, taken in times.items()}
    for number in range(1, rounds):
        # Turned as interleaved() would.
        turn = number % len(able) if able else 0
        order = [client for client in able[turn:] + able[:turn] if number < most[client.name]]
        rows += [{**row, "round": number} for row in interleaved(order, 1, one)]
    return rows


def main():
    folder, address, rounds, ways, names = sys.argv[1:]
    folder = Path(folder)
    host = host_set(folder, os.environ["SSHOAL_WAN_SERVER"] if address == "line" else address)
    target, server = folder / "target", int((folder / "sshd.pid").read_text())
    rows = []
    for way in ways.split(","):
        source = folder / ("tree" if way == "tree" else "file")
        right, size = digest(source), octets(source)

        def one(client, _, way=way, source=source, right=right, size=size):
            empty(target)
            have_memory(folder, size)
            before = server_cpu_s(server)
            sample = run_checked(client.argv(way, host, source, target), client.environment(host))
            server_s = server_cpu_s(server) - before
            if client.arrives and digest(client.arrived(way, host, source, target)) != right:
                raise Failed(f"{client.name}: what arrived is not what was sent")
            rate = size / sample.wall_s if client.arrives else copiers.told_by_iperf3(sample.stdout, size)
            figures = {"way": way, "octets": size, "mb_a_second": rate / 1e6}
            figures |= {"client_cpu_s_a_gb": sample.cpu_s / size * 1e9, "server_cpu_s_a_gb": server_s / size * 1e9}
            return {**figures, "argv": client.argv(way, host, source, target), **sample.record()}

        every = copiers.named(names.split(","), way)
        for clients in ([client for client in every if not client.is_last], [client for client in every if client.is_last]):
            rows += in_turn(clients, int(rounds), one)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
