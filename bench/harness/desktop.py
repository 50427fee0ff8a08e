"""T17: what the desktop feels. A process that wants to wake every millisecond notes how late it is, with the machine
idle and while a client works through 1,400 hosts at full tilt. Both share a core; the simulated hosts have another, and so
has this harness, so that what is measured is the client.

A run lasts half a second, in which five wake-ups decide the p99, and a virtual machine has hiccups of its own, up to 90 ms long:
the figure is the median of the p99s of 25 rounds, each beside an idle time of its own. What else runs on the machine is kept
off the client's core, in the idle times as well (background.py)."""

import json
import os
import subprocess
import sys
from collections import Counter
from statistics import median

from . import background, clients, hosts
from .install import REPO
from .measure import Failed, Running
from .rounds import interleaved

COMMAND = "true"
LATENESS = REPO / "bench/harness/lateness.py"


def measure(options, record, report):
    # Those that start an ssh for each host with the same key exchange: what its first choice costs is not the question.
    fans = [make(clients.CURVE25519) for make in (clients.xargs_ssh, clients.pssh, clients.sshoal_openssh)]
    fans = options.chosen([*fans, clients.russh(), clients.sshoal()])
    # A client's process is this one's copy until it is itself: that must not happen on the client's core.
    os.sched_setaffinity(0, options.server_cores)
    with background.elsewhere(options.server_cores), hosts.simulated(options.desktop_hosts, options.server_cores) as shoal:

        def one(client, number):
            idle = lateness_during(options, None)
            argv, environment = client.argv(shoal, len(shoal), COMMAND), client.environment(shoal)
            record.command("T17", client.label, argv, environment)
            before = shoal.logins()
            row = lateness_during(options, Running(argv, environment, options.client_cores))
            shoal.expect_logins(before + len(shoal), client)
            return {"idle": idle, **row}

        rows = []
        for client in fans:
            try:
                rounds = interleaved([client], options.desktop_rounds, one)
            except Failed as error:
                report(f"NOT MEASURED: T17 {client.label}: {error}")
                continue
            idle = median(percentile([row["idle"]], 99) for row in rounds)
            busy = median(percentile([row], 99) for row in rounds)
            report(f"T17: {client.label}: p99 {busy} us late, idle {idle} us: {busy / idle:.2f} x")
            rows += rounds
    os.sched_setaffinity(0, range(os.cpu_count()))
    settings = {"hosts": options.desktop_hosts, "window": options.desktop_hosts, "command": COMMAND, "servers": "simulated", "background": "kept off the client's core"}
    record.experiment("T17", settings, rows)


def percentile(measured, percent):
    """The lateness, in us, that so many percent of all wake-ups do not exceed."""
    steps = Counter()
    for one in measured:
        steps.update({int(us): count for us, count in one["wakeups_by_us"].items()})
    left = steps.total() * percent // 100
    for us in sorted(steps):
        left -= steps[us]
        if left < 0:
            return us
    raise ValueError("no wake-ups")


def lateness_during(options, running):
    """How late the timer is until the client ends, or for the idle time if there is none."""
    seconds = "60" if running else str(options.idle_seconds)
    timer = subprocess.Popen(
        [sys.executable, str(LATENESS), seconds, ",".join(map(str, options.client_cores))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if running:
        sample = running.end()
        if sample.status != 0:
            timer.kill()
            timer.wait()
            raise Failed(f"status {sample.status}: {sample.stderr[-1000:]}")
        timer.stdin.close()
        timer.stdin = None
        answer, _ = timer.communicate(timeout=90)
        return {**json.loads(answer), **sample.record()}
    answer = timer.stdout.read()
    timer.stdin.close()
    timer.wait()
    return json.loads(answer)
