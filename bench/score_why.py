#!/usr/bin/env python3
"""Has `sshoal why` find out why hosts are slow that are slow on purpose, and keeps score: results/DATE-NAME/.

What is injected: docs/slow-hosts.md, and slow_logins/fresh.toml, whose author had not read the rules. What is right: slow_logins/expected.toml.
Idle and under load: causes that take so many milliseconds, pairs, decoys, clean hosts; then the script of --fix is run, or the injection taken
away where that leaves the change to a human, and the saving measured. Each host is looked at once, with all rights, and judged by each tier of the same logins (examples/judge_again of the crate
`why`). Before them comes the login that all this was begun for (harness/seed_case.py). why_table.py makes the table of docs/why.md from it. Needs root.
"""

import argparse
import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import injections, judging, load, seed_case, slow_clients, slow_hosts
from harness.install import REPO
from harness.measure import Failed
from harness.record import Record

# By which rights things are found out.
TIERS = ("client", "no-root", "root")
# Longest that one report may take, in seconds: dead name servers are waited for several times.
PATIENCE = 900
# Those take minutes: they are measured if they are named.
LONG = ("use-dns-dead", "libwrap-dead", "lost-aaaa")
# Sizes and clean hosts of --quick.
QUICK_MILLISECONDS, QUICK_CLEAN = [200], 3
# What is measured first.
ORDER = (200, None, 20, 700, 50)
# At which size fixes are tried.
FIXED_MILLISECONDS = 200


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="why", help="of the results folder, after the date (default: why)")
    parser.add_argument("--only", metavar="NAME,NAME", help="only these injections, `clean` and `seed-case` among them (default: all but some that take minutes)")
    parser.add_argument("--without", default="", metavar="NAME,NAME", help="none of these")
    parser.add_argument("--clean", type=int, help="how many clean hosts (default: those of expected.toml)")
    parser.add_argument("--sets", default=",".join(injections.SETS), help="testbed, fresh, or both (default)")
    parser.add_argument("--roles", default="cause,pair,decoy,clean", help="which kinds of them (default: all)")
    parser.add_argument("--tiers", default=",".join(TIERS), help="judged by these only; without `root` nothing is traced (default: all)")
    parser.add_argument("--milliseconds", metavar="MS,MS", help="sizes (default: those of expected.toml)")
    parser.add_argument("--repeat", type=int, default=5, help="logins by each client in a report (default: 5)")
    parser.add_argument("--loads", default="idle,loaded", help="idle, loaded, or both (default); under load a smaller set is measured (expected.toml)")
    parser.add_argument("--minutes", type=float, help="of idle hosts no more than begin in so many minutes, of those under load the same (default: all)")
    parser.add_argument("--realtime", action="store_true", help="go before whatever else runs on the machine, where it is not really idle")
    parser.add_argument("--no-fixes", action="store_true", help="change nothing on the hosts")
    parser.add_argument("--quick", action="store_true", help="one size, few clean hosts, idle: some minutes")
    parser.add_argument("--programs", type=Path, default=REPO / "target/release", metavar="DIR", help="where sshoal, sshoal-testbed and examples/judge_again are")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="all reports as they were, a line each, are appended to this file")
    parser.add_argument("--again", type=Path, metavar="FILE", help="measure nothing: score these reports, as examples/judge_again of `why` wrote them")
    options = parser.parse_args()
    options.tiers = options.tiers.split(",")
    choice = injections.load("expected.toml")["choice"]
    options.clean = options.clean or (QUICK_CLEAN if options.quick else choice["clean"])
    sizes = [int(text) for text in options.milliseconds.split(",")] if options.milliseconds else choice["milliseconds"]
    options.milliseconds = QUICK_MILLISECONDS if options.quick else sizes
    options.loads = ["idle"] if options.quick else options.loads.split(",")
    options.only = options.only.split(",") if options.only else None
    return options


