"""A client of a slow host: its ssh_config and known_hosts, its agent, and what is slow on its own side."""

import contextlib
import os
import re
import socket
import subprocess
import tempfile
from pathlib import Path

from .measure import Failed
from .slow_hosts import NAME, PATIENCE

# A loopback address that is nearer to 127.0.0.1 than any host's, so that the C library names it first (RFC 6724, rule 9).
DEAD_ADDRESS = "127.0.0.77"


class Client:
    """Runs programs as that client. Everything of it is in a folder."""

    def __init__(self, folder, host, entry):
        self.folder, self.host, self.entry = Path(folder), host, entry
        self.name = host.about["name"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        # What comes before each command line.
        self.before = []

    def command(self, words):
        return [*self.before, *words]

    def run(self, words, patience, may_fail=False):
        """Standard output of a program that must succeed, or at least say something."""
        ended = subprocess.run(
            self.command(words), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience
        )
        if ended.returncode != 0 and not (may_fail and ended.stdout):
            raise Failed(f"{self.host.injection.label}: {' '.join(words)} ended with {ended.returncode}: {ended.stderr[-2000:]}")
        return ended.stdout

    @property
    def ssh_config(self):
        return self.folder / "ssh_config"

    def write(self):
        config = self.host.config
        known_hosts = self.known_hosts(config)
        (self.folder / "known_hosts").write_text(known_hosts)
        settings = {"UserKnownHostsFile": f'"{self.folder}/known_hosts"', "Port": str(self.host.port)}
        if "agent" in self.entry:
            settings |= {"IdentityFile": "none", "IdentitiesOnly": "no"}
        if self.looks_up:
            settings["HostName"] = self.host_name
        for keyword, value in settings.items():
            config = re.sub(rf"(?m)^(\s*{keyword}) .*$", rf"\1 {value}", config)
        seconds = f"{(self.host.injection.milliseconds or 0) / 1000:.3f}"
        before = self.entry.get("client", "").replace("{seconds}", seconds)
        self.ssh_config.write_text(f"{before}\n{config}")

    @property
    def looks_up(self):
        return self.entry.get("by_name") or self.entry.get("dead_address")

    @property
    def host_name(self):
        """One without a dot is what CanonicalizeHostname completes."""
        return "slow" if "CanonicalDomains" in self.entry.get("client", "") else NAME

    def known_hosts(self, config):
        """The host's key under all its names; and hashed ones of others."""
        path = re.search(r'UserKnownHostsFile "([^"]+)"', config).group(1)
        lines = Path(path).read_text()
        key = lines.strip().splitlines()[-1].split(" ", 1)[1]
        for name in (self.host.address, NAME, "slow"):
            lines += f"[{name}]:{self.host.port} {key}\n"
        if count := self.entry.get("hashed_lines"):
            lines = hashed(self.folder, count, key) + lines
        return lines


def hashed(folder, count, key):
    """So many lines of other hosts, by ssh-keygen."""
    path = folder / "many"
    path.write_text("".join(f"host{number}.example.org {key}\n" for number in range(count)))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(path)], check=True, capture_output=True)
    return path.read_text()


@contextlib.contextmanager
def of(host, is_slow=True):
    """The client of a host, until the block is left; as slow as its injection makes it, or as any other."""
    with contextlib.ExitStack() as ends:
        entry = host.injection.entry if is_slow else {}
        client = Client(ends.enter_context(tempfile.TemporaryDirectory(prefix="sshoal-client-")), host, entry)
        client.write()
        if "agent" in client.entry:
            ends.callback(end_agent, client, agent(client, client.entry["agent"]))
        if client.looks_up:
            client.before = own_names(client)
        if client.entry.get("dead_address"):
            dead_address(host.port, ends)
        yield client


def agent(client, others):
    """An agent with so many keys before the right one."""
    socket_path = client.folder / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket_path)], stdout=subprocess.DEVNULL)
    client.environment["SSH_AUTH_SOCK"] = str(socket_path)
    identity = re.search(r'IdentityFile "([^"]+)"', client.host.config).group(1)
    keys = [str(client.folder / f"other{number}") for number in range(others)]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    adds = ["sh", "-c", 'until [ -S "$SSH_AUTH_SOCK" ]; do sleep 0.01; done; exec ssh-add -q "$@"', "sh", *keys, identity]
    client.run(adds, PATIENCE)
    return process


def end_agent(_client, process):
    process.terminate()
    process.wait()


def own_names(client):
    """What runs a command with the client's own files of names, in a mount namespace of its own."""
    host = client.host
    addresses = [DEAD_ADDRESS, host.address] if client.entry.get("dead_address") else []
    lines = "".join(f"{address} {NAME}\n" for address in addresses) + f"127.0.0.1 localhost\n{host.address} slow\n"
    server = host.name_server.address if host.name_server else "127.0.0.1"
    files = {"hosts": lines, "resolv.conf": f"nameserver {server}\n", "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
    for name, text in files.items():
        (client.folder / name).write_text(text)
    mounts = "; ".join(f'mount --bind "{client.folder}/{name}" /etc/{name}' for name in files)
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'set -e; {mounts}; exec "$@"', "client"]


def dead_address(port, ends):
    """Somebody listens there whose queue is full: what comes is dropped, as by a host that is down."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((DEAD_ADDRESS, port))
    listener.listen(0)
    ends.callback(listener.close)
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex((DEAD_ADDRESS, port))
        ends.callback(filler.close)
