"""The login that `sshoal why` was begun for, built again: update-motd.d starts 60 processes, most of which run no program, and a program
beside them writes to the disk. Whether all of them are found, each under its parent, is held against what the processes themselves tell;
then the printed fix is applied, and what it saves is held against what was predicted."""

from . import injections, judging, load, slow_clients, slow_hosts

NAME = "seed-case"
CAUSE = "pam-motd"
SCRIPT = "/etc/update-motd.d/60-landscape"
# Processes, three to a round: one that runs no program, one that makes a third, and that, which runs one.
ROUNDS = 20
PROCESSES = 3 * ROUNDS
# Each appends its own number and its parent's (proc_pid_stat(5)).
TELL = "read -r pid comm state parent rest </proc/self/stat; echo $pid $parent >>$told"
TEXT = f"""#!/bin/sh
told=/run/sshoal-slow/told.$$
i=0
while [ $i -lt {ROUNDS} ]; do
( {TELL} )
( {TELL}; ( {TELL}; exec sleep 0.02 ); : )
i=$((i + 1))
done
"""
# Logins by each client before the fix and after it: what the disk does meanwhile differs from one to the next.
LOGINS = 15


def measure(scorer, say):
    injection = injections.Injection("testbed", NAME, "cause", f"motd-processes:{PROCESSES}", None, ((CAUSE,),))
    with slow_hosts.started(injection, scorer.testbed, scorer.tools) as host, load.writing(), slow_clients.of(host) as client:
        (host.root / SCRIPT.lstrip("/")).write_text(TEXT)
        flags = ["--json", "--repeat", str(LOGINS)]
        scorer.record.command(NAME, "before", scorer.words(client, *flags, "--trace"), {})
        report = scorer.why(client, *flags, "--trace")
        told = told_by(host)
        script = scorer.judged(report)["root"][1]
        host.apply(script)
        scorer.record.command(NAME, "after", scorer.words(client, *flags, "--no-host"), {})
        after = scorer.why(client, *flags, "--no-host")
    row = {"told": told, "traced": traced(report), "script": script} | judged(report, after)
    row |= compared(row["traced"], told)
    scorer.record.experiment(NAME, {"processes": PROCESSES, "logins": LOGINS, "beside": "dd conv=fdatasync", "text": TEXT}, [row])
    ms = lambda us: f"{us / 1000:.1f} ms"  # noqa: E731
    for by, fix in row["fix"].items():
        say(f"{NAME}: {by}: predicted {ms(fix['predicted_us'])}, saved {ms(fix['saved_us'])} of {ms(fix['before_us'])}")
    say(f"{NAME}: {row['found']} of {len(told)} processes found, {row['right_links']} under the right parent; first: {row['first']}")


def told_by(host):
    """What the processes of the last run of the script have told: that of the login that was traced."""
    files = (host.root / "run/sshoal-slow").glob("told.*")
    last = max(files, key=lambda path: path.stat().st_mtime_ns)
    return [[int(word) for word in line.split()] for line in last.read_text().splitlines()]


def traced(report):
    """The processes below the script by the trace, in the order of their birth: number and parent; the script itself comes first."""
    processes = (report["trace"] or {"processes": []})["processes"]
    ran = lambda process: any(program["file"] == SCRIPT for program in process["programs"])  # noqa: E731
    scripts = [process for process in processes if ran(process)]
    if not scripts:
        return []
    family = {scripts[0]["pid"]: scripts[0]}
    for process in processes[processes.index(scripts[0]) + 1 :]:
        if process["parent"] in family:
            family[process["pid"]] = process
    return [[process["pid"], process["parent"]] for process in family.values()]


def compared(traced, told):
    """How many processes were found, and under the right parents. The kernel's numbers may be others than the host's, in a container:
    they are told apart by their order, for they are born and tell one after the other."""
    if not traced:
        return {"found": 0, "right_links": 0}
    links = lambda family: [next((at for at, (pid, _) in enumerate(family) if pid == parent), None) for _, parent in family]  # noqa: E731
    found = traced[1:]
    right = [one == other for one, other in zip(links(found), links(told))]
    strangers = [parent for at, (_, parent) in enumerate(found) if links(found)[at] is None and parent != traced[0][0]]
    return {"found": len(found), "right_links": sum(right) - len(strangers)}


def judged(report, after):
    findings = judging.findings(report)
    of_cause = [found for found in report["findings"] if found["cause"] == CAUSE]
    totals = [{login["by"]: login["total_us"] for login in one["logins"]} for one in (report, after)]
    fix = {}
    for by, member in (("sshoal", "saving_us"), ("ssh", "ssh_cost_us")):
        before, later = (total.get(by) for total in totals)
        if of_cause and before is not None and later is not None:
            predicted = of_cause[0][member] or 0
            fix[by] = {"predicted_us": predicted, "saved_us": before - later, "before_us": before, "after_us": later}
    pressure = {name: report["facts"].get(f"host.pressure.{name}") for name in ("cpu", "io", "memory")}
    first = findings[0]["cause"] if findings else None
    return {
        "first": first,
        "certainty": of_cause[0]["certainty"] if of_cause else None,
        "findings": [[found["cause"], found["cost_us"]] for found in findings],
        "fix": fix,
        "pressure": pressure,
        "tier": report["tier"],
        "measured_before": report["measured"],
        "measured_after": after["measured"],
    }
