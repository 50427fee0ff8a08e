"""T4: memory an open idle connection, and of a whole run over 10,000 simulated hosts that are all open at once."""

import time

from . import clients, hosts
from .measure import Failed, Running
from .rounds import interleaved

# Longest that it may take until all connections are open, in seconds.
PATIENCE = 300
# From the start of the last command to the weighing, for what the client still has to do, in seconds.
SETTLED = 2
# Between two looks at the hosts' counters, in seconds.
PAUSE = 0.1


def measure(options, record, report):
    fans = options.chosen([clients.parallel_ssh(), clients.go(), clients.russh(), clients.sshoal()])
    count = options.open_connections
    with hosts.simulated(count, options.server_cores) as shoal:
        # One connection tells what the program takes by itself.
        alone = shoal.first(1)
        rows = []
        for client in fans:

            def one(client, number):
                base = idle(client, alone, 5, record, options)
                all_open = idle(client, shoal, options.hold_seconds, record, options)
                a_connection = (all_open["idle_rss_kib"] - base["idle_rss_kib"]) / max(1, count - 1)
                report(f"T4: {client.label}: {a_connection:.1f} KiB a connection, peak {all_open['peak_rss_kib'] / 1024:.0f} MiB")
                return {"kib_a_connection": a_connection, "alone": base, **all_open}

            try:
                rows += interleaved([client], 1, one)
            except Failed as error:
                report(f"NOT MEASURED: T4 {client.label}: {error}")
    settings = {"hosts": count, "hold_seconds": options.hold_seconds, "servers": "simulated"}
    record.experiment("T4", settings, rows)


def idle(client, shoal, seconds, record, options):
    """Opens all connections at once, each with a command that does nothing for a while, and weighs the client then."""
    argv, environment = client.argv(shoal, len(shoal), f"sleep {seconds}"), client.environment(shoal)
    record.command("T4", client.label, argv, environment)
    execs_before = shoal.counters()["execs"]
    running = Running(argv, environment, options.client_cores)
    try:
        weight, most = weigh(running, shoal, execs_before)
    finally:
        sample = running.end()
    if sample.status != 0:
        raise Failed(f"status {sample.status}: {sample.stderr[-1000:]}")
    if weight is None:
        raise Failed(f"only {most} of {len(shoal)} connections were open at once: raise --hold-seconds")
    return {"idle_rss_kib": weight, "open_at_once": most, **sample.record()}


def weigh(running, shoal, execs_before):
    """The resident size while every host runs the command, or None if that never was; and the most open at once."""
    deadline = time.monotonic() + PATIENCE
    most = 0
    while time.monotonic() < deadline and not running.is_over():
        counters = shoal.counters()
        most = max(most, counters["open"])
        if counters["open"] == len(shoal) and counters["execs"] - execs_before == len(shoal):
            time.sleep(SETTLED)
            return resident_kib(running.pid), most
        time.sleep(PAUSE)
    return None, most


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise Failed("the kernel does not tell VmRSS")
