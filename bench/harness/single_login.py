"""T2: one login and `true` on the loopback interface, from the start of the client to its end."""

from . import clients, hosts
from .measure import run_checked
from .rounds import interleaved, usable

COMMAND = "true"


def measure(options, record, report):
    fans = options.chosen(clients.single())
    with hosts.real(1, options.hosts_folder) as host:
        good = usable(fans, host, 1, report)

        def one(client, _):
            argv, environment = client.argv(host, 1, COMMAND), client.environment(host)
            record.command("T2", client.label, argv, environment)
            return run_checked(argv, environment).record()

        rows = interleaved(good, options.single_rounds, one)
    for client in good:
        walls = sorted(row["wall_s"] for row in rows if (row["client"], row["kex"]) == (client.name, client.kex))
        report(f"T2: {client.label}: median {walls[len(walls) // 2] * 1000:.1f} ms of {len(walls)}")
    record.experiment("T2", {"command": COMMAND, "servers": "sshd"}, rows)
