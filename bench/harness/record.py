"""The raw data of one benchmark run: a folder with the figures, the commands and the machine."""

import datetime
import json
import shlex

from . import machine
from .install import REPO


class Record:
    """Collects samples and writes them after every experiment, so that an interrupted run loses little."""

    def __init__(self, name, arguments):
        now = datetime.datetime.now(datetime.timezone.utc)
        self.folder = REPO / "bench/results" / f"{now:%Y-%m-%d}-{name}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = {"started": f"{now:%Y-%m-%dT%H:%M:%SZ}", "arguments": arguments, "experiments": {}}
        self.commands = []
        (self.folder / "machine.json").write_text(json.dumps(machine.describe(), indent=2) + "\n")

    def command(self, experiment, label, argv, environment):
        """Notes the exact words of a client, once for each experiment."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
        line = f"{experiment}\t{label}\t{' '.join(variables + [shlex.join(argv)])}"
        line = line.replace(str(REPO) + "/", "")
        if line not in self.commands:
            self.commands.append(line)

    def experiment(self, name, settings, rows):
        """One experiment's settings, and its rows of figures as they were measured."""
        self.data["experiments"][name] = {"settings": settings, "rows": rows}
        (self.folder / "raw.json").write_text(json.dumps(self.data, indent=1) + "\n")
        (self.folder / "commands.txt").write_text("".join(f"{line}\n" for line in self.commands))
