"""T5: logins a CPU second, and whether a host costs the same among 100 and among 10,000. Simulated hosts, one core for
the client."""

from . import clients, hosts
from .measure import run_checked
from .rounds import interleaved, usable

COMMAND = "true"


def measure(options, record, report):
    fans = options.chosen([clients.go(), clients.russh(), clients.sshoal()])
    rows = []
    with hosts.simulated(max(options.scales), options.server_cores) as shoal:
        for count in options.scales:
            some = shoal.first(count)

            def one(client, number):
                argv, environment = client.argv(some, options.scale_window, COMMAND), client.environment(some)
                record.command("T5", client.label, argv, environment)
                before = some.logins()
                sample = run_checked(argv, environment, options.client_cores)
                some.expect_logins(before + count, client)
                rate = count / sample.cpu_s
                report(f"T5: {client.label}: {count} hosts: {rate:.0f} logins a CPU second, {sample.wall_s:.2f} s")
                return {"hosts": count, "logins_a_cpu_second": rate, "cpu_ms_a_host": sample.cpu_s * 1000 / count, **sample.record()}

            good = usable(fans, some, options.scale_window, lambda line: report(f"T5, {count} hosts: {line}"))
            rows += interleaved(good, options.rounds, one)
    settings = {"window": options.scale_window, "command": COMMAND, "servers": "simulated", "client_cores": 1}
    record.experiment("T5", settings, rows)
