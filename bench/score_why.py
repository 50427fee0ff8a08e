#!/usr/bin/env python3
"""Has `sshoal why` find out why hosts are slow that are slow on purpose, and keeps score: results/DATE-NAME/.

What is injected: docs/slow-hosts.md, and slow_logins/fresh.toml, whose author had not read the rules. What is right: slow_logins/expected.toml. For
each tier, idle and under load: causes that take so many milliseconds, pairs, decoys, clean hosts; then what is printed to be changed is
changed, and the saving measured. why_table.py makes the table of docs/why.md from it. Needs root.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import injections, judging, load, slow_clients, slow_hosts
from harness.install import REPO
from harness.measure import Failed
from harness.record import Record

# By which rights things are found out, and the flags for that; `--tier NAME=FLAGS` adds one.
TIERS = {"client": "--no-host", "no-root": ""}
# Longest that one report may take, in seconds: dead name servers are waited for several times.
PATIENCE = 900
# Sizes and clean hosts of --quick.
QUICK_MILLISECONDS, QUICK_CLEAN = [200], 3
# At which size fixes are tried.
FIXED_MILLISECONDS = 200


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="why", help="of the results folder, after the date (default: why)")
    parser.add_argument("--only", metavar="NAME,NAME", help="only these injections, `clean` among them (default: all)")
    parser.add_argument("--without", default="", metavar="NAME,NAME", help="none of these")
    parser.add_argument("--clean", type=int, help="how many clean hosts (default: those of expected.toml)")
    parser.add_argument("--sets", default=",".join(injections.SETS), help="testbed, fresh, or both (default)")
    parser.add_argument("--roles", default="cause,pair,decoy,clean", help="which kinds of them (default: all)")
    parser.add_argument("--tiers", help="only these (default: all)")
    parser.add_argument("--tier", action="append", default=[], metavar="NAME=FLAGS", help="a further tier, by flags of `sshoal why`")
    parser.add_argument("--milliseconds", metavar="MS,MS", help="sizes (default: those of expected.toml)")
    parser.add_argument("--repeat", type=int, default=5, help="logins by each client in a report (default: 5)")
    parser.add_argument("--loads", default="idle,loaded", help="idle, loaded, or both (default)")
    parser.add_argument("--realtime", action="store_true", help="go before whatever else runs on the machine, where it is not really idle")
    parser.add_argument("--no-fixes", action="store_true", help="change nothing on the hosts")
    parser.add_argument("--quick", action="store_true", help="one size, few clean hosts, idle: some minutes")
    parser.add_argument("--programs", type=Path, default=REPO / "target/release", metavar="DIR", help="where sshoal and sshoal-testbed are")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="all reports as they were, a line each, are appended to this file")
    parser.add_argument("--again", type=Path, metavar="FILE", help="measure nothing: score these reports, as examples/judge_again of `why` wrote them")
    options = parser.parse_args()
    options.tier = TIERS | dict(tier.split("=", 1) for tier in options.tier)
    if options.tiers:
        options.tier = {name: options.tier[name] for name in options.tiers.split(",")}
    choice = injections.load("expected.toml")["choice"]
    options.clean = options.clean or (QUICK_CLEAN if options.quick else choice["clean"])
    sizes = [int(text) for text in options.milliseconds.split(",")] if options.milliseconds else choice["milliseconds"]
    options.milliseconds = QUICK_MILLISECONDS if options.quick else sizes
    options.loads = ["idle"] if options.quick else options.loads.split(",")
    return options


def chosen(options):
    """The injections, with the clean hosts spread among them: whatever else changes meanwhile, it touches both."""
    slow = injections.all_of(options.sets.split(","), options.milliseconds)
    if options.only:
        slow = [injection for injection in slow if injection.name in options.only.split(",")]
    roles, without = options.roles.split(","), options.without.split(",")
    slow = [injection for injection in slow if injection.role in roles and injection.name not in without]
    clean = injections.clean(options.clean) if "clean" in roles and (not options.only or "clean" in options.only) else []
    every = max(1, len(slow) // max(1, len(clean)))
    mixed = []
    for at, injection in enumerate(slow):
        if at % every == 0 and clean:
            mixed.append(clean.pop())
        mixed.append(injection)
    return mixed + clean


class Scorer:
    """Measures one host after the other, by one tier, idle or under load."""

    def __init__(self, options, record, tools):
        self.options, self.record, self.tools = options, record, tools
        self.sshoal = options.programs / "sshoal"
        self.testbed = options.programs / "sshoal-testbed"
        self.rows = []

    def measure(self, tier, loaded):
        rows = [self.host(injection, tier, loaded) for injection in chosen(self.options)]
        self.add([row for row in rows if row])

    def add(self, rows):
        """Rows of one tier, idle or under load; beside its clean hosts."""
        clean = {by: median([row["totals_us"].get(by) for row in rows if row["role"] == "clean"]) for by in ("sshoal", "ssh")}
        for row in rows:
            row["truth_us"] = truth(row, clean)
        self.rows += rows
        settings = {"repeat": self.options.repeat, "tiers": self.options.tier}
        self.record.experiment("why", settings, self.rows)

    def host(self, injection, tier, loaded):
        """The row of a host; None where this machine cannot show it."""
        try:
            with slow_hosts.started(injection, self.testbed, self.tools) as host, slow_clients.of(host) as client:
                counted = self.counted_us(injection, host, client)
                report = self.report(client, tier, injection.label)
                row = judging.row(injection, report) | {"tier": tier, "load": loaded, "counted_us": counted}
                if self.wants_fix(injection, tier, loaded):
                    row["fix"] = self.fixed(host, client, row)
        except (Failed, subprocess.TimeoutExpired) as failure:
            say(f"not measured: {failure}")
            return None
        if self.options.keep:
            with self.options.keep.open("a") as kept:
                kept.write(json.dumps({"row": row, "report": report}) + "\n")
        told(row)
        return row

    def counted_us(self, injection, host, client):
        """What one login of the installed ssh really waits for, by what was written down; None where nothing is."""
        if not injection.counted:
            return None
        before = host.runs()
        client.run(["ssh", "-F", str(client.ssh_config), client.name, "true"], PATIENCE)
        return (host.runs() - before) * injection.milliseconds * 1000

    def report(self, client, tier, label):
        flags = self.options.tier[tier].split()
        words = self.words(client, "--json", "--repeat", str(self.options.repeat), *flags)
        self.record.command("why", f"{tier} {label}", words, {})
        # Status 3: nobody was logged in, which is a finding, too.
        return json.loads(client.run(words, PATIENCE, may_fail=True))

    def again(self, path):
        """Scores reports that are there."""
        groups = {}
        for line in map(json.loads, path.read_text().splitlines()):
            old = line["row"]
            injection = injections.Injection(old["set"], old["name"], old["role"], milliseconds=old["milliseconds"], expected=old["expected"], entry={"of_ssh": old["of_ssh"]})
            row = old | judging.row(injection, line["report"])
            groups.setdefault((row["tier"], row["load"]), []).append(row)
        for (tier, loaded), rows in groups.items():
            for row in rows:
                told(row)
            self.add(rows)

    def words(self, client, *flags):
        return [str(self.sshoal), "why", "-F", str(client.ssh_config), client.name, *flags]

    def wants_fix(self, injection, tier, loaded):
        """With as many rights as there are, at one size."""
        is_size = injection.milliseconds in (None, FIXED_MILLISECONDS)
        is_last = tier == list(self.options.tier)[-1]
        return injection.role == "cause" and is_size and is_last and loaded == "idle" and not self.options.no_fixes

    def fixed(self, host, client, row):
        """What the printed fix was to save, and what it saves. What the script leaves to a human is done by the test bed's change."""
        script = client.run(self.words(client, "--fix", "--repeat", "2", "--no-ssh"), PATIENCE, may_fail=True)
        if changes(script):
            host.apply(script)
            by = "script"
        elif host.injection.set == "testbed" and host.about["fix"]:
            host.mend()
            by = "hand"
        else:
            return None
        report = json.loads(client.run(self.words(client, "--json", "--no-ssh", "--no-host", "--repeat", "3"), PATIENCE, may_fail=True))
        after = {login["by"]: login["total_us"] for login in report["logins"]}.get("sshoal")
        before = row["totals_us"].get("sshoal")
        right = [found for found in row["findings"] if any(judging.names_it(found, wanted) == "named" for wanted in row["expected"])]
        return {
            "by": by,
            "predicted_us": sum(found["saving_us"] for found in right if found["by"] == "sshoal"),
            "saved_us": None if row["failures"] or None in (before, after) else before - after,
            "failures_after": len(report["failures"]),
            "findings_after": [found["cause"] for found in judging.findings(report)],
        }


