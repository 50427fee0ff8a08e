"""Runs a client and tells what it cost: wall time, and user and system CPU of it and all its children."""

import os
import resource
import select
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass

# What every client sees of the environment, beside HOME: nothing of the person who runs the benchmark.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Longest that one run of one client may take, in seconds: scp needs most of an hour for 10,000 files on a long line.
PATIENCE = 4000
# Descriptors that 10,000 connections and the simulated hosts behind them need in one process.
DESCRIPTORS = 65536
# Those that a process needs beside its connections.
SPARE_DESCRIPTORS = 100


@dataclass
class Sample:
    """One run of one client. CPU is that of the client with all children that it has waited for."""

    wall_s: float
    user_s: float
    system_s: float
    peak_rss_kib: int
    status: int
    stdout: str
    stderr: str

    @property
    def cpu_s(self):
        return self.user_s + self.system_s

    def record(self):
        """For the raw data: the figures, and of the output only what explains a failure."""
        fields = asdict(self)
        del fields["stdout"], fields["stderr"]
        if self.status != 0:
            fields["stderr_end"] = self.stderr[-2000:]
        return fields


class Failed(Exception):
    """A client did not do what was asked: its figures would mean nothing."""


def raise_descriptor_limit():
    """As far as this user may, for clients and simulated hosts alike."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, max(hard, DESCRIPTORS)))
    except ValueError:
        # Only root may go above the hard limit, and not everywhere.
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, DESCRIPTORS), hard))


def keepable(hosts):
    """So many of them, or as many as one process may have open files for: `sshoal up` needs two for each."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(hosts, (soft - SPARE_DESCRIPTORS) // 2)


def environment(home, extra):
    """The same for all clients: an empty home, a plain shell, and what the client itself needs to be told."""
    return {"PATH": SEARCH_PATH, "HOME": home, "SHELL": "/bin/sh", "LANG": "C.UTF-8", **extra}


class Running:
    """A client that has been started. Output goes to files, so that reading it costs nobody time."""

    def __init__(self, argv, extra_environment, cores=None):
        self.home = tempfile.TemporaryDirectory(prefix="sshoal-bench-home-")
        self.outputs = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        self.started = time.perf_counter()
        try:
            self.process = subprocess.Popen(
                argv,
                env=environment(self.home.name, extra_environment),
                cwd=self.home.name,
                stdin=subprocess.DEVNULL,
                stdout=self.outputs[0],
                stderr=self.outputs[1],
                preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
            )
        except OSError as error:
            raise Failed(str(error)) from error
        self.pid = self.process.pid

    def is_over(self):
        """Without reaping: the usage is still to be had."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None

    def end(self):
        """Waits for the end and returns the Sample."""
        deadline = self.started + PATIENCE
        try:
            if not wait_without_reaping(self.pid, deadline):
                self.process.kill()
                raise Failed(f"did not end within {PATIENCE} s: {self.process.args}")
        finally:
            _, status, usage = os.wait4(self.pid, 0)
            wall = time.perf_counter() - self.started
            self.process.returncode = os.waitstatus_to_exitcode(status)
            stdout, stderr = (self._text(file) for file in self.outputs)
            self.home.cleanup()
        return Sample(
            wall_s=wall,
            user_s=usage.ru_utime,
            system_s=usage.ru_stime,
            peak_rss_kib=usage.ru_maxrss,
            status=self.process.returncode,
            stdout=stdout,
            stderr=stderr,
        )

    @staticmethod
    def _text(file):
        file.seek(0)
        with file:
            return file.read().decode("utf-8", "replace")


def wait_without_reaping(pid, deadline):
    """True once the process has ended, false if it has not by the deadline. Blocks in poll(2), not in a loop."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(max(0, deadline - time.perf_counter()) * 1000))
    finally:
        os.close(descriptor)


def run(argv, extra_environment, cores=None):
    """Runs a client to its end."""
    return Running(argv, extra_environment, cores).end()


def spawned(argv, extra_environment):
    """Runs a program of some milliseconds: started by posix_spawn(3) and waited for, with nothing else in between."""
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-home-") as home, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        words, variables = [str(word) for word in argv], environment(home, extra_environment)
        redirected = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for file, number in ((out, 1), (err, 2))]
        began = time.perf_counter()
        pid = os.posix_spawn(words[0], words, variables, file_actions=redirected)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - began
        stdout, stderr = (Running._text(file) for file in (out, err))
    return Sample(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status), stdout, stderr)


def run_checked(argv, extra_environment, cores=None):
    """Runs a client that must succeed."""
    sample = run(argv, extra_environment, cores)
    if sample.status != 0:
        raise Failed(f"status {sample.status}: {' '.join(argv)}\n{sample.stderr[-2000:]}")
    return sample
