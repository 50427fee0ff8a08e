"""What is injected into hosts, for `sshoal why` to find: the test bed's own, and slow_logins/fresh.toml's; with the right answers."""

import tomllib
from dataclasses import dataclass, field

from .install import REPO

FOLDER = REPO / "bench/slow_logins"
# The test bed's own and those of fresh.toml, which were written without knowing the rules.
SETS = ("testbed", "fresh")


@dataclass(frozen=True)
class Injection:
    """Something slow on a host or at its client, or what looks so (a decoy), or nothing (clean)."""

    set: str
    name: str
    # `cause`, `decoy`, `clean` or `pair`.
    role: str
    # What the test bed is told to start.
    words: str = "clean"
    milliseconds: int | None = None
    # For each thing that is injected the causes that are right.
    expected: tuple = ()
    # Whether its runs are written down, so that it is known what they add up to.
    counted: bool = False
    # The entry of fresh.toml.
    entry: dict = field(default_factory=dict)

    @property
    def label(self):
        return self.name if self.milliseconds is None or self.role == "pair" else f"{self.name} {self.milliseconds} ms"

    @property
    def of_ssh(self):
        return self.entry.get("of_ssh", False)


def load(name):
    return tomllib.loads((FOLDER / name).read_text())


def all_of(sets, milliseconds):
    """Every cause with each of these times, decoys, pairs and clean hosts: those that belong to `sets`."""
    expected = load("expected.toml")
    choice = expected["choice"]
    found = []
    for name in SETS:
        if name in sets:
            of_set = testbed(expected, choice, milliseconds) if name == "testbed" else fresh(expected, choice, milliseconds)
            found += of_set
    return found


def under_load():
    """The smaller set that is measured under load: only sizes and names of expected.toml's `loaded`; and how many clean hosts."""
    choice = load("expected.toml")["loaded"]
    wanted = {(name, time) for name in choice["scaled"] for time in choice["milliseconds"]}
    wanted |= {(name, time) for name, times in choice["some"].items() for time in times}
    wanted |= {(name, None) for name in choice["unscaled"]}
    found = all_of(SETS, sorted({time for _, time in wanted if time}))
    return [one for one in found if (one.name, one.milliseconds) in wanted], choice["clean"]


def clean(count):
    """So many hosts on which nothing is slow."""
    return [Injection("testbed", "clean", "clean") for _ in range(count)]


def times(name, scaled, choice, milliseconds):
    """The times to try it with; None where there is nothing to choose."""
    most = choice["at_most"].get(name)
    return [time for time in milliseconds if most is None or time <= most] if scaled else [None]


def testbed(expected, choice, milliseconds):
    found = []
    for name, causes in expected["testbed"].items():
        scaled = name in choice["testbed_scaled"]
        counted = scaled and name not in choice["uncounted"]
        for time in times(name, scaled, choice, milliseconds):
            words = name if time is None else f"{name}:{time}"
            found.append(Injection("testbed", name, "cause", words, time, (tuple(causes),), counted))
    for words in choice["pairs"]:
        names = [part.partition(":")[0] for part in words.split("+")]
        found.append(Injection("testbed", words, "pair", words, None, tuple(tuple(expected["testbed"][name]) for name in names)))
    found += [Injection("testbed", name, "decoy", name) for name in choice["decoys"]]
    return found


def fresh(expected, choice, milliseconds):
    found = []
    for entry in load("fresh.toml")["injection"]:
        name, scaled = entry["name"], entry.get("scaled", False)
        causes = (tuple(expected["fresh"][name]),) if entry["role"] == "cause" else ()
        counted = scaled and not entry.get("uncounted", False)
        for time in times(name, scaled, choice, milliseconds):
            found.append(Injection("fresh", name, entry["role"], "clean", time, causes, counted, entry))
    return found
