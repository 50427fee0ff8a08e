"""What 50,000 hosts take with 256 file descriptors: every host is reached, and nobody waits for a descriptor in vain."""

import contextlib
import json
import tempfile
from pathlib import Path

from . import clients, hosts
from .measure import Failed, Running
from .rounds import interleaved

COMMAND = "true"
DESCRIPTORS = 256
# Simulated hosts in one process: each needs a descriptor to listen and one for each connection.
HOSTS_A_PROCESS = 10_000
FIRST_NETWORK = 130


def measure(options, record, report):
    client = clients.Client("sshoal", clients.DEFAULT, argv, has_both=False)
    with several(options.many_hosts, options.server_cores) as folder:

        def one(client, number):
            words = client.argv(folder, 0, COMMAND)
            record.command("descriptors", client.label, words, {})
            sample = with_few_descriptors(words)
            summary = json.loads(sample.stdout.splitlines()[-1])
            if sample.status != 0 or summary["ok"] != options.many_hosts:
                raise Failed(f"status {sample.status}: {summary}")
            peak = sample.peak_rss_kib / 1024
            report(f"descriptors: {summary['ok']} of {summary['hosts']} hosts ok, {sample.wall_s:.1f} s, {peak:.0f} MiB")
            return {"ok": summary["ok"], **sample.record()}

        rows = interleaved([client], 1, one)
    settings = {"hosts": options.many_hosts, "descriptors": DESCRIPTORS, "command": COMMAND, "servers": "simulated"}
    record.experiment("descriptors", settings, rows)


def argv(folder, window, command):
    sshoal = clients.sshoal_program()
    return [*sshoal, "-F", str(folder / "ssh_config"), "-f", str(folder / "hosts"), "--json", command]


def with_few_descriptors(words):
    """The limit is lowered for the client alone; this process and the hosts keep theirs."""
    limited = ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *words]
    return Running(limited, {}).end()


@contextlib.contextmanager
def several(count, cores):
    """Hosts of several processes, and a folder with the hosts and the ssh_config of all."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sshoal-bench-many-")))
        with open(folder / "hosts", "w") as names, open(folder / "ssh_config", "w") as config:
            for number, first in enumerate(range(0, count, HOSTS_A_PROCESS)):
                network = FIRST_NETWORK + number
                some = min(HOSTS_A_PROCESS, count - first)
                part = stack.enter_context(hosts.simulated(some, cores, f"127.{network}.0.0"))
                names.write(part.file.read_text())
                config.write(part.ssh_config.read_text().replace("Host *", f"Host 127.{network}.*") + "\n")
        yield folder
