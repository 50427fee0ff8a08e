"""T7: what known_hosts adds to a session: one login and `true`, with a known_hosts of the host's line alone, of 2.3 MB, and
of 2.3 MB with hashed names. sshoal is measured as it starts for the first time, and when it has an index of the file."""

import tempfile
from pathlib import Path
from statistics import median

from . import clients, hosts
from .large_known_hosts import HASHED, ONE, PLAIN, KnownHosts
from .measure import Failed, run_checked
from .rounds import interleaved

COMMAND = "true"


def measure(options, record, report):
    with hosts.real(1, options.hosts_folder) as host, tempfile.TemporaryDirectory(prefix="sshoal-bench-") as folder:
        files = KnownHosts.make_all(folder, host)
        settings = {"command": COMMAND, "kex": clients.CURVE25519, "files": {file.kind: file.settings() for file in files}}
        settings["split"], after_split = splits(files, folder, report)
        fans = options.chosen(sessions(host, files, after_split))
        good = [client for client in fans if works(client, host, report)]

        def one(client, _):
            argv, environment = client.argv(host, 1, COMMAND), client.environment(host)
            record.command("T7", client.name, argv, environment)
            before = host.logins()
            sample = run_checked(argv, environment)
            host.expect_logins(before + 1, client)
            return {"cpu_ms": sample.cpu_s * 1000, **sample.record()}

        rows = interleaved(good, options.single_rounds, one)
    for client in good:
        costs = [row["cpu_ms"] for row in rows if row["client"] == client.name]
        report(f"T7: {client.name}: median {median(costs):.2f} ms of CPU")
    record.experiment("T7", settings, rows)


def sessions(host, files, after_split):
    """ssh and sshoal with each file; sshoal also without what it remembers, and ssh with what split made."""
    made = [with_file("ssh", file, ["ssh"], file.options, {}) for file in files]
    made += [with_file("ssh after split", file, ["ssh"], option, {}) for file, option in after_split]
    made += [with_file("sshoal the first time", file, ["sshoal"], file.options, file.environment, file.forget) for file in files if file.kind != ONE]
    made += [with_file("sshoal", file, ["sshoal"], file.options, file.environment) for file in files]
    return made


def with_file(name, file, program, options, environment, prepare=lambda: None):
    """A client with one known_hosts file. Only the index is forgotten by the first time: what the servers are is known."""

    def argv(host, _, command):
        prepare()
        config = ["-F", str(host.ssh_config_curve25519), *options]
        if program == ["ssh"]:
            return ["ssh", *config, host.addresses[0], command]
        return [*clients.sshoal_program(), *config, "-w", host.addresses[0], command]

    return clients.Client(f"{name}: {file.kind}", clients.CURVE25519, argv, lambda host: environment, has_both=False)


def works(client, host, report):
    """Each once before the figures: what is remembered is there, and who cannot do it is named."""
    try:
        before = host.logins()
        run_checked(client.argv(host, 1, COMMAND), client.environment(host))
        host.expect_logins(before + 1, client)
        return True
    except Failed as error:
        report(f"NOT MEASURED: T7 {client.name}: {error}")
        return False


def splits(files, folder, report):
    """What splitting the large files costs, and the options with which ssh reads what came of it."""
    costs, after = {}, []
    for file in files:
        if file.kind in (PLAIN, HASHED):
            sample, option = file.split(Path(folder) / f"split-{file.kind}")
            file.forget()
            report(f"T7: sshoal known-hosts split, {file.kind}: {sample.cpu_s * 1000:.1f} ms of CPU")
            costs[file.kind] = sample.record()
            after.append((file, option))
    return costs, after
