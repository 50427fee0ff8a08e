"""What it costs a login to be followed on its host: stock ssh logs in with the tracer of `sshoal why --trace` following sshd, and
without, in turns. Nothing of sshoal is in the client; that the tracer has seen the login is checked by the records it gives out."""

import json
import os
import statistics
import struct
import subprocess

from .hosts import started
from .install import REPO
from .measure import Failed, run_checked

# Hosts of the test bed's: an ordinary login with PAM, one of about 100 ms, and one of many short programs.
LOGINS = ("clean", "motd:50", "motd-processes:60")
WAYS = ("alone", "followed")
# Logins that one tracer follows: it takes seconds until the kernel has made and taken away its probes.
BLOCK = 8
COMMAND = "true"
FIRST_LINE = b"sshoal-trace 1\n"
# Longest that a tracer may take to end, in seconds.
PATIENCE = 120


def measure(options, record, report):
    if os.geteuid() != 0:
        report("NOT MEASURED: trace-overhead: only root can trace")
        return
    rows = []
    for login in LOGINS:
        with started(["slow-hosts", login]) as host:
            rows += measured(options, record, login, host)
        alone, more = overhead(rows, login)
        report(
            f"trace-overhead: {login}: median {alone * 1000:.1f} ms alone, followed {more * 1000:+.2f} ms, {more / alone:+.1%} "
            f"(the median of {options.trace_rounds} differences within a round)"
        )
    settings = {"rounds": options.trace_rounds, "command": COMMAND, "logins": LOGINS, "client": "ssh"}
    record.experiment("trace-overhead", settings, rows)


def overhead(rows, login):
    """Seconds that a login takes alone, and how many more followed: in the middle of the rounds, each compared by itself."""
    walls = {}
    for row in rows:
        if row["login"] == login:
            walls.setdefault(row["round"], {})[row["way"]] = row["wall_s"]
    alone = statistics.median(wall["alone"] for wall in walls.values())
    return alone, statistics.median(wall["followed"] - wall["alone"] for wall in walls.values())


def measured(options, record, login, host):
    server = json.loads((host.folder / "hosts.jsonl").read_text())["pid"]
    # The client's own work differs by tens of milliseconds with sntrup761, which is nothing of the host's.
    argv = ["ssh", "-F", str(host.ssh_config), "-o", "KexAlgorithms=curve25519-sha256", host.addresses[0], COMMAND]
    follow = [str(program()), "--pid", str(server)]
    record.command("trace-overhead", f"{login}, alone", argv, {})
    record.command("trace-overhead", f"{login}, followed by", follow, {})
    # Whatever is slower the first time.
    run_checked(argv, {})
    rows = []
    for block in range(-(-options.trace_rounds // BLOCK)):
        turn = block % len(WAYS)
        rounds = range(block * BLOCK, min((block + 1) * BLOCK, options.trace_rounds))
        for way in WAYS[turn:] + WAYS[:turn]:
            tracer = Tracer(follow) if way == "followed" else None
            of_block = [{"login": login, "way": way, "round": number, **run_checked(argv, {}).record()} for number in rounds]
            if tracer:
                of_block[-1] |= tracer.end()
            rows += of_block
    return rows


def program():
    """The newest that was built for this machine."""
    built = REPO.glob(f"target/release/build/sshoal-tracer-*/out/tracer-{os.uname().machine}")
    found = [path for path in built if path.stat().st_size > 0]
    if not found:
        raise Failed("no tracer was built")
    return max(found, key=lambda path: path.stat().st_mtime)


class Tracer:
    """A tracer that follows already."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != FIRST_LINE:
            raise Failed("the tracer does not begin")
        while (frame := self.next())[0] != b"A":
            pass

    def next(self):
        head = self.process.stdout.read(5)
        if len(head) < 5:
            raise Failed("the tracer has ended before its time")
        letter, length = struct.unpack(">cI", head)
        content = self.process.stdout.read(length)
        if letter == b"X":
            raise Failed(f"the tracer: {content.decode()}")
        return letter, content

    def end(self):
        """Has it end; how many octets of records it gave out for all that it has followed, and how many records were lost."""
        self.process.stdin.close()
        octets = lost = 0
        while (frame := self.next())[0] != b"E":
            if frame[0] == b"P":
                octets += len(frame[1]) - 2
            if frame[0] == b"L":
                lost = sum(int(word) for line in frame[1].decode().splitlines() for word in line.split()[1:])
        if self.process.wait(PATIENCE) != 0 or octets == 0:
            raise Failed("the tracer has followed nothing")
        return {"record_octets": octets, "lost": lost}
