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
# Lines that pssh prints for a host that did well.
SUCCESS = "[SUCCESS]"


def measure(options, record, report):
    with hosts.simulated(options.desktop_hosts) as shoal, tempfile.TemporaryDirectory(prefix="sshoal-bench-") as folder:
        files = KnownHosts.make_all(folder, shoal)
        fans, splits = [], {}
        for file in files:
            fans.append(pssh(f"pssh: {file.kind}", file.options))
            if file.kind in (PLAIN, HASHED):
                sample, option = file.split(Path(folder) / f"split-{file.kind}")
                file.forget()
                splits[file.kind] = sample.record()
                report(f"known-hosts-fleet: split, {file.kind}: {sample.cpu_s:.2f} s of CPU, {sample.wall_s:.2f} s")
                fans.append(pssh(f"pssh after split: {file.kind}", option))
                fans.append(sshoal(f"sshoal the first time: {file.kind}", file, file.forget))
            fans.append(sshoal(f"sshoal: {file.kind}", file))

        def one(client, number):
            argv, environment = client.argv(shoal, options.fleet_window, COMMAND), client.environment(shoal)
            record.command("known-hosts-fleet", client.name, argv, environment)
            before = shoal.counters()
            sample = run_checked(argv, environment)
            after = shoal.counters()
            done = {what: after[what] - before[what] for what in ("logins", "execs")}
            successes = sum(SUCCESS in line for line in sample.stdout.splitlines())
            said = successes if client.name.startswith("pssh") else len(shoal)
            if not done["logins"] == done["execs"] == said == len(shoal):
                raise Failed(f"{client.name}: {done} and {said} successes with {len(shoal)} hosts")
            cost = sample.cpu_s * 1000 / len(shoal)
            report(f"known-hosts-fleet round {number}: {client.name}: {cost:.2f} ms of CPU a host, {sample.wall_s:.2f} s")
            return {"cpu_ms_a_host": cost, **sample.record()}

        def rounds_of(some, rounds):
            try:
                return interleaved(some, rounds, one)
            except Failed as error:
                report(f"NOT MEASURED: known-hosts-fleet {error}")
                return []

        chosen = options.chosen(fans)
        rows = rounds_of([client for client in chosen if client.name.startswith("sshoal")], options.fleet_rounds)
        # What starts an ssh for each host takes minutes: once is enough to see how many.
        for client in chosen:
            if client.name.startswith("pssh"):
                rows += rounds_of([client], 1)
        settings = {
            "hosts": len(shoal),
            "window": options.fleet_window,
            "command": COMMAND,
            "servers": "simulated",
            "split": splits,
            "files": {file.kind: file.settings() for file in files},
        }
    record.experiment("known-hosts-fleet", settings, rows)


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