def chosen(options, loaded):
    """The injections, with the clean hosts spread among them: whatever else changes meanwhile, it touches both."""
    if loaded == "idle":
        slow, count = injections.all_of(options.sets.split(","), options.milliseconds), options.clean
    else:
        slow, count = injections.under_load()
        slow = [injection for injection in slow if injection.set in options.sets.split(",")]
    if options.only:
        slow = [injection for injection in slow if injection.name in options.only]
    else:
        slow = [injection for injection in slow if injection.name not in LONG]
    # Should time run out (--minutes), sizes that say the least are missing.
    slow.sort(key=lambda injection: ORDER.index(injection.milliseconds) if injection.milliseconds in ORDER else len(ORDER))
    roles, without = options.roles.split(","), options.without.split(",")
    slow = [injection for injection in slow if injection.role in roles and injection.name not in without]
    clean = injections.clean(count) if "clean" in roles and (not options.only or "clean" in options.only) else []
    every = max(1, len(slow) // max(1, len(clean)))
    mixed = []
    for at, injection in enumerate(slow):
        if at % every == 0 and clean:
            mixed.append(clean.pop())
        mixed.append(injection)
    return mixed + clean


class Scorer:
    """Measures one host after the other, idle or under load."""

    def __init__(self, options, record, tools):
        self.options, self.record, self.tools = options, record, tools
        self.sshoal = options.programs / "sshoal"
        self.testbed = options.programs / "sshoal-testbed"
        self.rows = []

    def measure(self, loaded):
        until = time.monotonic() + 60 * self.options.minutes if self.options.minutes else None
        for injection in chosen(self.options, loaded):
            if until and time.monotonic() > until:
                say(f"not measured: {injection.label}, {loaded}: no time left")
                continue
            try:
                rows = self.host(injection, loaded)
            except (Failed, subprocess.SubprocessError, OSError) as failure:
                say(f"not measured: {injection.label}: {failure}")
                continue
            for row in rows:
                told(row)
            self.rows += rows
            self.write()

    def write(self):
        settings = {"repeat": self.options.repeat, "tiers": self.options.tiers}
        self.record.experiment("why", settings, self.rows)

    def host(self, injection, loaded):
        """The rows of a host, one for each tier."""
        with slow_hosts.started(injection, self.testbed, self.tools) as host:
            is_compared = injection.role == "cause" and not injection.counted and loaded == "idle"
            without = self.totals(host, is_slow=False) if is_compared and injection.set == "fresh" else None
            host.make_slow()
            with slow_clients.of(host) as client:
                counted = self.counted_us(injection, host, client)
                report = self.report(client, injection.label)
                judged = self.judged(report)
                rows = [judging.row(injection, report) | {"tier": tier, "load": loaded, "counted_us": counted} for tier, (report, _) in judged.items()]
                best = rows[-1]
                can_mend = injection.role == "cause" and injection.set == "testbed" and host.about["fix"] and loaded == "idle"
                script = judged[best["tier"]][1]
                if can_mend and (is_compared or not changes(script)):
                    host.mend()
                    without = self.totals(host)
                if self.wants_fix(injection, loaded):
                    best["fix"] = self.tried(injection, script, best, without)
        for row in rows:
            row["without_us"] = without
            row["truth_us"], row["truth_by"] = self.truth(row)
        if self.options.keep:
            with self.options.keep.open("a") as kept:
                kept.write(json.dumps({"row": best, "report": report}) + "\n")
        return rows

    def totals(self, host, is_slow=True):
        """What logins to a host take now, by client; a plain client's unless that is to be slow as well."""
        with slow_clients.of(host, is_slow) as client:
            by_ssh = [] if host.injection.of_ssh or host.injection.entry.get("side") == "client" else ["--no-ssh"]
            return totals_us(self.why(client, "--json", "--no-host", "--repeat", str(self.options.repeat), *by_ssh))

    def counted_us(self, injection, host, client):
        """What one login of the installed ssh really waits for, by what was written down; None where nothing is."""
        if not injection.counted:
            return None
        before = host.runs()
        client.run(["ssh", "-F", str(client.ssh_config), client.name, "true"], PATIENCE)
        return (host.runs() - before) * injection.milliseconds * 1000

    def report(self, client, label):
        flags = ["--trace"] if "root" in self.options.tiers else []
        words = ["--json", "--repeat", str(self.options.repeat), *flags]
        self.record.command("why", label, self.words(client, *words), {})
        return self.why(client, *words)

    def why(self, client, *flags):
        # Status 3: nobody was logged in, which is a finding, too.
        return json.loads(client.run(self.words(client, *flags), PATIENCE, may_fail=True))

    def judged(self, report):
        """By tier: the report with the rights of that, and the script of --fix."""
        words = [str(self.options.programs / "examples/judge_again"), *self.options.tiers]
        ended = subprocess.run(words, input=json.dumps({"report": report}) + "\n", capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        return {line["row"]["tier"]: (line["report"], line["script"]) for line in lines}

    def again(self, path):
        """Scores reports that are there. Of a host that was measured more than once, idle or under load, the last report counts."""
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        # What was lost idle is the truth under load.
        lines.sort(key=lambda line: line["row"]["load"] != "idle")
        known = {}
        for number, line in enumerate(lines):
            old = line["row"]
            entry = {"of_ssh": old["of_ssh"]}
            injection = injections.Injection(old["set"], old["name"], old["role"], milliseconds=old["milliseconds"], expected=old["expected"], entry=entry)
            row = old | judging.row(injection, line["report"])
            if row["tier"] != self.options.tiers[-1]:
                row.pop("fix", None)
            if row.get("fix"):
                row["fix"]["predicted_us"] = predicted_us(row)
            # Clean hosts have no name of their own.
            apart = number if row["role"] == "clean" else None
            known[row["set"], row["name"], row["milliseconds"], row["load"], row["tier"], apart] = row
        for row in known.values():
            row["truth_us"], row["truth_by"] = self.truth(row)
            told(row)
            self.rows.append(row)
        self.write()

    def words(self, client, *flags):
        return [str(self.sshoal), "why", "-F", str(client.ssh_config), client.name, *flags]

    def wants_fix(self, injection, loaded):
        """At one size."""
        is_size = injection.milliseconds in (None, FIXED_MILLISECONDS)
        return injection.role == "cause" and is_size and loaded == "idle" and not self.options.no_fixes

    def tried(self, injection, script, row, mended):
        try:
            return self.fixed(injection, script, row, mended)
        except (Failed, subprocess.SubprocessError) as failure:
            say(f"not mended: {failure}")
            return None

    def fixed(self, injection, script, row, mended):
        """What the printed fix was to save, and what it saves, on another host of the kind. What the script leaves to a human is done by
        the test bed's change."""
        if changes(script):
            with slow_hosts.started(injection, self.testbed, self.tools) as host:
                host.make_slow()
                with slow_clients.of(host) as client:
                    flags = ["--json", "--no-ssh", "--no-host", "--repeat", str(self.options.repeat)]
                    before = totals_us(self.why(client, *flags)).get("sshoal")
                    host.apply(script)
                    after = self.why(client, *flags)
            by, failures, found = "script", len(after["failures"]), [found["cause"] for found in judging.findings(after)]
            after = totals_us(after).get("sshoal")
        elif mended:
            by, failures, found = "hand", 0, []
            before, after = row["totals_us"].get("sshoal"), mended.get("sshoal")
        else:
            return None
        return {
            "by": by,
            "predicted_us": predicted_us(row),
            "saved_us": None if row["failures"] or None in (before, after) else before - after,
            "failures_after": failures,
            "findings_after": found,
        }

    def truth(self, row):
        """What a login loses by client, and how that is known: counted; or beside the same host without the injection; or what it was so idle,
        or beside clean hosts."""
        if row["role"] != "cause" or row["failures"]:
            return None, None
        if row["counted_us"] is not None:
            return {by: row["counted_us"] for by in ("sshoal", "ssh")}, "counted"
        if row["load"] != "idle" and row["name"] in injections.load("expected.toml")["choice"]["padded"]:
            return None, None
        if row["load"] != "idle":
            same = [other for other in self.rows if other["load"] == "idle" and all(other[key] == row[key] for key in ("set", "name", "milliseconds", "tier"))]
            return (same[0]["truth_us"], "idle") if same else (None, None)
        without, by = row["without_us"], "without"
        if without is None:
            clean = [other for other in self.rows if other["role"] == "clean" and other["load"] == "idle" and other["tier"] == row["tier"]]
            without, by = {by: median([other["totals_us"].get(by) for other in clean]) for by in ("sshoal", "ssh")}, "clean"
        return {by: total - without[by] for by, total in row["totals_us"].items() if without.get(by) is not None}, by


def predicted_us(row):
    """What the fixes of the right findings are to save."""
    right = [found for found in row["findings"] if any(judging.names_it(found, wanted) == "named" for wanted in row["expected"])]
    return sum(found["saving_us"] for found in right if found["by"] == "sshoal")


def totals_us(report):
    return {login["by"]: login["total_us"] for login in report["logins"]}


def told(row):
    """A line on how it went."""
    answers, wrong = judging.judged(row)
    name = f"{row['name']} {row['milliseconds'] or ''}"
    first = [f"{found['cause']} {found['certainty']} {found['cost_us'] / 1000:.0f} ms" for found in row["findings"][:1]]
    error = judging.error_us(row)
    off = "" if error is None else f"{error / 1000:+.1f}"
    say(f"{row['tier']:8} {row['load']:6} {name:32} {' '.join(map(str, answers)):14} {off:>8} {' '.join(first):50} {' '.join(wrong)}")


def changes(script):
    """Whether a script of --fix does anything on the host by itself."""
    _, _, rest = script.partition("\nhost() {\n")
    lines = rest.partition("\n}\n")[0].splitlines()
    return any(line.strip() and not line.strip().startswith("#") and line.strip() != ":" for line in lines)


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def say(line):
    print(line, file=sys.stderr, flush=True)


def main():
    # Hosts and load are ended before this is, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
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
            if loaded == "idle" and (not options.only or "seed-case" in options.only):
                seed_case.measure(scorer, say)
            with load.loaded(tools.burn) if loaded == "loaded" else contextlib.nullcontext():
                scorer.measure(loaded)
    print(record.folder)


if __name__ == "__main__":
    main()
