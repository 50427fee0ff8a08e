"""Load on the machine: a program a core that computes, and one that writes to the disk."""

import contextlib
import os
import subprocess
import tempfile
import time

from .install import REPO

# The kernel's averages of pressure are those of ten seconds: before that they say nothing of it.
SETTLE_SECONDS = 12
# What is written again and again, and brought to the disk each time.
MEBIBYTES = 256


def before_all_others():
    """This program and what it starts get a processor before whatever else runs on the machine: as if nothing did."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def ordinary(pid):
    """A process shares processors with all others again."""
    os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def writing():
    """A program writes to the disk until the block is left."""
    with tempfile.TemporaryDirectory(prefix="load-", dir=REPO / "target") as folder:
        written = os.path.join(folder, "written")
        lines = f"while :; do dd if=/dev/zero of={written} bs=1M count={MEBIBYTES} conv=fdatasync 2>/dev/null; done"
        writer = subprocess.Popen(["sh", "-c", lines], start_new_session=True, preexec_fn=lambda: ordinary(0))
        try:
            time.sleep(SETTLE_SECONDS)
            yield
        finally:
            os.killpg(writer.pid, 9)
            writer.wait()


@contextlib.contextmanager
def loaded(burn):
    """The disk and all processors are busy until the block is left. `burn` is the program that computes (slow_logins/burn.c)."""
    # What is under load shares with it.
    ordinary(0)
    programs = [subprocess.Popen([burn, str(10**9)]) for _ in os.sched_getaffinity(0)]
    try:
        with writing():
            yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


@contextlib.contextmanager
def crowded(burn, pid, programs):
    """A process may use one processor only, which so many programs want, and is nice to them."""
    core = {max(os.sched_getaffinity(0))}
    ordinary(pid)
    os.sched_setaffinity(pid, core)
    os.setpriority(os.PRIO_PROCESS, pid, 19)
    started = [subprocess.Popen([burn, str(10**9)], preexec_fn=lambda: (ordinary(0), os.sched_setaffinity(0, core))) for _ in range(programs)]
    try:
        time.sleep(SETTLE_SECONDS)
        yield
    finally:
        for program in started:
            program.kill()
            program.wait()
