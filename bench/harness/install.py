"""Installs the peers, each by its usual way, and builds the two that are programs of ours around a library."""

import os
import shutil
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILT = REPO / "target" / "bench"
PEERS = REPO / "bench" / "peers"
REQUIREMENTS = PEERS / "requirements.txt"
# How long a check takes whose memory is looked at.
HOLD_MS = 20

# Command to look for, and the Debian package that brings it.
DEBIAN = {"parallel-ssh": "pssh", "pdsh": "pdsh", "clush": "clustershell", "xargs": "findutils", "strace": "strace", "cc": "gcc"}
# What copies files.
DEBIAN |= {"rsync": "rsync", "lftp": "lftp", "rclone": "rclone", "iperf3": "iperf3", "tar": "tar"}
# What the library for LD_PRELOAD is measured with.
DEBIAN |= {"gawk": "gawk", "lua5.4": "lua5.4", "busybox": "busybox"}


class CannotInstall(Exception):
    """A peer is missing and cannot be installed here."""


def install_peers():
    """All peers, quickly when they are there already."""
    BUILT.mkdir(parents=True, exist_ok=True)
    debian_packages()
    python_libraries()
    go_program()
    russh_program()
    start_programs()


def build_sshoal():
    """sshoal and its test bed as they are released: each by itself, since packages that are built together get each other's features
    of what both use (tokio's other scheduler, and with it libm)."""
    for package in ("sshoal", "sshoal-testbed", "sshoal-spawn-capi", "sshoal-spawn-preload"):
        run(["cargo", "build", "--release", "--locked", "-p", package], cwd=REPO)
    lay_out_as_installed(REPO / "target/release/sshoal")


def lay_out_as_installed(program):
    """Writes the program anew, from its beginning to its end, as an installation does: the peers were. What a linker leaves lies in
    the page cache in pages of 4 KiB, and starts by some tenths of a millisecond later until it is read from the disk again."""
    copy = program.with_name(program.name + ".copy")
    shutil.copy2(program, copy)
    copy.replace(program)


def debian_packages():
    missing = sorted({package for command, package in DEBIAN.items() if not shutil.which(command)})
    if not missing:
        return
    if os.geteuid() != 0:
        raise CannotInstall(f"not root; run this, then try again: sudo apt-get install {' '.join(missing)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-q"], env=quiet)
    run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing], env=quiet)


def python_libraries():
    """A virtual environment, made again when the list of libraries changes."""
    venv = BUILT / "venv"
    installed = venv / "installed"
    if installed.exists() and installed.read_text() == REQUIREMENTS.read_text():
        return
    shutil.rmtree(venv, ignore_errors=True)
    run([system_python(), "-m", "venv", str(venv)])
    run([str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)])
    installed.write_text(REQUIREMENTS.read_text())


def system_python():
    """Debian's own Python before any other: it is the one that the package python3-venv completes."""
    return shutil.which("python3", path="/usr/bin") or shutil.which("python3")


def go_program():
    # The one in the virtual environment is there when `make setup` found the system's Go too old.
    own = REPO / "target/venv/bin/go"
    go = str(own) if own.exists() else shutil.which("go")
    if not go:
        raise CannotInstall("no Go: run `make setup`, which brings one")
    run([go, "build", "-o", str(BUILT / "go-fanout"), "."], cwd=PEERS / "go", env={**os.environ, "GOTOOLCHAIN": "local"})


def russh_program():
    target = {**os.environ, "CARGO_TARGET_DIR": str(BUILT / "russh")}
    run(["cargo", "build", "--quiet", "--release", "--locked"], cwd=PEERS / "russh", env=target)
    lay_out_as_installed(BUILT / "russh/release/russh-fanout")


def start_programs():
    """The programs that start others, and those that they start."""
    sources, include = PEERS / "spawn", REPO / "crates/spawn_capi/include"
    library = [str(REPO / "target/release/libsshoal_spawn.a"), "-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm"]
    for name in ("tiny", "check"):
        run(["cc", "-O2", "-static", "-nostdlib", "-o", str(BUILT / name), str(sources / f"{name}.c")])
    held = [f"-DHOLD_MS={HOLD_MS}", "-o", str(BUILT / "held_check")]
    run(["cc", "-O2", "-static", "-nostdlib", *held, str(sources / "check.c")])
    for name in ("starts", "monitor"):
        options = ["-O2", "-Wall", "-pthread", "-I", str(include)]
        run(["cc", *options, "-o", str(BUILT / name), str(sources / f"{name}.c"), *library])


def run(argv, **options):
    """A step that must succeed, with its own output shown."""
    subprocess.run(argv, check=True, **options)
