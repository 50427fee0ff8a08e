"""T1: what a host costs the client. 200 real sshd, 50 at a time, `true`."""

from . import clients, hosts
from .measure import run_checked
from .rounds import interleaved, usable

COMMAND = "true"


def measure(options, record, report):
    own = [clients.sshoal(clients.DEFAULT), clients.sshoal(clients.CURVE25519)]
    fans = options.chosen(clients.spawning() + clients.native() + own)
    with hosts.real(options.real_hosts, options.hosts_folder) as shoal:
        good = usable(fans, shoal, options.window, report)

        def one(client, number):
            argv, environment = client.argv(shoal, options.window, COMMAND), client.environment(shoal)
            record.command("T1", client.label, argv, environment)
            before = shoal.logins()
            sample = run_checked(argv, environment)
            shoal.expect_logins(before + len(shoal), client)
            per_host = sample.cpu_s * 1000 / len(shoal)
            report(f"T1 round {number}: {client.label}: {per_host:.3f} ms a host, {sample.wall_s:.2f} s")
            return {"checks_host_keys": client.checks_host_keys, "cpu_ms_a_host": per_host, **sample.record()}

        rows = interleaved(good, options.rounds, one)
    settings = {"hosts": options.real_hosts, "window": options.window, "command": COMMAND, "servers": "sshd"}
    record.experiment("T1", settings, rows)
