"""What the figures were measured on, and with which versions."""

import os
import platform
import re
import subprocess
from pathlib import Path

from .install import BUILT, REPO


def describe():
    """Everything that a reader needs to judge a figure; nothing that names the machine or its owner."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": re.match(r"[\d.]+", platform.release()).group(),
        "system": os_name(),
        "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "load_before": os.getloadavg(),
        "versions": versions(),
        "commit": first_line(["git", "-C", str(REPO), "rev-parse", "HEAD"]),
        "uncommitted_changes": bool(first_line(["git", "-C", str(REPO), "status", "--porcelain"])),
    }


def cpu_model():
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def os_name():
    return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")


def versions():
    python = str(BUILT / "venv/bin/python")
    return {
        "sshoal": first_line([str(REPO / "target/release/sshoal"), "--version"]),
        "ssh and sshd": first_line(["ssh", "-V"]),
        "pssh": debian_version("pssh"),
        "pdsh": debian_version("pdsh"),
        "clush": debian_version("clustershell"),
        "parallel-ssh": python_version(python, "parallel-ssh"),
        "asyncssh": python_version(python, "asyncssh"),
        "Go x/crypto/ssh": module_version(REPO / "bench/peers/go/go.mod", r"golang.org/x/crypto (\S+)"),
        "russh": module_version(REPO / "bench/peers/russh/Cargo.lock", r'name = "russh"\nversion = "([^"]+)"'),
        "rustc": first_line(["rustc", "--version"]),
        "go": first_line(["go", "version"]),
        "python": first_line([python, "--version"]),
    }


def debian_version(package):
    return first_line(["dpkg-query", "-W", "-f", "${Version}", package])


def python_version(python, package):
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    return first_line([python, "-c", program])


def module_version(file, pattern):
    found = re.search(pattern, file.read_text())
    return found.group(1) if found else None


def first_line(argv):
    """The first line that a command prints, wherever it prints it; None if there is no such command."""
    try:
        ended = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (ended.stdout or ended.stderr).splitlines()
    return lines[0] if lines and ended.returncode == 0 else None
