"""T16: one host's lines of known_hosts, as ssh asks for them by KnownHostsCommand: `sshoal known-hosts lookup` beside
`ssh-keygen -F`, and beside a program that does nothing, for what starting one costs here."""

import tempfile
from statistics import median

from . import clients, hosts
from .large_known_hosts import ONE, KnownHosts
from .measure import Failed, spawned
from .rounds import interleaved

# Hosts for the test: their lines stand everywhere in the file.
HOSTS = 20


def measure(options, record, report):
    with hosts.simulated(HOSTS) as shoal, tempfile.TemporaryDirectory(prefix="sshoal-bench-") as folder:
        files = KnownHosts.make_all(folder, shoal)
        settings = {"hosts": HOSTS, "files": {file.kind: file.settings() for file in files}}
        fans = options.chosen([nothing(), *(make(file) for file in files for make in (ssh_keygen, lookup, first_lookup) if not (make is first_lookup and file.kind == ONE))])
        names = [line.split()[0] for line in shoal.known_hosts.read_text().splitlines()]
        truth = {file.kind: {name: lines_of(ssh_keygen(file), name) for name in names} for file in files}

        def one(client, number):
            name = names[number % len(names)]
            argv = client.argv(shoal, 1, name)
            record.command("T16", client.name, argv, client.environment(shoal))
            sample = spawned(argv, client.environment(shoal))
            found = significant(sample.stdout)
            wanted = truth.get(client.name.split(": ")[-1], {}).get(name, [])
            if sample.status != 0 or found != wanted:
                raise Failed(f"T16 {client.name}: {name}: {found} where {wanted} is right\n{sample.stderr[-1000:]}")
            return {"cpu_ms": sample.cpu_s * 1000, **sample.record()}

        for client in fans:
            for number in range(len(names)):
                one(client, number)
        rows = interleaved(fans, options.single_rounds, one)
    for client in fans:
        own = [row for row in rows if row["client"] == client.name]
        wall, cpu = (median(row[figure] for row in own) for figure in ("wall_s", "cpu_ms"))
        report(f"T16: {client.name}: median {wall * 1000:.2f} ms, {cpu:.2f} ms of CPU")
    record.experiment("T16", settings, rows)


def nothing():
    return client("nothing at all", lambda name: ["/bin/true"])


def ssh_keygen(file):
    return client(f"ssh-keygen -F: {file.kind}", lambda name: ["/usr/bin/ssh-keygen", "-F", name, "-f", str(file.file)])


def lookup(file):
    words = [*clients.known_hosts_program(), "lookup", "-f", str(file.file), "--"]
    return client(f"sshoal: {file.kind}", lambda name: [*words, name], file.environment)


def first_lookup(file):
    """Without an index, and without writing one."""
    words = [*clients.known_hosts_program(), "lookup", "--no-index-cache", "-f", str(file.file), "--"]
    return client(f"sshoal without index: {file.kind}", lambda name: [*words, name])


def client(name, words, environment=None):
    return clients.Client(name, clients.DEFAULT, lambda hosts, window, asked: words(asked), lambda hosts: environment or {}, has_both=False)


def lines_of(client, name):
    sample = spawned(client.argv(None, 1, name), {})
    lines = significant(sample.stdout)
    if sample.status != 0 or not lines:
        raise Failed(f"{client.name} does not find {name}: {sample.stderr[-1000:]}")
    return lines


def significant(text):
    """Without what ssh-keygen says beside the lines."""
    return [line for line in text.splitlines() if not line.startswith("#")]
