#!/usr/bin/env python3
"""Measures sshoal beside its peers and writes the raw data to bench/results/DATE-NAME/.

What is measured and how: bench/README.md. The table in README.md comes from the raw data by bench/table.py.
"""

import argparse
import os
import sys

import plots
from harness import (
    bulk_lines,
    bulk_loopback,
    ciphers,
    descriptors,
    desktop,
    fan_out,
    install,
    known_hosts_fleet,
    known_hosts_lookup,
    known_hosts_session,
    larger_files,
    monitoring,
    mpssh_fleet,
    no_sftp,
    open_connections,
    preload,
    process_starts,
    round_trips,
    scale,
    single_login,
    small_files,
    trace_overhead,
    warm_memory,
    warm_runs,
)
from harness.measure import raise_descriptor_limit
from harness.record import Record

EXPERIMENTS = {
    "T1": fan_out,
    "T2": single_login,
    "T3": round_trips,
    "T4": open_connections,
    "T5": scale,
    "T6": warm_runs,
    "T7": known_hosts_session,
    "T8": bulk_loopback,
    "T9": bulk_lines,
    "T10": small_files,
    "T10-100K": larger_files,
    "no-sftp": no_sftp,
    "T12": process_starts,
    "preload": preload,
    "monitoring": monitoring,
    "T16": known_hosts_lookup,
    "T17": desktop,
    "known-hosts-fleet": known_hosts_fleet,
    "mpssh": mpssh_fleet,
    "descriptors": descriptors,
    "ciphers": ciphers,
    "trace-overhead": trace_overhead,
    "warm-memory": warm_memory,
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="run", help="of the results folder, after the date (default: run)")
    parser.add_argument("--only", default=",".join(EXPERIMENTS), metavar="T1,T2", help="experiments (default: all)")
    parser.add_argument("--clients", metavar="NAME,NAME", help="only these clients (default: all)")
    parser.add_argument("--quick", action="store_true", help="few rounds and few hosts: to see that all works")
    parser.add_argument("--rounds", type=int, help="rounds, where an experiment has few (default: its own)")
    parser.add_argument("--real-hosts", type=int, default=200, help="sshd instances of T1 and T6 (default: 200)")
    parser.add_argument("--window", type=int, default=50, help="hosts at a time in T1, and with the real hosts of T6 (default: 50)")
    parser.add_argument("--hosts-folder", metavar="DIR", help="use the running hosts that DIR describes for T1, T2 and T6")
    parser.add_argument("--open-connections", type=int, help="simulated hosts of T4 and T6 (default: 10000)")
    parser.add_argument("--hold-seconds", type=int, help="how long T4's commands sleep (default: 90)")
    parser.add_argument("--lines", metavar="MS[:LOSS],...", help="lines of T9 and T10, as 100 or 100:1e-3 (default: all)")
    parser.add_argument("--rate", help="of T9's lines, as 1gbit (default: as fast as the machine can)")
    parser.add_argument("--mebibytes", type=int, help="size of the file of T8 and T9 (default: 1024), and of what ciphers moves (default: 512)")
    parser.add_argument("--no-build", action="store_true", help="measure what is built and installed already")
    return parser.parse_args()


class Options(argparse.Namespace):
    """The arguments, and what follows from them."""

    def __init__(self, arguments):
        super().__init__(**vars(arguments))
        quick = arguments.quick
        rounds = lambda usual: arguments.rounds or (1 if quick else usual)  # noqa: E731
        self.rounds = rounds(5)
        self.single_rounds = 5 if quick else 40
        self.wan_rounds = 1 if quick else 3
        # A run lasts half a second: one hiccup of the machine is its p99.
        self.desktop_rounds = rounds(25)
        self.round_trip_ms = 100
        self.open_connections = arguments.open_connections or (500 if quick else 10_000)
        self.many_hosts = 1_000 if quick else 50_000
        self.hold_seconds = arguments.hold_seconds or (15 if quick else 90)
        self.scales = (100, 500) if quick else (100, 1_000, 10_000)
        self.scale_window = 100
        self.desktop_hosts = 100 if quick else 1_400
        self.fleet_window = 50 if quick else 999
        self.fleet_rounds = rounds(3)
        self.parent_mebibytes = (0, 256) if quick else (0, 20, 1024, 4096)
        # Many short turns: what disturbs one of them is then beside the median.
        self.spawn_rounds = 5 if quick else rounds(100)
        self.spawn_starts = 100
        self.preload_starts = 500 if quick else 10_000
        self.preload_rounds = rounds(3)
        self.checks = 500 if quick else 14_250
        self.held_checks = 100 if quick else 800
        self.monitor_rounds = rounds(5)
        self.monitor_mebibytes = 256
        self.cipher_rounds = 1 if quick else rounds(7)
        self.cipher_mebibytes = arguments.mebibytes or (16 if quick else 512)
        # What is looked for is a few per cent of a login.
        self.trace_rounds = 8 if quick else rounds(48)
        self.idle_seconds = 3
        self.bulk_octets = (arguments.mebibytes or (64 if quick else 1024)) << 20
        self.bulk_rounds = rounds(10)
        # Round trips in milliseconds, and the probability that a segment is lost.
        self.lines = [(round_trip, 0.0) for round_trip in ((0, 100) if quick else (0, 1, 10, 50, 100, 200))]
        self.lines += [(100, loss) for loss in ((1e-3,) if quick else (1e-4, 1e-3))]
        if arguments.lines:
            self.lines = [(float(line.partition(":")[0]), float(line.partition(":")[2] or 0)) for line in arguments.lines.split(",")]
        self.small_file_lines = sorted({round_trip for round_trip, _ in self.lines}) if arguments.lines else [0, 50]
        self.small_files = 500 if quick else 10_000
        # Where a benchmark needs the client alone on a core, it gets the first; the simulated hosts have the others.
        cores = sorted(os.sched_getaffinity(0))
        self.client_cores = cores[:1]
        self.server_cores = cores[1:] or cores

    def chosen(self, clients):
        """Those that --clients names, by their names as the table has them."""
        if not self.clients:
            return clients
        names = {name.strip().lower() for name in self.clients.split(",")}
        return [client for client in clients if client.name.lower() in names]


def main():
    options = Options(parse_arguments())
    report = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    raise_descriptor_limit()
    if not options.no_build:
        install.build_sshoal()
        install.install_peers()
    record = Record(options.name, sys.argv[1:])
    for name in options.only.split(","):
        EXPERIMENTS[name].measure(options, record, report)
    if not options.quick:
        plots.draw(record.folder, report)
    print(record.folder)


if __name__ == "__main__":
    main()
