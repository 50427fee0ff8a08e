"""What `sshoal why --json` says of a host, beside what was injected there."""

# As near as what is attributed to a cause has to be to what it takes, in microseconds or as a share.
NEAR_US, NEAR = 10_000, 0.1
# What is right of any host while the machine is under load, beside what was injected.
OF_LOAD = {"cpu-pressure", "cpu-steal", "disk-load", "memory-pressure"}
# What the installed ssh alone pays for on every host: its sntrup761 and its delayed acknowledgements are slow wherever it logs in.
OF_SSH = {"post-quantum-exchange", "delayed-acknowledgement"}


def findings(report):
    """Those of our login, then those of ssh alone, each the most expensive first."""
    return report["findings"] + report["ssh_findings"]


def row(injection, report):
    """What counts of a report, for the raw data."""
    kept = ("cause", "certainty", "by", "cost_us", "ssh_cost_us", "saving_us", "alternatives")
    return {
        "set": injection.set,
        "name": injection.name,
        "role": injection.role,
        "milliseconds": injection.milliseconds,
        "expected": injection.expected,
        "of_ssh": injection.of_ssh,
        "reported_tier": report["tier"],
        "findings": [{name: found[name] for name in kept} for found in findings(report)],
        "totals_us": {login["by"]: login["total_us"] for login in report["logins"]},
        "unexplained_us": {login["by"]: login["unexplained_us"] for login in report["logins"]},
        "phases_us": {login["by"]: {phase["phase"]: phase["duration"]["median_us"] for phase in login["phases"]} for login in report["logins"]},
        "failures": len(report["failures"]),
    }


def names_it(found, causes):
    """`named` where a finding is the cause itself, `among` where it is told as one that would look the same."""
    if found["cause"] in causes:
        return "named"
    return "among" if set(found["alternatives"]) & set(causes) else None


def of_host(row):
    """The findings but for those that tell of the load that there is, or of what ssh pays for anywhere."""
    is_of_load = lambda found: row["load"] != "idle" and found["cause"] in OF_LOAD  # noqa: E731
    is_of_ssh = lambda found: found["by"] == "ssh" and found["cause"] in OF_SSH  # noqa: E731
    wanted = {cause for causes in row["expected"] for cause in causes}
    return [found for found in row["findings"] if found["cause"] in wanted or not (is_of_load(found) or is_of_ssh(found))]


def judged(row):
    """What came of each thing that was injected, and the findings that are about nothing that was."""
    causes, found = row["expected"], of_host(row)
    answers = []
    for wanted in causes:
        ways = [names_it(one, wanted) for one in found]
        answers.append("named" if "named" in ways else "among" if "among" in ways else None)
    wrong = [one["cause"] for one in found if not any(names_it(one, wanted) for wanted in causes)]
    return answers, wrong


def is_first(row):
    """Whether the first finding is the cause that was injected, or one of those."""
    found = of_host(row)
    return bool(found) and any(names_it(found[0], wanted) == "named" for wanted in row["expected"])


def attributed_us(row):
    """What is attributed to what was injected, by the client whose login it is; None where nothing is, or logins fail."""
    of = [found for found in row["findings"] if any(names_it(found, wanted) for wanted in row["expected"])]
    if not of or row["failures"]:
        return None
    by = of[0]["by"]
    return by, sum(found["cost_us"] for found in of if found["by"] == by)


def error_us(row):
    """How much more is attributed than a login loses; None where either is not known."""
    found, truth = attributed_us(row), row.get("truth_us")
    if found is None or truth is None or truth.get(found[0]) is None:
        return None
    return found[1] - truth[found[0]]


def is_near(error, truth):
    return abs(error) <= max(NEAR_US, NEAR * truth)
