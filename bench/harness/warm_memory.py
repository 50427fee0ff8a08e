"""warm-memory: resident memory of the process that `sshoal up` leaves, for each simulated host that is idle: logged in to, or
lazy."""

import json
import tempfile

from . import clients, hosts
from .measure import Failed, keepable, run, run_checked

# What is kept: a name, and the flags of `sshoal up`.
WAYS = {"up": [], "lazy": ["--lazy"]}


def measure(options, record, report):
    count = keepable(options.open_connections)
    rows = []
    with hosts.simulated(count, options.server_cores) as shoal:
        # One host tells what the process takes by itself.
        alone = shoal.first(1)
        for name, flags in WAYS.items():
            base = weigh(alone, name, flags, record, options)
            sample = weigh(shoal, name, flags, record, options)
            a_host = (sample["rss_kib"] - base["rss_kib"]) / max(1, count - 1)
            report(f"warm-memory: {name}: {a_host:.1f} KiB a host, {sample['rss_kib'] / 1024:.0f} MiB of {count}")
            rows.append({"client": name, "round": 0, "kib_a_host": a_host, "alone": base, **sample})
    record.experiment("warm-memory", {"hosts": count, "servers": "simulated"}, rows)


def weigh(shoal, name, flags, record, options):
    """Keeps the hosts, asks how much that takes, and lets them go."""
    program = clients.sshoal_program()[0]
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-run-") as folder:
        variables = {"XDG_RUNTIME_DIR": folder}
        argv = [program, "up", "-F", str(shoal.ssh_config), "-f", str(shoal.file), "-l", shoal.user, "-i", str(shoal.identity), *flags]
        record.command("warm-memory", name, argv, variables)
        begun = run_checked(argv, variables, options.client_cores)
        try:
            status = json.loads(run_checked([program, "status", "--json"], variables).stdout)
        finally:
            run([program, "down"], variables)
    states = {host["state"] for host in status["hosts"]}
    if states != {name} or len(status["hosts"]) != len(shoal):
        raise Failed(f"{len(status['hosts'])} hosts are {states}, not {len(shoal)} {name}")
    return {"rss_kib": status["memory_octets"] / 1024, "wall_s": begun.wall_s}
