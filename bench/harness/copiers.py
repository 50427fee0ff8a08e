"""The clients that copy files, each with the words of somebody who knows it."""

import json
import os
import shlex
import shutil
from dataclasses import dataclass
from typing import Callable

from .install import REPO
from .measure import Failed

SSHOAL = str(REPO / "target/release/sshoal")
# Flows of the ceiling that iperf3 finds: as many as sshoal begins with on a long way.
FLOWS = 17


@dataclass(frozen=True)
class Copier:
    """A client. `words` makes its command from the way, the host, what is copied and the folder that it goes to."""

    name: str
    words: Callable
    ways: tuple = ("put", "get")
    # Whether files arrive; iperf3 only fills the line, and says by itself how fast: from its first octet to its last.
    arrives: bool = True
    kex: str = "own"
    # Measured after all others: it may take so long that once is enough.
    is_last: bool = False

    def argv(self, way, host, source, target):
        return [str(word) for word in self.words(way, host, source, target)]

    def environment(self, host):
        return {}

    def arrived(self, way, host, source, target):
        """sshoal makes a folder for each host."""
        of_host = target / host.addresses[0]
        return (of_host if of_host.exists() else target) / source.name


def sshoal(*flags):
    def words(way, host, source, target):
        common = ["-q", "-F", host.ssh_config, "-w", host.addresses[0], *flags]
        if way == "get":
            return [SSHOAL, "get", *common, source, target]
        return [SSHOAL, "put", *common, *(["-r"] if way == "tree" else []), source, f"{target}/"]

    return words


def scp(program="scp", *flags):
    def words(way, host, source, target):
        there = f"{host.addresses[0]}:"
        common = [program, "-q", "-F", host.ssh_config, *flags]
        if way == "get":
            return [*common, f"{there}{source}", target]
        return [*common, *(["-r"] if way == "tree" else []), source, f"{there}{target}/"]

    return words


def sftp(way, host, source, target):
    line = f"get {source} {target}/" if way == "get" else f"put {source} {target}/"
    return ["sh", "-c", f"echo {shlex.quote(line)} | sftp -q -b - -F {host.ssh_config} {host.addresses[0]}"]


def rsync(way, host, source, target):
    there = f"{host.addresses[0]}:"
    common = ["rsync", "-rW", "-e", f"ssh -F {host.ssh_config}"]
    return [*common, f"{there}{source}", f"{target}/"] if way == "get" else [*common, source, f"{there}{target}/"]


def lftp(way, host, source, target):
    # Segments are for downloads only.
    line = f"pget -n 8 {source} -o {target}/" if way == "get" else f"put -O {target} {source}"
    connect = f"set sftp:connect-program 'ssh -a -x -F {host.ssh_config}'; open sftp://{host.addresses[0]}"
    return ["lftp", "-c", f"set net:max-retries 1; {connect}; {line}"]


def rclone(way, host, source, target):
    reached = f"host={host.addresses[0]},user={host.user},key_file={host.identity},known_hosts_file={host.known_hosts}"
    there = f":sftp,{reached},shell_type=unix:"
    common = ["rclone", "--config", "/dev/null", "--multi-thread-streams", "8", "--sftp-concurrency", "64", "--sftp-chunk-size", "255Ki"]
    return [*common, "copy", f"{there}{source}", target] if way == "get" else [*common, "copy", source, f"{there}{target}"]


def mscp(way, host, source, target):
    there = f"{host.addresses[0]}:"
    common = [os.environ.get("MSCP", "mscp"), "-q", "-F", host.ssh_config, "-n", "64", "-a", "64"]
    return [*common, f"{there}{source}", target] if way == "get" else [*common, source, f"{there}{target}/"]


def iperf3(way, host, source, target):
    backwards = ["-R"] if way == "get" else []
    # The number is that of all flows together.
    return ["iperf3", "--json", "-c", host.addresses[0], "-P", FLOWS, "-n", source.stat().st_size, *backwards]


def told_by_iperf3(said, size):
    """Octets a second that have arrived."""
    arrived = json.loads(said)["end"]["sum_received"]
    # What is on its way when the last octet leaves is not waited for.
    if arrived["bytes"] < 0.9 * size:
        raise Failed(f"iperf3: {arrived['bytes']} octets arrived of {size}")
    return arrived["bytes"] / arrived["seconds"]


def tar(way, host, source, target):
    # What sshoal puts in place is on the disk.
    remote = f"tar x -C {target} && sync -f {target}"
    line = f"tar c -C {source.parent} {source.name} | ssh -F {host.ssh_config} {host.addresses[0]} {shlex.quote(remote)}"
    return ["sh", "-c", line]


def ssh_cat(*flags):
    def words(way, host, source, target):
        reached = shlex.join(["ssh", "-F", str(host.ssh_config), *flags, host.addresses[0]])
        arrived = f"{target}/{source.name}"
        line = f"{reached} cat {source} >{arrived}" if way == "get" else f"{reached} 'cat >{arrived}' <{source}"
        return ["sh", "-c", line]

    return words


def with_sync(words):
    """As durable as the others: the file system is synchronised afterwards."""

    def both(way, host, source, target):
        first = shlex.join(str(word) for word in words(way, host, source, target))
        return ["sh", "-c", f"{first} && ssh -F {host.ssh_config} {host.addresses[0]} sync -f {target}"]

    return both


ALL = [
    Copier("sshoal", sshoal()),
    Copier("sshoal", sshoal(), ("tree",)),
    Copier("sshoal sftp", sshoal("--method", "sftp"), ("tree",)),
    Copier("sshoal one lane", sshoal("--lanes", "1")),
    Copier("sshoal cubic", sshoal("--congestion", "cubic"), ("put",)),
    Copier("ssh cat", ssh_cat()),
    # With the cipher that costs it least.
    Copier("ssh cat aes128-gcm", ssh_cat("-c", "aes128-gcm@openssh.com")),
    Copier("scp", scp()),
    Copier("scp", with_sync(scp()), ("tree",), is_last=True),
    Copier("sftp", sftp),
    Copier("rsync", rsync),
    Copier("rsync", with_sync(rsync), ("tree",)),
    Copier("tar over ssh", tar, ("tree",)),
    Copier("lftp", lftp),
    Copier("rclone", rclone),
    Copier("mscp", mscp),
    Copier("HPN scp", scp(os.environ.get("HPN_SCP", "hpnscp"))),
    Copier("iperf3", iperf3, arrives=False),
]
# Peers that are no Debian packages: measured if these variables name them.
OPTIONAL = {"mscp": os.environ.get("MSCP", "mscp"), "HPN scp": os.environ.get("HPN_SCP", "hpnscp")}


def named(names, way):
    """Those with these names that go this way and are here."""
    here = lambda name: name not in OPTIONAL or shutil.which(OPTIONAL[name])  # noqa: E731
    return [copier for copier in ALL if copier.name in names and way in copier.ways and here(copier.name)]


def names(way):
    return list(dict.fromkeys(copier.name for copier in ALL if way in copier.ways))
