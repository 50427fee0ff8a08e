"""T8, T9, T10: files to a server and from it, over loopback and over lines of many lengths, with and without losses.

Sources and targets are in memory (/dev/shm). What arrived is compared by its hash. Each line is one run of the test bed, in
which all clients take turns.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import copiers
from .hosts import TESTBED
from .install import REPO
from .measure import Failed
from .round_trips import PORT, make_server, with_plain_account

LOOPBACK = "127.77.0.1"
INNER = REPO / "bench/harness/bulk.py"
# Longest that one line may take, in seconds.
PATIENCE = 4 * 3600


def loopback(options, record, report):
    """T8: how much CPU a gigabyte costs, and how much goes over one machine's loopback."""
    with served(options) as folder:
        names = [name for name in chosen(options, "put") if name != "iperf3"]
        rows = on_loopback(folder, options.rounds, "put,get", names, report)
    keep(record, "T8", {"octets": options.bulk_octets, "round_trip_ms": 0}, rows, report)


def without_sftp(options, record, report):
    """no-sftp: the same files by SFTP and where sshd has none, so that its shell stands in (ADR 0026)."""
    tree = (options.small_files // 10, 4096)
    rows = []
    for has_sftp in (True, False):
        with served(options, tree, has_sftp) as folder:
            names = [name for name in chosen(options, "put") if name in ("sshoal", "ssh cat")]
            found = on_loopback(folder, options.rounds, "put,get", names, report)
            found += on_loopback(folder, options.rounds, "tree", ["sshoal", "sshoal sftp", "tar over ssh"], report)
            rows += [{"server": "SFTP" if has_sftp else "no SFTP", **row} for row in found]
    settings = {"octets": options.bulk_octets, "files": tree[0], "octets_a_file": tree[1], "round_trip_ms": 0}
    keep(record, "no-sftp", settings, rows, report)


def on_loopback(folder, rounds, ways, names, report):
    account = Path(tempfile.mkdtemp(prefix="account-", dir=folder))
    server = subprocess.Popen(with_plain_account(account, sshd(folder, LOOPBACK)), stderr=subprocess.DEVNULL)
    try:
        wait_for(LOOPBACK)
        words = inner(folder, LOOPBACK, rounds, ways, names)
        return read(subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE), report)
    finally:
        server.terminate()
        server.wait()


def lines(options, record, report):
    """T9: one file over lines of many lengths; then with losses. T9-large: a file of more than a GiB. T9-rate: lines of a rate."""
    rows = []
    name = "T9-rate" if options.rate else "T9-large" if options.bulk_octets > 1 << 30 else "T9"
    settings = {"octets": options.bulk_octets, "servers": "sshd"} | ({"rate": options.rate} if options.rate else {})
    with served(options) as folder:
        for round_trip_ms, loss in options.lines:
            line = {"round_trip_ms": round_trip_ms, "loss": loss}
            found = on_line(folder, line, options.bulk_rounds, "put,get", chosen(options, "put"), report, options.rate)
            rows += [{**line, **row} for row in found]
            keep(record, name, settings, rows, report)


def small_files(options, record, report):
    """T10: many small files."""
    trees(options, record, report, "T10", (options.small_files, 4096))


def larger_files(options, record, report):
    """T10-100K: fewer files, too large for a batch's archive."""
    trees(options, record, report, "T10-100K", (options.small_files // 10, 100 * 1024))


def trees(options, record, report, name, tree):
    rows = []
    with served(options, tree) as folder:
        for round_trip_ms in options.small_file_lines:
            line = {"round_trip_ms": round_trip_ms, "loss": 0}
            found = on_line(folder, line, options.rounds, "tree", chosen(options, "tree"), report)
            rows += [{**line, **row} for row in found]
            keep(record, name, {"files": tree[0], "octets_a_file": tree[1]}, rows, report)


def keep(record, name, settings, rows, report):
    for row in rows:
        if argv := row.pop("argv", None):
            record.command(name, f"{row['client']} {row['way']}", argv, {})
            where = row.get("server", f"{row.get('round_trip_ms', 0)} ms")
            report(f"{name}: {where}: {row['client']} {row['way']}: {row['mb_a_second']:.0f} MB/s")
    record.experiment(name, settings, rows)


def chosen(options, way):
    wanted = {name.strip().lower() for name in options.clients.split(",")} if options.clients else None
    return [name for name in copiers.names(way) if wanted is None or name.lower() in wanted]


def inner(folder, address, rounds, ways, names):
    return [sys.executable, str(INNER), str(folder), address, str(rounds), ways, ",".join(names)]


def on_line(folder, line, rounds, ways, names, report, rate=None):
    daemon = sshd(folder, "$SSHOAL_WAN_SERVER")
    # In a shell of its own, so that it is no child of sshd's, whose sessions are waited for; it ends with sshd's process group.
    server = f"(iperf3 -s >/dev/null 2>&1 &); exec {' '.join(daemon)} >/dev/null 2>&1"
    words = [str(TESTBED), "wan", "--quiet", "--delay-ms", str(line["round_trip_ms"] / 2), "--loss", str(line["loss"])]
    words += ["--rate", rate] if rate else []
    client = inner(folder, "line", rounds, ways, names)
    account = Path(tempfile.mkdtemp(prefix="account-", dir=folder))
    whole = with_plain_account(account, [*words, "--server-cmd", server, "--wait-port", str(PORT), "--", *client])
    return read(subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE), report)


def read(ended, report):
    for said in ended.stderr.splitlines():
        report(said)
    if ended.returncode != 0:
        raise Failed(f"status {ended.returncode}: {ended.stderr[-2000:]}")
    return json.loads(ended.stdout)


def sshd(folder, address):
    return ["/usr/sbin/sshd", "-D", "-f", f"{folder}/sshd_config", "-o", f"ListenAddress={address}:{PORT}"]


def wait_for(address):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as attempt:
            if attempt.connect_ex((address, PORT)) == 0:
                return
        time.sleep(0.05)
    raise Failed(f"sshd does not listen on {address}")


@contextlib.contextmanager
def served(options, tree=(0, 0), has_sftp=True):
    """A folder in memory with keys, a server's configuration, a file and a tree of so many files of so many octets."""
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-", dir="/dev/shm") as folder:
        folder = Path(folder)
        folder.chmod(0o755)
        make_server(folder)
        with open(folder / "sshd_config", "a") as config:
            config.write(f"PidFile {folder}/sshd.pid\n")
            if has_sftp:
                config.write("Subsystem sftp /usr/lib/openssh/sftp-server\n")
        fill(folder / "file", options.bulk_octets)
        (folder / "tree").mkdir()
        for number in range(tree[0]):
            fill(folder / "tree" / str(number), tree[1])
        yield folder


def fill(path, octets):
    with open(path, "wb") as file:
        while octets > 0:
            octets -= file.write(os.urandom(min(octets, 1 << 24)))
