"""A host whose login is slow for a known reason: the test bed's, or a clean one of its with an injection of fresh.toml."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from . import load, name_server
from .injections import FOLDER
from .measure import Failed

# Longest that a host may take to start, to be made slow or well, or to say what has run, in seconds.
PATIENCE = 60
RUNS = "run/sshoal-slow/runs"
# What the client calls a host whose name is looked up.
NAME = "slow.example.net"


class Tools:
    """The compiled programs and libraries that injections bring, in a folder that hosts see."""

    def __init__(self, folder):
        self.folder = Path(folder)
        # Hosts' accounts run some of them.
        self.folder.chmod(0o755)
        self.compile("burn", "burn.c", "-O1")
        for name in ("module-account", "module-session"):
            self.compile(f"pam_{name}.so", "pam_ledger.c", "-shared", "-fPIC", f'-DRUNS="/{RUNS}"', f'-DNAME="{name}"')
        # A script of `sshoal why --fix` reloads sshd by systemd, which hosts have none of.
        systemctl = self.folder / "systemctl"
        systemctl.write_text('#!/bin/sh\nkill -HUP "$SSHD"\n')
        systemctl.chmod(0o755)

    @property
    def burn(self):
        return str(self.folder / "burn")

    def roster(self, milliseconds):
        """The slow name service for groups, which has its time compiled in."""
        self.compile(f"libnss_roster_{milliseconds}.so.2", "nss_roster.c", "-shared", "-fPIC", f"-DMILLISECONDS={milliseconds}")

    def compile(self, name, source, *options):
        if not (self.folder / name).exists():
            subprocess.run(["cc", "-Wall", *options, "-o", str(self.folder / name), str(FOLDER / source)], check=True)


class Host:
    """A running host. `about` is what the test bed says of it."""

    def __init__(self, injection, tools, process, log, folder, ends):
        self.injection, self.tools, self.process, self.log, self.ends = injection, tools, process, log, ends
        self.about = json.loads((folder / "hosts.jsonl").read_text())
        self.config = (folder / "ssh_config").read_text()
        self.port = self.about["port"]
        self.name_server = None

    @property
    def address(self):
        return self.about["address"]

    @property
    def root(self):
        """The host's files as the host sees them."""
        return Path(f"/proc/{self.about['pid']}/root")

    def runs(self):
        """How often what is injected has run so far."""
        if self.injection.set == "testbed":
            return sum(self.ask(signal.SIGUSR1)[self.about["name"]].values())
        lines = (self.root / RUNS).read_text().split()
        return lines.count(self.injection.name)

    def mend(self):
        """Makes the test bed's own changes that make it well."""
        self.ask(signal.SIGUSR2)

    def apply(self, script):
        """Runs `host` of a script of `sshoal why --fix` on the host, as root."""
        before = self.listened()
        self.enter(script, "host", f"PATH={self.tools.folder}:{os.environ['PATH']}", f"SSHD={self.about['pid']}")
        if "\n    reload_sshd\n" in script:
            self.wait_listening(before + 1)

    def ask(self, number):
        """The test bed answers a signal by a line of JSON."""
        before = self.log.stat().st_size
        self.process.send_signal(number)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            line = self.log.read_bytes()[before:]
            if line.endswith(b"\n"):
                return json.loads(line.splitlines()[-1])
            time.sleep(0.005)
        raise Failed(f"the test bed does not answer:\n{self.log.read_text(errors='replace')[-2000:]}")

    def make_slow(self):
        """What fresh.toml has of the host, and beside it."""
        entry = self.injection.entry
        if "dns" in entry:
            names = {NAME: self.address}
            self.name_server = self.ends.enter_context(name_server.NameServer(entry["dns"], names, self.injection.milliseconds))
        if self.injection.name == "group-service":
            self.tools.roster(self.injection.milliseconds)
        self.inject()
        if entry.get("listener"):
            self.ends.callback(stop, listener(self))
        for _ in range(entry.get("hold", 0)):
            held = self.ends.enter_context(socket.create_connection((self.address, self.port)))
            if not held.recv(256).startswith(b"SSH-2.0-"):
                raise Failed(f"{self.injection.label}: a connection that was to be held is refused")
        if "crowded" in entry:
            self.ends.enter_context(load.crowded(self.tools.burn, self.about["pid"], entry["crowded"]))

    def inject(self):
        """What fresh.toml says; sshd reads its configuration again."""
        if setup := self.injection.entry.get("setup"):
            prelude = (FOLDER / "prelude.sh").read_text()
            milliseconds = self.injection.milliseconds or 0
            before = self.listened()
            self.enter(
                prelude + setup,
                "setup",
                f"NAME={self.injection.name}",
                f"MS={milliseconds}",
                f"S={milliseconds / 1000:.3f}",
                f"TOOLS={self.tools.folder}",
                f"DNS={self.name_server.address if self.name_server else ''}",
                f"OUTSIDE={os.readlink('/proc/self/ns/mnt')}",
            )
            os.kill(self.about["pid"], signal.SIGHUP)
            self.wait_listening(before + 1)

    def enter(self, script, word, *variables):
        """Runs a script in the host's mount namespace."""
        words = ["nsenter", f"--mount=/proc/{self.about['pid']}/ns/mnt", "env", *variables, "sh", "-s", word]
        ended = subprocess.run(words, input=script, capture_output=True, text=True, timeout=PATIENCE)
        if ended.returncode != 0:
            raise Failed(f"{self.injection.label}: {word} ended with {ended.returncode}: {ended.stderr}{ended.stdout}")

    def listened(self):
        """How often sshd has said that it listens."""
        log = Path(self.about["folder"]) / "log"
        return log.read_text(errors="replace").count(f"Server listening on {self.address} port {self.about['port']}.")

    def wait_listening(self, times):
        deadline = time.monotonic() + PATIENCE
        while self.listened() < times:
            if time.monotonic() > deadline:
                raise Failed(f"{self.injection.label}: sshd does not come back")
            time.sleep(0.005)


@contextlib.contextmanager
def started(injection, testbed, tools):
    """The host of an injection, until the block is left. What is fresh.toml's comes with `make_slow`."""
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="sshoal-score-")))
        log = folder / "log"
        words = [str(testbed), "slow-hosts", injection.words, "--sudo", "--dir", str(folder / "hosts"), "--until-eof"]
        with log.open("wb") as said:
            # Nobody is held to a quota who goes before all others.
            first = (lambda: load.ordinary(0)) if injection.name == "cpu-quota" else None
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=said, stderr=said, preexec_fn=first)
        ends.callback(stop, process)
        wait_until_ready(process, log, folder / "hosts/ready")
        yield Host(injection, tools, process, log, folder / "hosts", ends)


def listener(host):
    """Another program takes the connections, at a port of its own."""
    with socket.create_server((host.address, 0)) as free:
        host.port = free.getsockname()[1]
    program = [str(FOLDER / "listener.py"), host.address, str(host.port), str(host.injection.milliseconds)]
    words = ["nsenter", f"--mount=/proc/{host.about['pid']}/ns/mnt", "/usr/bin/python3", *program]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((host.address, host.port)) as trial:
            trial.recv(256)
            return process
        time.sleep(0.01)
    raise Failed(f"{host.injection.label}: nobody listens")


def wait_until_ready(process, log, ready):
    deadline = time.monotonic() + PATIENCE
    while not ready.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"the test bed did not start: {' '.join(map(str, process.args))}\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.01)


def stop(process):
    """Ends what ends with its standard input."""
    process.stdin.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
