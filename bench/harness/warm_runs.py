"""T6: a command on hosts that are logged in to already. 10,000 simulated hosts: CPU a host of `sshoal run` and of the process of
`sshoal up` together. 200 real hosts: cold and warm, beside pssh over ssh's own masters and over ours, and `ansible -m raw`."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import clients, hosts
from .install import BUILT, REPO
from .measure import Failed, environment, keepable, run_checked
from .rounds import ANSWER, interleaved

COMMAND = "true"
SSHOAL = str(REPO / "target/release/sshoal")
# Longest until all hosts are logged in to, in seconds.
PATIENCE = 300
# Between two looks, in seconds.
PAUSE = 0.1
# After a run, until whoever keeps connections has done what is left of it, in seconds.
SETTLED = 0.5
NANOSECONDS = 1e9


def measure(options, record, report):
    rows = simulated(options, record, report) + real(options, record, report)
    settings = {"hosts": keepable(options.open_connections), "real_hosts": options.real_hosts, "window": options.window, "command": COMMAND}
    record.experiment("T6", settings, rows)


def simulated(options, record, report):
    """sshoal alone: no other client keeps so many connections."""
    count = keepable(options.open_connections)
    with hosts.simulated(count, options.server_cores) as shoal, kept_by_sshoal(shoal, options.client_cores) as keeper:
        warm = Way("sshoal", keeper.run(shoal), keeper.environment, keeper.cpu_s)

        def one(way, number):
            record.command("T6", way.name, way.words, way.environment)
            before, ran = shoal.logins(), shoal.counters()["execs"]
            figures = way.measured(options.client_cores)
            shoal.expect_logins(before, way)
            if shoal.counters()["execs"] - ran != count:
                raise Failed(f"{way.label}: not every host ran the command")
            report(
                f"T6: {way.label}: {count} hosts: {figures['cpu_ms_a_host'] * 1000:.1f} us of CPU a host, "
                f"{figures['keeper_cpu_s'] * 1e6 / count:.1f} of it the keeper's"
            )
            return {"servers": "simulated", "hosts": count, **figures}

        warm.hosts = count
        # What the first command over a connection costs is not what the next one does.
        warm.measured(options.client_cores)
        return interleaved([warm], options.rounds, one)


def real(options, record, report):
    count, window = options.real_hosts, options.window
    rows = []
    with hosts.real(count, options.hosts_folder) as shoal, contextlib.ExitStack() as stack:
        keeper = stack.enter_context(kept_by_sshoal(shoal, None))
        masters = stack.enter_context(kept_by_ssh(shoal))
        ways = [
            Way("sshoal, logging in", [*keeper.run(shoal)[:-1], "-p", str(window), "--no-pool", COMMAND], keeper.environment),
            Way("sshoal", [*keeper.run(shoal)[:-1], "-p", str(window), COMMAND], keeper.environment, keeper.cpu_s),
            Way("pssh, logging in", pssh(shoal, window, "none"), {}),
            Way("pssh over ssh's masters", pssh(shoal, window, masters.control_path), {}, masters.cpu_s),
            Way("pssh over sshoal up", pssh(shoal, window, keeper.control_path), {}, keeper.cpu_s),
            Way("ansible, logging in", ansible(shoal, window), ansible_environment(shoal, "none")),
            Way("ansible over ssh's masters", ansible(shoal, window), ansible_environment(shoal, masters.control_path), masters.cpu_s),
            Way("ansible over sshoal up", ansible(shoal, window), ansible_environment(shoal, keeper.control_path), keeper.cpu_s),
        ]
        usable = []
        for way in ways:
            way.hosts = count
            try:
                way.check()
                usable.append(way)
            except Failed as error:
                report(f"NOT MEASURED: T6 {way.label}: {error}")

        def one(way, number):
            record.command("T6", way.name, way.words, way.environment)
            before = shoal.logins()
            figures = way.measured(None)
            shoal.expect_logins(before + (count if way.logs_in else 0), way)
            report(f"T6: {way.label}: {figures['cpu_ms_a_host']:.2f} ms of CPU a host, {figures['wall_s']:.2f} s")
            return {"servers": "sshd", "hosts": count, **figures}

        rows = interleaved(usable, options.rounds, one)
    return rows


@dataclass
class Way:
    """A client that goes by connections of its own, or by those that others keep."""

    name: str
    words: list
    environment: dict
    # Seconds of CPU that those have had who keep connections for it.
    keepers_cpu_s: Callable[[], float] = lambda: 0.0
    hosts: int = 0
    kex: str = clients.DEFAULT

    @property
    def label(self):
        return self.name

    @property
    def logs_in(self):
        return "logging in" in self.name

    def check(self):
        """Every host must answer."""
        words = [f"echo {ANSWER}" if word == COMMAND else word for word in self.words]
        said = run_checked(words, self.environment).stdout
        answers = said.count(ANSWER)
        if answers != self.hosts:
            raise Failed(f"{self.label}: {answers} answers from {self.hosts} hosts\n{said[-1000:]}")

    def measured(self, cores):
        before = self.keepers_cpu_s()
        sample = run_checked(self.words, self.environment, cores)
        time.sleep(SETTLED)
        keeper = self.keepers_cpu_s() - before
        cpu = sample.cpu_s + keeper
        return {"cpu_ms_a_host": cpu * 1000 / self.hosts, "client_cpu_s": sample.cpu_s, "keeper_cpu_s": keeper, **sample.record()}


def cpu_s(pid):
    """What a process has had so far: the scheduler's own count, in nanoseconds, of all its threads."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / NANOSECONDS


