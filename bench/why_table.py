#!/usr/bin/env python3
"""Prints the score of `sshoal why` from the raw data of bench/score_why.py.

    why_table.py RESULTS_FOLDER... [--write]

With several folders what they have is put together. --write puts it between the markers of docs/why.md.
"""

import json
import sys
from pathlib import Path
from statistics import median

from harness import judging
from table import table

REPO = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- score:begin -->", "<!-- score:end -->"
SETS = {"testbed": "the test bed's", "fresh": "the others"}
LOADS = {"idle": "idle", "loaded": "under load"}
TIERS = ("root", "no-root", "client")


def experiments(folders, name):
    """All rows of an experiment."""
    found = []
    for folder in folders:
        found += json.loads((folder / "raw.json").read_text())["experiments"].get(name, {"rows": []})["rows"]
    return found


def groups(rows, *members):
    """Rows by the values of these members, in the order of their first appearance."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[member] for member in members), []).append(row)
    return found


def share(part, whole):
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "-"


def summary(rows):
    """How many causes are found, where, and how well their time is known."""
    lines = []
    for (of, tier, loaded), found in groups([row for row in rows if row["role"] == "cause"], "set", "tier", "load").items():
        answers = [judging.judged(row) for row in found]
        named = sum(ways == ["named"] for ways, _ in answers)
        told = sum(ways != [None] for ways, _ in answers)
        errors = [(judging.error_us(row), row) for row in found]
        errors = [(error, row["truth_us"][judging.attributed_us(row)[0]]) for error, row in errors if error is not None]
        near = sum(judging.is_near(error, truth) for error, truth in errors)
        middle = f"{median(abs(error) for error, _ in errors) / 1000:.1f} ms" if errors else "-"
        lines.append(
            [SETS[of], tier, LOADS[loaded], share(named, len(found)), share(told, len(found)), share(sum(map(judging.is_first, found)), len(found))]
            + [str(sum(len(wrong) for _, wrong in answers)), share(near, len(errors)), middle]
        )
    head = ["injections", "tier", "machine", "found by name", "by name or among those that look the same", "first in the report"]
    return table([*head, "other findings", "time within 10 % or 10 ms", "off by, in the middle"], lines)


def silence(rows):
    """Hosts on which nothing is to be found."""
    lines = []
    for (tier, loaded), found in groups([row for row in rows if row["role"] in ("clean", "decoy")], "tier", "load").items():
        cells = []
        for role in ("clean", "decoy"):
            of_role = [row for row in found if row["role"] == role]
            cells.append(share(sum(not judging.of_host(row) for row in of_role), len(of_role)))
        told = [(row["name"], ", ".join(one["cause"] for one in judging.of_host(row))) for row in found]
        loud = sorted({f"{name}: {causes}" for name, causes in told if causes})
        lines.append([tier, LOADS[loaded], *cells, "; ".join(loud) or "-"])
    return table(["tier", "machine", "clean hosts silent", "decoys silent", "found all the same"], lines)


def cell(found):
    """`+3`: found by name, and 3 ms too many; in brackets: among others; `no`: not found."""
    if not found:
        return "-"
    row = found[0]
    ways, _ = judging.judged(row)
    if None in ways:
        return "no"
    error = judging.error_us(row)
    text = "yes" if error is None else f"{error / 1000:+.0f}"
    return f"({text})" if "among" in ways else text


def each(rows, of, loaded):
    """Every cause of a set with each size: how it was found, by one tier after the other."""
    rows = [row for row in rows if row["role"] == "cause" and row["set"] == of and row["load"] == loaded]
    sizes = sorted({row["milliseconds"] for row in rows if row["milliseconds"]})
    tiers = [tier for tier in TIERS if any(row["tier"] == tier for row in rows)]
    lines = []
    for (name,), found in groups(rows, "name").items():
        line = [name]
        for size in [*sizes, None]:
            of_size = [row for row in found if row["milliseconds"] == size]
            line.append(" / ".join(cell([row for row in of_size if row["tier"] == tier]) for tier in tiers) if of_size else "")
        lines.append(line)
    return table(["injection", *(f"{size} ms" for size in sizes), "fixed"], lines)


def pairs(rows):
    lines = []
    for (name, loaded), found in groups([row for row in rows if row["role"] == "pair"], "name", "load").items():
        line = [f"`{name}`"]
        for tier in TIERS:
            for row in (row for row in found if row["tier"] == tier):
                ways, wrong = judging.judged(row)
                told = [f"{names[0]}: {way or 'no'}" for names, way in zip(row["expected"], ways)]
                line.append("; ".join(told) + (f"; beside it {', '.join(wrong)}" if wrong else ""))
        lines.append(line)
    return table(["two causes", *TIERS], lines)


def fixes(rows):
    """What was to be saved by the change, and what is; of a login by ssh where that alone is slow."""
    lines = []
    milliseconds = lambda us: "-" if us is None else f"{us / 1000:.0f} ms"  # noqa: E731
    for row in rows:
        if fix := row.get("fix"):
            size = f" {row['milliseconds']} ms" if row["milliseconds"] else ""
            is_script = fix["by"] == "script"
            predicted, saved = fix["predicted_us"], fix["saved_us"]
            without = (row["without_us"] or {}).get("ssh")
            if not is_script and not predicted and saving_of_ssh(row) and without is not None:
                predicted = saving_of_ssh(row)
                saved = row["totals_us"]["ssh"] - without
            told = milliseconds(saved)
            if row["failures"] and not fix["failures_after"]:
                told = "logins succeed"
            after = (", ".join(fix["findings_after"]) or "nothing") if is_script else "not looked at"
            lines.append([row["name"] + size, "the script" if is_script else "taking it away", milliseconds(predicted), told, after])
    return table(["injection", "mended by", "predicted", "saved", "found afterwards"], lines)


def saving_of_ssh(row):
    """What the fixes of the right findings are to save a login by ssh."""
    right = [found for found in row["findings"] if any(judging.names_it(found, wanted) == "named" for wanted in row["expected"])]
    return sum(found["saving_us"] for found in right if found["by"] == "ssh")


def seed_case(rows):
    """What came of the login that all this was begun for."""
    lines = []
    milliseconds = lambda us: f"{us / 1000:.0f} ms"  # noqa: E731
    for row in rows:
        for by, fix in row["fix"].items():
            off = (fix["predicted_us"] - fix["saved_us"]) / fix["saved_us"]
            found = [f"{row['found']} of {len(row['told'])}", f"{row['right_links']}", f"{row['first']} ({row['certainty']})"]
            times = [milliseconds(fix[name]) for name in ("before_us", "after_us", "predicted_us", "saved_us")]
            lines.append([by, *found, *times, f"{off:+.1%}"])
    head = ["client", "processes found", "under the right parent", "named first", "login before", "after the fix", "predicted", "saved", "off by"]
    return table(head, lines)


def whole(rows, folders):
    lines = summary(rows)
    lines += ["", "Hosts on which nothing is slow, and decoys:", "", *silence(rows)]
    if seed := experiments(folders, "seed-case"):
        lines += ["", "60 processes of update-motd.d, a program beside them that writes to the disk, and the printed fix applied:", "", *seed_case(seed)]
    lines += ["", "Two causes at once, by each tier:", "", *pairs(rows)]
    for of in SETS:
        for loaded in LOADS:
            if any(row["set"] == of and row["load"] == loaded and row["role"] == "cause" for row in rows):
                title = f"Each injection ({SETS[of]}), {LOADS[loaded]}: by how many milliseconds what is attributed is off, by root / no-root / client; in brackets: told among those that look the same; yes: found, where logins fail or what it takes is not known:"
                lines += ["", title, "", *each(rows, of, loaded)]
    lines += ["", "What a change saves: the script of `--fix` was run, on another host of the kind; where it leaves the change to a human, the same host without the injection was measured:", "", *fixes(rows)]
    machine = json.loads((folders[0] / "machine.json").read_text())
    where = ", ".join(f"`{folder.relative_to(REPO)}`" for folder in folders)
    lines += ["", f"{machine['cores']} cores, {machine['system']}, {machine['versions']['ssh and sshd'].split(',')[0]}; raw data in {where}."]
    return "\n".join(lines)


def write(text):
    page = REPO / "docs/why.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main():
    folders = [Path(word).resolve() for word in sys.argv[1:] if word != "--write"]
    if not folders:
        sys.exit("usage: why_table.py RESULTS_FOLDER... [--write]")
    text = whole(experiments(folders, "why"), folders)
    write(text) if "--write" in sys.argv else print(text)


if __name__ == "__main__":
    main()
