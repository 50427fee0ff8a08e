"""known_hosts files as people have them: 21,000 lines and 2.3 MB, in the clear and hashed, with the hosts of a benchmark
spread evenly among them; and the same hosts in a file of their own."""

import base64
import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import clients
from .measure import run_checked

LINES = 21_000
ONE, PLAIN, HASHED = "only its hosts", "plain", "hashed"
KINDS = (ONE, PLAIN, HASHED)
# A file that was changed so lately, in seconds, has an index that is compared with the file at each start.
SETTLING = 4


@dataclass(frozen=True)
class KnownHosts:
    """One such file, and a place for what sshoal remembers of it."""

    kind: str
    file: Path
    cache: Path
    hosts: object

    @staticmethod
    def make_all(folder, hosts):
        """All three, for a HostSet; each in a folder of its own."""
        own = hosts.known_hosts.read_text().splitlines()
        lines = among_others(own, LINES)
        made = []
        for kind, content in ((ONE, own), (PLAIN, lines), (HASHED, lines)):
            place = Path(folder) / kind.replace(" ", "-")
            place.mkdir()
            file = place / "known_hosts"
            file.write_text("".join(f"{line}\n" for line in content))
            if kind == HASHED:
                subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
                (place / "known_hosts.old").unlink()
            made.append(KnownHosts(kind, file, place / "cache", hosts))
        time.sleep(SETTLING)
        return made

    @property
    def options(self):
        """For ssh and for sshoal alike."""
        return ["-o", f"UserKnownHostsFile={self.file}"]

    @property
    def environment(self):
        """What sshoal remembers outlives a run."""
        return {"XDG_CACHE_HOME": str(self.cache)}

    def forget(self):
        """The next run of sshoal is the first with this file; what it knows of servers it keeps."""
        for index in self.cache.glob("sshoal/known_hosts-*.index"):
            index.unlink()

    def settings(self):
        return {"lines": len(self.file.read_text().splitlines()), "bytes": self.file.stat().st_size}

    def split(self, folder):
        """One file a host by `sshoal known-hosts split`; the Sample, and ssh's option."""
        names = self.file.parent / "names"
        own = self.hosts.known_hosts.read_text().splitlines()
        names.write_text("".join(f"{line.split()[0]}\n" for line in own))
        program = [*clients.known_hosts_program(), "split", "-f", str(self.file), "-d", str(folder)]
        sample = run_checked([*program, "--input-file", str(names)], self.environment)
        return sample, ["-o", f"UserKnownHostsFile={folder}/%h"]


def among_others(own, count):
    """So many lines, of which `own` are some: other hosts' lines stand between them, always the same."""
    lots = random.Random(1)
    others = []
    for number in range(count - len(own)):
        blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + lots.randbytes(32)
        name = f"host{number:05}.dc1.prod.example.com"
        others.append(f"{name} ssh-ed25519 {base64.b64encode(blob).decode()}")
    step = len(others) // len(own)
    lines = []
    for place, line in enumerate(own):
        lines += others[place * step : (place + 1) * step] + [line]
    return lines + others[len(own) * step :]
