"""The monitoring server of the blog post that this comes from: 14,250 checks by popen from 8 threads of a server that uses
memory, before and after: under libsshoal_preload, and built again with popen_noshell's functions."""

import json
import subprocess
import time
from pathlib import Path

from .install import BUILT
from .measure import environment, run_checked
from .preload import LIBRARY

MONITOR, CHECK = BUILT / "monitor", BUILT / "check"
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
            argv = command(options, name)
            record.command("monitoring", name, argv, WAYS[name][1])
            told = json.loads(run_checked(argv, WAYS[name][1]).stdout)
            cpu = told["own_cpu_s"] + told["started_cpu_s"]
            rows.append({"client": name, "round": number, "cpu_s": cpu, **told, **memory(argv, WAYS[name][1])})
            report(f"monitoring: {name}: {cpu:.2f} s of CPU, {told['checks_a_second']:.0f} checks a second, {rows[-1]['started_rss_kib']} KiB in what was started")
    settings = {"checks": options.checks, "threads": THREADS, "server_mib": options.monitor_mebibytes, "rounds": options.monitor_rounds}
    record.experiment("monitoring", settings, rows)


def command(options, name):
    check = f"{CHECK} -H 192.0.2.17 -w 100.0,20% -c 500.0,60% -p 5"
    return [str(MONITOR), str(options.checks), str(THREADS), str(options.monitor_mebibytes), WAYS[name][0], check]


def memory(argv, variables):
    """A run of its own, since looking costs time: the most that shells and checks together had resident at one look, and
    how many of them there were. Children that still borrow the server's memory are not theirs."""
    server = subprocess.Popen(argv, env=environment("/nonexistent", variables), stdout=subprocess.DEVNULL)
    most, at_a_time = 0, 0
    while server.poll() is None:
        sizes = resident_of_children(server.pid)
        most, at_a_time = max(most, sum(sizes)), max(at_a_time, len(sizes))
        time.sleep(LOOK_EVERY)
    return {"started_rss_kib": most, "started_at_a_time": at_a_time}


def resident_of_children(server):
    """VmRSS in KiB of each descendant that runs a program of its own."""
    sizes, waiting = [], [str(server)]
    while waiting:
        pid = waiting.pop()
        for task in listed(Path(f"/proc/{pid}/task")):
            waiting += text(task / "children").split()
        if pid != str(server):
            fields = dict(line.split(":", 1) for line in text(Path(f"/proc/{pid}/status")).splitlines() if ":" in line)
            if fields.get("Name", "").strip() != MONITOR.name:
                sizes.append(int(fields.get("VmRSS", "0 kB").split()[0]))
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
