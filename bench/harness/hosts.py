"""The hosts to measure against: the test bed's, each set a folder of the same layout."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Optional

from .install import REPO
from .measure import Failed

TESTBED = REPO / "target/release/sshoal-testbed"
# Longest that a set of hosts may take to listen, in seconds.
PATIENCE = 120
# Longest wait for the test bed's counters, in seconds.
COUNTERS_PATIENCE = 30


@dataclass(frozen=True)
class HostSet:
    """Hosts on one port, and the files with which a client reaches them."""

    folder: Path
    addresses: list
    port: int
    user: str
    # What the hosts have counted together: logins; simulated ones also execs, open and more. None if not started by us.
    counters: Optional[Callable[[], dict]] = None

    @staticmethod
    def read(folder):
        """From the files that the test bed wrote; its ssh_config says which port and user."""
        folder = Path(folder)
        words = [line.split(None, 1) for line in (folder / "ssh_config").read_text().splitlines() if line.strip()]
        config = {keyword.lower(): value.strip().strip('"') for keyword, value in words}
        addresses = (folder / "hosts").read_text().split()
        curve25519 = (folder / "ssh_config").read_text() + "    KexAlgorithms curve25519-sha256\n"
        (folder / "ssh_config.curve25519").write_text(curve25519)
        return HostSet(folder, addresses, int(config["port"]), config["user"])

    def first(self, count):
        """The same with fewer hosts: files of its own, in a folder below."""
        if count == len(self.addresses):
            return self
        if count > len(self.addresses):
            raise Failed(f"{count} hosts asked for, {len(self.addresses)} there")
        folder = self.folder / f"first-{count}"
        folder.mkdir(exist_ok=True)
        for name in ("known_hosts", "id_ed25519", "ssh_config", "ssh_config.curve25519"):
            if not (folder / name).exists():
                (folder / name).symlink_to(self.folder / name)
        addresses = self.addresses[:count]
        (folder / "hosts").write_text("".join(f"{address}\n" for address in addresses))
        return replace(self, folder=folder, addresses=addresses)

    def __len__(self):
        return len(self.addresses)

    def logins(self):
        """All logins so far, or 0 if nobody counts."""
        return self.counters()["logins"] if self.counters else 0

    def expect_logins(self, wanted, client):
        """Fails if not exactly so many logins have happened."""
        if self.counters and self.logins() != wanted:
            raise Failed(f"{client.label}: the hosts count {self.logins()} logins where {wanted} should be")

    @property
    def file(self):
        return self.folder / "hosts"

    @property
    def known_hosts(self):
        return self.folder / "known_hosts"

    @property
    def identity(self):
        return self.folder / "id_ed25519"

    @property
    def ssh_config(self):
        return self.folder / "ssh_config"

    @property
    def ssh_config_curve25519(self):
        return self.folder / "ssh_config.curve25519"


def real(count, given=None):
    """Real sshd instances: those described in the folder `given`, or started by the test bed."""
    if given:
        return contextlib.nullcontext(HostSet.read(given).first(count))
    return started(["sshd", "--hosts", str(count)])


def simulated(count, cores=None, base=None):
    """Simulated hosts, on their own cores and from their own first address, if given."""
    network = ["--base", base] if base else []
    return started(["simulate", "--hosts", str(count), "--threads", str(len(cores) if cores else 1), *network], cores=cores)


@contextlib.contextmanager
def started(arguments, cores=None):
    """Runs the test bed until the block is left. It ends with its standard input, so also with this process."""
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-hosts-") as folder:
        folder = Path(folder)
        words = [str(TESTBED), *arguments, "--dir", str(folder / "hosts"), "--until-eof"]
        log = open(folder / "log", "wb")
        server = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )
        try:
            wait_until_ready(server, folder)
            counters = lambda: ask_counters(server, folder / "log")  # noqa: E731
            yield replace(HostSet.read(folder / "hosts"), counters=counters)
        finally:
            server.stdin.close()
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_until_ready(server, folder):
    deadline = time.monotonic() + PATIENCE
    while not (folder / "hosts/ready").exists():
        if server.poll() is not None or time.monotonic() > deadline:
            said = (folder / "log").read_text(errors="replace")
            raise Failed(f"the test bed did not start: {' '.join(map(str, server.args))}\n{said[-2000:]}")
        time.sleep(0.05)


def ask_counters(server, log):
    """The test bed prints its counters, a line of JSON, when it gets SIGUSR1."""
    before = log.stat().st_size
    server.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + COUNTERS_PATIENCE
    while time.monotonic() < deadline:
        line = log.read_bytes()[before:]
        if line.endswith(b"\n"):
            return json.loads(line.splitlines()[-1])
        time.sleep(0.005)
    raise Failed("the test bed does not tell its counters")