@dataclass
class Keeper:
    """A running `sshoal up`."""

    pid: int
    folder: Path

    @property
    def environment(self):
        return {"XDG_RUNTIME_DIR": str(self.folder)}

    @property
    def control_path(self):
        return f"{self.folder}/sshoal/%r@%h:%p"

    def cpu_s(self):
        return cpu_s(self.pid)

    @staticmethod
    def run(shoal):
        return [SSHOAL, "run", *endpoint(shoal), COMMAND]


def endpoint(shoal):
    return ["-F", str(shoal.ssh_config), "-f", str(shoal.file), "-l", shoal.user, "-i", str(shoal.identity)]


@contextlib.contextmanager
def kept_by_sshoal(shoal, cores):
    """`sshoal up`, until the block is left."""
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-run-") as folder, tempfile.TemporaryFile() as said:
        up = subprocess.Popen(
            [SSHOAL, "up", "--foreground", *endpoint(shoal)],
            env=environment(folder, {"XDG_RUNTIME_DIR": folder}),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )
        try:
            wait_for_words(up, said, f"{len(shoal)} up")
            time.sleep(SETTLED)
            yield Keeper(up.pid, Path(folder))
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait(PATIENCE)


def wait_for_words(process, file, words):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        file.seek(0)
        said = file.read().decode("utf-8", "replace")
        if words in said:
            return
        if process.poll() is not None:
            break
        time.sleep(PAUSE)
    raise Failed(f"sshoal up: {said[-2000:]}")


@dataclass
class Masters:
    """An ssh for each host (`ssh -M -N`)."""

    processes: list
    folder: Path

    @property
    def control_path(self):
        return f"{self.folder}/%h"

    def cpu_s(self):
        return sum(cpu_s(process.pid) for process in self.processes)


@contextlib.contextmanager
def kept_by_ssh(shoal):
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-masters-") as folder:
        masters = Masters([], Path(folder))
        try:
            for address in shoal.addresses:
                words = ["ssh", "-F", str(shoal.ssh_config), "-M", "-N", "-S", masters.control_path, address]
                devnull = subprocess.DEVNULL
                process = subprocess.Popen(words, env=environment(folder, {}), stdin=devnull, stdout=devnull, stderr=devnull)
                masters.processes.append(process)
                if len(masters.processes) % 20 == 0:
                    wait_for_sockets(masters)
            wait_for_sockets(masters)
            yield masters
        finally:
            for process in masters.processes:
                process.terminate()
            for process in masters.processes:
                process.wait(PATIENCE)


def wait_for_sockets(masters):
    deadline = time.monotonic() + PATIENCE
    while len(list(masters.folder.iterdir())) < len(masters.processes):
        if time.monotonic() > deadline:
            raise Failed("ssh's masters do not listen")
        time.sleep(PAUSE)


def pssh(shoal, window, control_path):
    options = f"-F {shoal.ssh_config} -o ControlMaster=no -o ControlPath={control_path}"
    return ["parallel-ssh", "-h", str(shoal.file), "-p", str(window), "-t", "600", "-i", "-x", options, COMMAND]


def ansible(shoal, window):
    return [str(BUILT / "venv/bin/ansible"), "all", "-i", str(shoal.file), "-f", str(window), "-m", "raw", "-a", COMMAND]


def ansible_environment(shoal, control_path):
    options = f"-F {shoal.ssh_config} -o ControlMaster=no -o ControlPath={control_path}"
    return {"ANSIBLE_SSH_ARGS": options, "ANSIBLE_LOCALHOST_WARNING": "0", "ANSIBLE_DEPRECATION_WARNINGS": "0", "ANSIBLE_SSH_CONTROL_PATH": control_path}
