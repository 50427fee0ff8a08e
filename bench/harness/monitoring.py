"""The monitoring server of the blog post that this comes from: 14,250 checks by popen from 8 threads of a server that uses
memory, before and after: under libsshoal_preload, and built again with popen_noshell's functions."""

import json
import subprocess
import time
from pathlib import Path

from .install import BUILT, HOLD_MS
from .measure import Failed, environment, run_checked
from .preload import LIBRARY

MONITOR, CHECK, HELD_CHECK = BUILT / "monitor", BUILT / "check", BUILT / "held_check"
THREADS = 8
# How the server starts its checks: a name, monitor's own word for it, and what is put before libc.
WAYS = {
    "popen of libc": ("popen", {}),
    "libsshoal_preload": ("popen", {"LD_PRELOAD": str(LIBRARY)}),
    "popen_noshell of sshoal": ("noshell", {}),
}
# Between two looks at the memory of what was started, in seconds.
LOOK_EVERY = 0.002


def measure(options, record, report):
    rows = []
    names = list(WAYS)
    for number in range(options.monitor_rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            argv = command(options, name, options.checks, CHECK)
            record.command("monitoring", name, argv, WAYS[name][1])
            told = json.loads(run_checked(argv, WAYS[name][1]).stdout)
            cpu = told["own_cpu_s"] + told["started_cpu_s"]
            held = memory(command(options, name, options.held_checks, HELD_CHECK), WAYS[name][1])
            rows.append({"client": name, "round": number, "cpu_s": cpu, **told, **held})
            report(f"monitoring: {name}: {cpu:.2f} s of CPU, {told['checks_a_second']:.0f} checks a second, {held['started_rss_kib']} KiB in {held['started_at_a_time']} that were started")
    settings = {"checks": options.checks, "threads": THREADS, "server_mib": options.monitor_mebibytes, "rounds": options.monitor_rounds, "held_ms": HOLD_MS, "held_checks": options.held_checks}
    record.experiment("monitoring", settings, rows)


def command(options, name, checks, program):
    check = f"{program} -H 192.0.2.17 -w 100.0,20% -c 500.0,60% -p 5"
    return [str(MONITOR), str(checks), str(THREADS), str(options.monitor_mebibytes), WAYS[name][0], check]


def memory(argv, variables):
    """A run of its own, since looking costs time, of checks that take some, since what ends at once is gone before anybody looks:
    the most that shells and checks together had resident at one look, and the most of them that there were. A child that still
    borrows the server's memory has none of its own."""
    server = subprocess.Popen(argv, env=environment("/nonexistent", variables), stdout=subprocess.DEVNULL)
    most, at_a_time = 0, 0
    while server.poll() is None:
        sizes = resident_of_children(server.pid)
        most, at_a_time = max(most, sum(sizes)), max(at_a_time, len(sizes))
        time.sleep(LOOK_EVERY)
    if server.returncode != 0:
        raise Failed(f"status {server.returncode}: {argv}")
    return {"started_rss_kib": most, "started_at_a_time": at_a_time}


def resident_of_children(server):
    """Resident KiB of each descendant that runs a program of its own: all of its pages, as smaps_rollup counts them. VmRSS is
    counted a core at a time, and may say nothing of a program of some pages."""
    sizes, waiting = [], [str(server)]
    while waiting:
        pid = waiting.pop()
        for task in listed(Path(f"/proc/{pid}/task")):
            waiting += text(task / "children").split()
        if pid != str(server):
            name, pages = (text(Path(f"/proc/{pid}/{file}")) for file in ("comm", "smaps_rollup"))
            if name.strip() != MONITOR.name:
                fields = dict(line.split(":", 1) for line in pages.splitlines()[1:])
                sizes.append(int(fields.get("Rss", "0 kB").split()[0]))
    return [size for size in sizes if size]


def listed(folder):
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def text(path):
    try:
        return path.read_text()
    except OSError:
        return ""
