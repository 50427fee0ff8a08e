"""T12: what it costs to start a program: by vfork, by ours, and by everything else there is, from parents of several
sizes. The program makes one system call, so that what is measured is the start. All of it happens on one core: which core
a child is put on, and what waking another one costs, is the scheduler's choice of the moment and nobody's merit."""

import json
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from . import background
from .install import BUILT
from .measure import Failed, run_checked

STARTS = BUILT / "starts"
TINY = BUILT / "tiny"

# As starts.c names them. The first is what the others are compared with.
WAYS = [
    "vfork",
    "sshoal",
    "posix_spawn",
    "fork",
    "system",
    "vfork unused pipe",
    "vfork pipe",
    "sshoal pipe",
    "posix_spawn pipe",
    "sshoal_popen",
    "popen_noshell of sshoal",
    "popen_noshell's way",
    "popen",
]
# System calls are the difference between so many starts more and so few.
FEW, MORE = 2, 10


def measure(options, record, report):
    names = {name.strip().lower() for name in (options.clients or ",".join(WAYS)).split(",")}
    ways = [way for way in WAYS if way.lower() in names]
    calls = {way: system_calls(way) for way in ways}
    rows = []
    for mebibytes in options.parent_mebibytes:
        if mebibytes * 2 > available_mebibytes():
            report(f"NOT MEASURED: T12 with {mebibytes} MiB: only {available_mebibytes()} MiB are free")
            continue
        cores = ",".join(map(str, options.client_cores))
        argv = ["taskset", "-c", cores, *command(mebibytes, options.spawn_rounds, options.spawn_starts, ways)]
        record.command("T12", f"{mebibytes} MiB", argv, {})
        with background.elsewhere(options.server_cores):
            sample = run_checked(argv, {})
        for row in map(json.loads, sample.stdout.splitlines()):
            rows.append({**row, "parent_mib": mebibytes, "system_calls": calls[row["client"]]})
        for way in ways:
            report(f"T12: {mebibytes} MiB, {way}: {typical(rows, way, mebibytes):.1f} us of CPU, {calls[way]} system calls")
    settings = {"rounds": options.spawn_rounds, "starts": options.spawn_starts, "program": "one system call", "cores": 1}
    record.experiment("T12", settings, rows)


def command(mebibytes, rounds, starts, ways):
    return [str(STARTS), str(TINY), str(mebibytes), str(rounds), str(starts), *ways]


def typical(rows, way, mebibytes):
    return median(row["cpu_us_a_start"] for row in rows if row["client"] == way and row["parent_mib"] == mebibytes)


def available_mebibytes():
    found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found.group(1)) // 1024


def system_calls(way):
    """Those of one start, by strace: the parent's, the child's and, where there is one, the shell's."""
    few, many = counted(way, FEW), counted(way, FEW + MORE)
    more = sum(many.values()) - sum(few.values())
    return more / MORE


def counted(way, starts):
    with tempfile.NamedTemporaryFile("r") as log:
        argv = ["strace", "-f", "-q", "-o", log.name, *command(0, 1, starts, [way])]
        ended = subprocess.run(argv, capture_output=True, text=True)
        if ended.returncode != 0:
            raise Failed(f"strace: {ended.stderr[-1000:]}")
        calls = (re.match(r"\d+\s+(\w+)\(", line) for line in log)
        return Counter(call.group(1) for call in calls if call)
