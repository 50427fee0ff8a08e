"""1,400 hosts at 999 at a time with a known_hosts of 2.3 MB, in the clear and hashed: pssh, which makes each ssh read all of
it; pssh when `sshoal known-hosts split` has given each host a file of its own; and sshoal, the first time and later. All
with curve25519."""

import tempfile
from pathlib import Path

from . import clients, hosts
from .large_known_hosts import HASHED, ONE, PLAIN, KnownHosts
from .measure import Failed, run_checked
from .rounds import interleaved

COMMAND = "true"
# Lines that pssh prints for a host that did well, and what mpssh says of all of them in its last.
SUCCESS = "[SUCCESS]"
ALL_OK = "(ok/non-ok/ssh-failed = {}/0/0)"
# Clients that take minutes, since they start an ssh for each host: once is enough to see how many.
SLOW = ("pssh", "mpssh.py")


def measure(options, record, report):
    def fans(file, split):
        made = [pssh(f"pssh: {file.kind}", file.options)]
        if file.kind in (PLAIN, HASHED):
            made.append(pssh(f"pssh after split: {file.kind}", split))
            made.append(sshoal(f"sshoal the first time: {file.kind}", file, file.forget))
        return [*made, sshoal(f"sshoal: {file.kind}", file)]

    measure_fans("known-hosts-fleet", fans, options, record, report)


def measure_fans(experiment, fans, options, record, report):
    """Measures the clients that `fans` gives for each known_hosts and ssh's words for what it was split into."""
    with hosts.simulated(options.desktop_hosts) as shoal, tempfile.TemporaryDirectory(prefix="sshoal-bench-") as folder:
        files = KnownHosts.make_all(folder, shoal)
        made, splits = [], {}
        for file in files:
            option = None
            if file.kind in (PLAIN, HASHED):
                sample, option = file.split(Path(folder) / f"split-{file.kind}")
                file.forget()
                splits[file.kind] = sample.record()
                report(f"{experiment}: split, {file.kind}: {sample.cpu_s:.2f} s of CPU, {sample.wall_s:.2f} s")
            made += fans(file, option)

        def one(client, number):
            argv, environment = client.argv(shoal, options.fleet_window, COMMAND), client.environment(shoal)
            record.command(experiment, client.name, argv, environment)
            before = shoal.counters()
            sample = run_checked(argv, environment)
            after = shoal.counters()
            done = {what: after[what] - before[what] for what in ("logins", "execs")}
            said = successes(client, len(shoal), sample.stdout)
            if not done["logins"] == done["execs"] == said == len(shoal):
                raise Failed(f"{client.name}: {done} and {said} successes with {len(shoal)} hosts")
            cost = sample.cpu_s * 1000 / len(shoal)
            report(f"{experiment} round {number}: {client.name}: {cost:.2f} ms of CPU a host, {sample.wall_s:.2f} s")
            return {"cpu_ms_a_host": cost, **sample.record()}

        def rounds_of(some, rounds):
            try:
                return interleaved(some, rounds, one)
            except Failed as error:
                report(f"NOT MEASURED: {experiment} {error}")
                return []

        chosen = options.chosen(made)
        rows = rounds_of([client for client in chosen if not client.name.startswith(SLOW)], options.fleet_rounds)
        for client in chosen:
            if client.name.startswith(SLOW):
                rows += rounds_of([client], 1)
        settings = {
            "hosts": len(shoal),
            "window": options.fleet_window,
            "command": COMMAND,
            "servers": "simulated",
            "split": splits,
            "files": {file.kind: file.settings() for file in files},
        }
    record.experiment(experiment, settings, rows)


def successes(client, count, said):
    """How many hosts did well, as the client says it; sshoal's own exit status has said it already."""
    if client.name.startswith("pssh"):
        return sum(SUCCESS in line for line in said.splitlines())
    if client.name.startswith("mpssh"):
        return count if ALL_OK.format(count) in said else 0
    return count


def pssh(name, known_hosts):
    def argv(shoal, window, command):
        options = " ".join(["-F", str(shoal.ssh_config_curve25519), *known_hosts])
        return ["parallel-ssh", "-h", str(shoal.file), "-p", str(window), "-t", "600", "-i", "-x", options, command]

    return clients.Client(name, clients.CURVE25519, argv, has_both=False)


def sshoal(name, file, prepare=lambda: None):
    def argv(shoal, window, command):
        prepare()
        config = ["-F", str(shoal.ssh_config_curve25519), *file.options]
        return [*clients.sshoal_program(), *config, "-f", str(shoal.file), "-p", str(window), command]

    return clients.Client(name, clients.CURVE25519, argv, lambda shoal: file.environment, has_both=False)
