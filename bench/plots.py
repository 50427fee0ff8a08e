#!/usr/bin/env python3
"""Draws docs/pictures/*.svg from the raw data of a benchmark run.

    plots.py [RESULTS_FOLDER]

Without a folder: the newest under bench/results that has one of these experiments. What a run does not have is not drawn.
"""

import json
import sys
from pathlib import Path

from harness import svg
from table import REPO, Results

PICTURES = REPO / "docs/pictures"
EXPERIMENTS = ("T9", "T12", "preload", "monitoring")


def footer(results):
    machine = results.machine
    kind = "a quick trial on a busy machine" if "--quick" in results.data["arguments"] else results.folder.name
    return f"{kind}: {machine['cores']} cores, {machine['system']}, Linux {machine['kernel']}; medians"


def starts(results):
    """The CPU of a start by each way, from a small parent."""
    sizes = sorted({row["parent_mib"] for row in results.rows("T12")})
    groups = [(way, [results.value("T12", "cpu_us_a_start", way, parent_mib=sizes[0])]) for way in ways(results)]
    return svg.bars("CPU to start a program and wait for it, microseconds", groups, [""], "{:,.0f}", footer(results))


def parents(results):
    """The same beside the size of the parent's memory."""
    sizes = sorted({row["parent_mib"] for row in results.rows("T12")})
    value = lambda way, size: results.value("T12", "cpu_us_a_start", way, parent_mib=size)  # noqa: E731
    groups = [(way, [value(way, size) for size in sizes]) for way in ways(results)]
    title = "CPU of a start by the memory that the parent has touched, microseconds"
    return svg.bars(title, groups, [f"{size:,} MiB" for size in sizes], "{:,.0f}", footer(results), logarithmic=True)


def system_calls(results):
    groups = [(way, [results.value("T12", "system_calls", way)]) for way in ways(results)]
    return svg.bars("System calls of a start, all processes", groups, [""], "{:,.0f}", footer(results))


def ways(results):
    return list(dict.fromkeys(row["client"] for row in results.rows("T12")))


def preload(results):
    rows = results.rows("preload")
    series = list(dict.fromkeys(row["way"] for row in rows))
    names = list(dict.fromkeys(row["client"] for row in rows))
    groups = [(name, [results.value("preload", "cpu_us_a_start", name, way=way) for way in series]) for name in names]
    count = results.settings("preload")["starts"]
    return svg.bars(f"CPU a start, {count:,} by each program, microseconds", groups, series, "{:,.0f}", footer(results))


def monitoring(results):
    settings = results.settings("monitoring")
    value = lambda figure: [results.value("monitoring", figure, name) for name in results.clients("monitoring")]  # noqa: E731
    groups = [("CPU, s", value("cpu_s")), ("checks a second", value("checks_a_second")), ("memory of what was started, KiB", value("started_rss_kib"))]
    title = f"{settings['checks']:,} checks from {settings['threads']} threads of a server of {settings['server_mib']} MiB"
    # Figures of three kinds: each is drawn beside the greatest of its own.
    return svg.bars_by_group(title, groups, results.clients("monitoring"), "{:,.2f}", footer(results))


def throughput(way):
    """The rate of each client beside the round trip, without losses; nothing of a single line, or none without losses."""

    def picture(results):
        trips = sorted({row["round_trip_ms"] for row in results.rows("T9") if row["loss"] == 0})
        if len(trips) < 2:
            return None
        value = lambda name, trip: results.value("T9", "mb_a_second", name, way=way, round_trip_ms=trip, loss=0)  # noqa: E731
        names = list(dict.fromkeys(row["client"] for row in results.rows("T9") if row["way"] == way))
        series = [(name, [value(name, trip) for trip in trips]) for name in names]
        title = f"MB a second by the round trip, {results.settings('T9')['octets'] >> 20:,} MiB, {way}"
        return svg.lines(title, [f"{trip} ms" for trip in trips], series, "{:,.0f}", footer(results))

    return picture


DRAWN = {
    "throughput-put": ("T9", throughput("put")),
    "throughput-get": ("T9", throughput("get")),
    "starts": ("T12", starts),
    "parents": ("T12", parents),
    "system-calls": ("T12", system_calls),
    "preload": ("preload", preload),
    "monitoring": ("monitoring", monitoring),
}


CAPTIONS = {
    "throughput-put": "One file to a host, by the round trip",
    "throughput-get": "One file from a host, by the round trip",
    "starts": "CPU to start a program, by each way",
    "parents": "CPU to start a program, by the memory of its parent",
    "system-calls": "System calls of a start, by each way",
    "preload": "CPU a start of gawk, lua and busybox, alone and with the library",
    "monitoring": "A monitoring server's checks, by popen of libc, with the library, and built again",
}
SHOWN = {"spawn.md": ["starts", "parents", "system-calls"], "preload.md": ["preload", "monitoring"], "put-get.md": ["throughput-put", "throughput-get"]}
BEGIN, END = "<!-- pictures:begin -->", "<!-- pictures:end -->"


def newest():
    folders = sorted((REPO / "bench/results").iterdir(), key=lambda folder: json.loads((folder / "raw.json").read_text())["started"])
    for folder in reversed(folders):
        results = Results(folder)
        if any(results.has(experiment) for experiment in EXPERIMENTS):
            return folder
    sys.exit("plots.py: no results of " + ", ".join(EXPERIMENTS))


def draw(folder, report):
    """All pictures that there are figures for, and the documents that show them."""
    results = Results(folder)
    PICTURES.mkdir(exist_ok=True)
    for name, (experiment, picture) in DRAWN.items():
        drawn = picture(results) if results.has(experiment) else None
        if drawn:
            (PICTURES / f"{name}.svg").write_text(drawn)
            report(f"drawn: {name}.svg")
    for document, names in SHOWN.items():
        show(REPO / "docs" / document, [name for name in names if (PICTURES / f"{name}.svg").exists()])


def show(document, names):
    """Puts the pictures between the document's markers."""
    if not names:
        return
    before, _, rest = document.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    links = "\n\n".join(f"![{CAPTIONS[name]}](pictures/{name}.svg)" for name in names)
    document.write_text(f"{before}{BEGIN}\n{links}\n{END}{after}")


def main():
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else newest()
    draw(folder, print)


if __name__ == "__main__":
    main()
