"""T17: what the desktop feels. A process that wants to wake every millisecond notes how late it is, with the machine
idle and while a client works through 1,400 hosts at full tilt. Both share a core; the simulated hosts have another, so
that what is measured is the client."""

import json
import subprocess
import sys

from . import clients, hosts
from .install import REPO
from .measure import Failed, Running
from .rounds import interleaved

COMMAND = "true"
LATENESS = REPO / "bench/harness/lateness.py"


def measure(options, record, report):
    fans = [clients.xargs_ssh(clients.CURVE25519), clients.pssh(clients.CURVE25519), clients.russh(), clients.sshoal()]
    fans = options.chosen(fans)
    idle_rows = []
    with hosts.simulated(options.desktop_hosts, options.server_cores) as shoal:

        def one(client, number):
            idle_rows.append(lateness_during(options, None))
            argv, environment = client.argv(shoal, len(shoal), COMMAND), client.environment(shoal)
            record.command("T17", client.label, argv, environment)
            before = shoal.logins()
            row = lateness_during(options, Running(argv, environment, options.client_cores))
            shoal.expect_logins(before + len(shoal), client)
            ratio = row["p99_us"] / idle_rows[-1]["p99_us"]
            report(f"T17: {client.label}: p99 {row['p99_us']:.0f} us late, {ratio:.2f} x idle")
            return {"idle_p99_us": idle_rows[-1]["p99_us"], **row}

        rows = []
        for client in fans:
            try:
                rows += interleaved([client], options.desktop_rounds, one)
            except Failed as error:
                report(f"NOT MEASURED: T17 {client.label}: {error}")
    settings = {"hosts": options.desktop_hosts, "window": options.desktop_hosts, "command": COMMAND, "servers": "simulated"}
    record.experiment("T17", settings, rows)


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