def told(row):
    """A line on how it went."""
    answers, wrong = judging.judged(row)
    name = f"{row['name']} {row['milliseconds'] or ''}"
    first = [f"{found['cause']} {found['certainty']} {found['cost_us'] / 1000:.0f} ms" for found in row["findings"][:1]]
    say(f"{row['tier']:8} {row['load']:6} {name:32} {' '.join(map(str, answers)):14} {' '.join(first):50} {' '.join(wrong)}")


def changes(script):
    """Whether a script of --fix does anything on the host by itself."""
    _, _, rest = script.partition("\nhost() {\n")
    lines = rest.partition("\n}\n")[0].splitlines()
    return any(line.strip() and not line.strip().startswith("#") and line.strip() != ":" for line in lines)


def truth(row, clean):
    """What a login loses, by client: as counted, or else beside a clean host."""
    if row["role"] != "cause" or row["failures"]:
        return None
    if row["counted_us"] is not None:
        return {by: row["counted_us"] for by in ("sshoal", "ssh")}
    return {by: row["totals_us"][by] - clean[by] for by in row["totals_us"] if clean.get(by) is not None}


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def say(line):
    print(line, file=sys.stderr, flush=True)


def main():
    options = parse_arguments()
    record = Record(options.name, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="sshoal-score-tools-") as folder:
        tools = slow_hosts.Tools(folder)
        scorer = Scorer(options, record, tools)
        if options.again:
            scorer.again(options.again)
            options.loads = []
        for loaded in options.loads:
            if options.realtime:
                load.before_all_others()
            with load.loaded(tools.burn) if loaded == "loaded" else contextlib.nullcontext():
                for tier in options.tier:
                    scorer.measure(tier, loaded)
    print(record.folder)


if __name__ == "__main__":
    main()
