"""The clients: for each, the command line that runs one command on a set of hosts."""

from dataclasses import dataclass, field
from typing import Callable

from .hosts import HostSet
from .install import BUILT, PEERS, REPO

DEFAULT = "default"
CURVE25519 = "curve25519"


@dataclass(frozen=True)
class Client:
    """One client in one configuration."""

    name: str
    # The key exchange: what the software chooses by itself, or curve25519 pinned.
    kex: str
    # Hosts, number of hosts at a time, remote command -> words.
    argv: Callable[[HostSet, int, str], list]
    environment: Callable[[HostSet], dict] = field(default=lambda hosts: {})
    checks_host_keys: bool = True
    # Whether it is measured in both configurations.
    has_both: bool = True

    @property
    def label(self):
        return f"{self.name} ({self.kex})" if self.has_both else self.name


def ssh_config(hosts, kex):
    return str(hosts.ssh_config if kex == DEFAULT else hosts.ssh_config_curve25519)


def one_ssh(kex):
    """ssh by itself, to the first host: for single logins."""
    return Client("ssh", kex, lambda hosts, window, command: ["ssh", "-F", ssh_config(hosts, kex), hosts.addresses[0], command])


def xargs_ssh(kex):
    def argv(hosts, window, command):
        # `hosts` and `window` as xargs has them; a failed ssh makes xargs return 123.
        return ["xargs", "-a", str(hosts.file), "-P", str(window), "-I{}", "ssh", "-F", ssh_config(hosts, kex), "{}", command]

    return Client("xargs ssh", kex, argv)


def pssh(kex):
    def argv(hosts, window, command):
        options = f"-F {ssh_config(hosts, kex)}"
        return ["parallel-ssh", "-h", str(hosts.file), "-p", str(window), "-t", "600", "-i", "-x", options, command]

    return Client("pssh", kex, argv)


def pdsh(kex):
    def argv(hosts, window, command):
        return ["pdsh", "-S", "-R", "ssh", "-f", str(window), "-w", f"^{hosts.file}", command]

    def environment(hosts):
        return {"PDSH_SSH_ARGS": f"-F {ssh_config(hosts, kex)} %h"}

    return Client("pdsh", kex, argv, environment)


def clush(kex):
    def argv(hosts, window, command):
        options = f"-F {ssh_config(hosts, kex)}"
        return ["clush", "-S", "-f", str(window), "--hostfile", str(hosts.file), "-o", options, command]

    return Client("clush", kex, argv)


def library_flags(hosts, window):
    """The flags that all programs under bench/peers share."""
    return ["--hosts", str(hosts.file), "--port", str(hosts.port), "--user", hosts.user, "--identity", str(hosts.identity), "--window", str(window)]


def parallel_ssh():
    def argv(hosts, window, command):
        program = [str(BUILT / "venv/bin/python"), str(PEERS / "parallel_ssh_run.py")]
        return program + library_flags(hosts, window) + [command]

    return Client("parallel-ssh", DEFAULT, argv, checks_host_keys=False, has_both=False)


def asyncssh():
    def argv(hosts, window, command):
        program = [str(BUILT / "venv/bin/python"), str(PEERS / "asyncssh_run.py")]
        return program + library_flags(hosts, window) + ["--known-hosts", str(hosts.known_hosts), command]

    return Client("asyncssh", DEFAULT, argv, has_both=False)


def go():
    def argv(hosts, window, command):
        program = [str(BUILT / "go-fanout")]
        return program + library_flags(hosts, window) + ["--known-hosts", str(hosts.known_hosts), command]

    return Client("Go x/crypto/ssh", DEFAULT, argv, has_both=False)


def russh():
    def argv(hosts, window, command):
        program = [str(BUILT / "russh/release/russh-fanout")]
        return program + library_flags(hosts, window) + ["--known-hosts", str(hosts.known_hosts), command]

    return Client("russh", DEFAULT, argv, has_both=False)


def sshoal_program():
    return [str(REPO / "target/release/sshoal"), "run"]


def mpssh_program():
    return [str(REPO / "target/release/sshoal"), "mpssh"]


def known_hosts_program():
    return [str(REPO / "target/release/sshoal"), "known-hosts"]


def sshoal(kex=DEFAULT):
    def argv(hosts, window, command):
        program = sshoal_program()
        endpoint = ["-F", ssh_config(hosts, kex), "-f", str(hosts.file), "-l", hosts.user, "-i", str(hosts.identity)]
        return program + endpoint + ["-p", str(window), command]

    return Client("sshoal", kex, argv)


def sshoal_openssh(kex):
    """sshoal's other transport: an ssh for each host, paced by sshoal."""
    native = sshoal(kex)

    def argv(hosts, window, command):
        *flags, command = native.argv(hosts, window, command)
        return [*flags, "--transport", "openssh", command]

    return Client("sshoal-openssh", kex, argv)


def spawning():
    """The clients that start an ssh for each host, in both configurations."""
    return [make(kex) for kex in (DEFAULT, CURVE25519) for make in (xargs_ssh, pssh, pdsh, clush)]


def native():
    """The clients with an SSH of their own. What they choose is curve25519, unless the server has mlkem768x25519."""
    return [parallel_ssh(), asyncssh(), go(), russh()]


def single():
    """The clients for one login at a time."""
    both = [make(kex) for kex in (DEFAULT, CURVE25519) for make in (one_ssh, sshoal)]
    return both + [asyncssh(), go(), russh()]
