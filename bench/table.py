#!/usr/bin/env python3
"""Prints the README's table from the raw data of a benchmark run.

    table.py [RESULTS_FOLDER...] [--write]

Without a folder: the newest under bench/results. With several, what a later one has of a client in an experiment goes before
what an earlier one has, and the table says so. --write puts the table between the markers of README.md.
"""

import json
import sys
from pathlib import Path
from statistics import median, stdev

from harness.desktop import percentile
from harness.process_starts import WAYS

REPO = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
NOTHING = "-"


def is_no_ceiling(row):
    """iperf3 before 2026-11-28-lines-1gbit: it sent a seventeenth of what was counted, over the time of the whole process."""
    return row.get("client") == "iperf3" and abs(row["mb_a_second"] - row["octets"] / row["wall_s"] / 1e6) < 1e-6


class Results:
    """The rows of one benchmark run."""

    def __init__(self, folder):
        self.folder = folder
        self.data = json.loads((folder / "raw.json").read_text())
        self.machine = json.loads((folder / "machine.json").read_text())
        for experiment in self.data["experiments"].values():
            experiment["rows"] = [row for row in experiment["rows"] if not is_no_ceiling(row)]
        # What came from other folders, by experiment and whose rows were taken.
        self.sources = {}

    def replace_from(self, folder):
        """Takes the rows of a later run in place of those that the same clients have in the same experiments, on the same lines."""
        later = Results(folder)
        for name, experiment in later.data["experiments"].items():
            clients = later.clients(name)
            if not clients:
                continue
            place = lambda row: (row["client"], row.get("round_trip_ms"), row.get("loss"))  # noqa: E731
            taken = {place(row) for row in experiment["rows"]}
            kept = [row for row in self.rows(name) if place(row) not in taken]
            self.data["experiments"][name] = {"settings": experiment["settings"], "rows": kept + experiment["rows"]}
            of_whom = f" of {' and '.join(clients)}" if kept else ""
            self.sources[f"{name}{of_whom}"] = f"`{folder.relative_to(REPO)}`"

    def has(self, experiment):
        return bool(self.rows(experiment))

    def rows(self, experiment):
        return self.data["experiments"].get(experiment, {}).get("rows", [])

    def settings(self, experiment):
        return self.data["experiments"][experiment]["settings"]

    def clients(self, experiment):
        """Names in the order of their first appearance, sshoal last."""
        names = list(dict.fromkeys(row["client"] for row in self.rows(experiment)))
        return sorted(names, key=lambda name: name == "sshoal")

    def value(self, experiment, figure, client, **wanted):
        """The median of a figure over all rounds of a client, or None if it was not measured."""
        rows = [row for row in self.rows(experiment) if row["client"] == client]
        found = [row[figure] for row in rows if all(row[key] == value for key, value in wanted.items())]
        return median(found) if found else None


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def show(value, form, scale=1):
    return NOTHING if value is None else form.format(value * scale)


def ratio(ours, theirs):
    """How many times less ours is."""
    return NOTHING if not ours or not theirs else f"1/{theirs / ours:.0f}" if theirs >= 10 * ours else f"1/{theirs / ours:.1f}"


def fan_out(results):
    """T1, both configurations side by side."""
    settings = results.settings("T1")
    value = lambda figure, client, kex: results.value("T1", figure, client, kex=kex)  # noqa: E731
    rows = []
    for client in results.clients("T1"):
        checks = any(row["checks_host_keys"] for row in results.rows("T1") if row["client"] == client)
        rows.append(
            [client + ("" if checks else " (host keys unchecked)")]
            + [show(value("cpu_ms_a_host", client, kex), "{:.2f} ms") for kex in ("default", "curve25519")]
            + [show(value("wall_s", client, kex), "{:.2f} s") for kex in ("default", "curve25519")]
        )
    head = ["client", "CPU a host, key exchange by default", "curve25519 pinned", "wall, by default", "curve25519 pinned"]
    title = f"`{settings['command']}` on {settings['hosts']} real sshd, {settings['window']} at a time:"
    return [title, "", *table(head, rows), "", *fan_out_ratios(results)]


def fan_out_ratios(results):
    ours = {kex: results.value("T1", "cpu_ms_a_host", "sshoal", kex=kex) for kex in ("default", "curve25519")}
    spawning = [name for name in results.clients("T1") if name in ("xargs ssh", "pssh", "pdsh", "clush")]
    best = {}
    for kex in ours:
        found = [results.value("T1", "cpu_ms_a_host", name, kex=kex) for name in spawning]
        best[kex] = min((figure for figure in found if figure is not None), default=None)
    russh = results.value("T1", "cpu_ms_a_host", "russh")
    return [
        "sshoal's client CPU a host, curve25519 pinned: "
        f"{ratio(ours['curve25519'], best['curve25519'])} of the best that starts `ssh` with curve25519, "
        f"{ratio(ours['curve25519'], best['default'])} of the best with `ssh`'s default, "
        f"{ratio(ours['curve25519'], russh)} of russh's."
    ]


def single_login(results):
    rows = [
        [client] + [show(results.value("T2", "wall_s", client, kex=kex), "{:.0f} ms", 1000) for kex in ("default", "curve25519")]
        for client in results.clients("T2")
    ]
    head = ["client", "key exchange by default", "curve25519 pinned"]
    return ["One login and `true`, loopback, from the client's start to its end:", "", *table(head, rows)]


def round_trips(results):
    rows = []
    for client in results.clients("T3"):
        kex = "curve25519" if results.value("T3", "round_trips", client, kex="curve25519") is not None else "default"
        value = lambda figure: results.value("T3", figure, client, kex=kex)  # noqa: E731
        rows.append([client, show(value("round_trips"), "{:.0f}"), show(value("first_byte_s"), "{:.2f} s")])
    milliseconds = results.settings("T3")["round_trip_ms"]
    head = ["client", "round trips on the wire", "first byte of output"]
    return [f"One login and `echo` over a line of {milliseconds} ms, curve25519:", "", *table(head, rows)]


def open_connections(results):
    rows = [
        [client, show(results.value("T4", "kib_a_connection", client), "{:.1f} KiB"), show(results.value("T4", "peak_rss_kib", client), "{:.0f} MiB", 1 / 1024)]
        for client in results.clients("T4")
    ]
    count = results.settings("T4")["hosts"]
    head = ["client", "memory an open connection", "peak of the whole run"]
    return [f"{count:,} simulated hosts, all open at once:", "", *table(head, rows)]


def scale(results):
    counts = sorted({row["hosts"] for row in results.rows("T5")})
    rows = []
    for client in results.clients("T5"):
        costs = [show(results.value("T5", "cpu_ms_a_host", client, hosts=count), "{:.3f} ms") for count in counts]
        rate = results.value("T5", "logins_a_cpu_second", client, hosts=counts[-1])
        rows.append([client, *costs, show(rate, "{:.0f}")])
    head = ["client", *(f"CPU a host of {count:,}" for count in counts), "logins a CPU second"]
    return ["Simulated hosts, one core for the client:", "", *table(head, rows)]


def warm_runs(results):
    settings = results.settings("T6")
    value = lambda figure, client, servers: results.value("T6", figure, client, servers=servers)  # noqa: E731
    cpu = lambda figure: value(figure, "sshoal", "simulated") * 1e6 / settings["hosts"]  # noqa: E731
    both = value("cpu_ms_a_host", "sshoal", "simulated")
    lines = []
    if both:
        lines = [
            f"`true` on {settings['hosts']:,} simulated hosts that `sshoal up` keeps: {both * 1000:.1f} us of CPU a host, of which "
            f"{cpu('client_cpu_s'):.1f} us are the run's and {cpu('keeper_cpu_s'):.1f} us the keeper's.",
            "",
        ]
    rows = [
        [client, show(value("cpu_ms_a_host", client, "sshd"), "{:.2f} ms"), show(value("wall_s", client, "sshd"), "{:.2f} s")]
        for client in results.clients("T6")
        if value("cpu_ms_a_host", client, "sshd")
    ]
    head = ["client", "CPU a host, with whoever keeps the connection", "wall"]
    title = f"`true` on {settings['real_hosts']} hosts with sshd, {settings['window']} at a time; \"sshoal\" is by the connections of `sshoal up`:"
    return [*lines, title, "", *table(head, rows)]


def times(ours, theirs):
    """How many times theirs ours is."""
    return NOTHING if not ours or not theirs else f"{ours / theirs:.2f} x" if ours < 10 * theirs else f"{ours / theirs:.0f} x"


def deviation(results, experiment, figure, client, form, **wanted):
    """The median, and the standard deviation over the rounds where there are several."""
    rows = [row for row in results.rows(experiment) if row["client"] == client]
    found = [row[figure] for row in rows if all(row[key] == value for key, value in wanted.items())]
    if not found:
        return NOTHING
    spread = f" ± {form.format(stdev(found))}" if len(found) > 1 else ""
    return form.format(median(found)) + spread


def bulk_loopback(results):
    """T8: rates and CPU seconds a gigabyte, and how many times as much CPU ssh takes."""
    value = lambda figure, name, way: results.value("T8", figure, name, way=way)  # noqa: E731
    rows = []
    for name in results.clients("T8"):
        row = [name]
        for way in ("put", "get"):
            costs = [show(value(figure, name, way), "{:.2f} s") for figure in ("client_cpu_s_a_gb", "server_cpu_s_a_gb")]
            row += [deviation(results, "T8", "mb_a_second", name, "{:.0f}", way=way), *costs]
        rows.append(row)
    head = ["client", *(f"{way}: {what}" for way in ("put", "get") for what in ("MB a second", "client's CPU a GB", "server's CPU a GB"))]
    ours = lambda way: value("client_cpu_s_a_gb", "sshoal", way)  # noqa: E731
    beside = [
        f"{times(ours(way), value('client_cpu_s_a_gb', peer, way))} of {peer}'s ({way})"
        for peer in ("ssh cat", "ssh cat aes128-gcm", "scp")
        for way in ("put", "get")
        if peer in results.clients("T8")
    ]
    size = results.settings("T8")["octets"] >> 20
    last = f"sshoal's CPU a GB: {', '.join(beside)}."
    return [f"One file of {size:,} MiB to a host and back, loopback, from memory to memory:", "", *table(head, rows), "", last]


def line_name(row):
    return f"{row['round_trip_ms']:g} ms" + (f", {row['loss']:g} lost" if row["loss"] else "")


def bulk_lines(results):
    """T9: rates on each line, each way."""
    lines = sorted({(row["round_trip_ms"], row["loss"]) for row in results.rows("T9")}, key=lambda line: (line[1], line[0]))
    heads = [line_name({"round_trip_ms": trip, "loss": loss}) for trip, loss in lines]
    size = results.settings("T9")["octets"] >> 20
    text = []
    for way in ("put", "get"):
        rows = []
        for name in results.clients("T9"):
            found = [deviation(results, "T9", "mb_a_second", name, "{:.1f}", way=way, round_trip_ms=trip, loss=loss) for trip, loss in lines]
            if any(cell != NOTHING for cell in found):
                rows.append([name, *found])
        text += [f"One file of {size:,} MiB by `{way}`, MB a second by the line's round trip (± standard deviation):", "", *table(["client", *heads], rows), ""]
    text += [bulk_lines_ratios(results, "T9")]
    return text


def large_file(results):
    """T9-large: the same with a file of several GiB, at 100 ms."""
    size = results.settings("T9-large")["octets"] >> 20
    value = lambda way: deviation(results, "T9-large", "mb_a_second", "sshoal", "{:.1f}", way=way, round_trip_ms=100, loss=0)  # noqa: E731
    return [f"One file of {size:,} MiB: {value('put')} MB/s by `put`, {value('get')} by `get`. {bulk_lines_ratios(results, 'T9-large')}"]


def line_of_a_rate(results):
    """T9-rate: the same where the line is the limit, beside what it carries."""
    size, rate = results.settings("T9-rate")["octets"] >> 20, results.settings("T9-rate")["rate"]
    value = lambda name, way: deviation(results, "T9-rate", "mb_a_second", name, "{:.1f}", way=way, round_trip_ms=100, loss=0)  # noqa: E731
    found = [f"{way} {value('sshoal', way)} MB/s, {value('iperf3', way)} by iperf3 with 17 flows" for way in ("put", "get")]
    return [f"The same on a line of {rate} and 100 ms, {size:,} MiB: {'; '.join(found)}. iperf3's is from the first octet to the last, sshoal's the whole command."]


def bulk_lines_ratios(results, experiment):
    """What sshoal reaches at 100 ms without losses, beside each."""
    value = lambda name, way: results.value(experiment, "mb_a_second", name, way=way, round_trip_ms=100, loss=0)  # noqa: E731
    peers = [name for name in results.clients(experiment) if not name.startswith("sshoal") and value(name, "put")]

    def many(name, way):
        ours, theirs = value("sshoal", way), value(name, way)
        # In tenths: whole numbers would round up to the target.
        return f"{ours / theirs:.1f} x" if ours and theirs else NOTHING

    found = [f"{many(name, 'put')} and {many(name, 'get')} of {name}" for name in peers]
    return f"At 100 ms sshoal is, put and get: {', '.join(found)}."


def small_files(results, experiment="T10"):
    """T10: seconds for a tree of small files."""
    trips = sorted({row["round_trip_ms"] for row in results.rows(experiment)})
    rows = []
    for name in results.clients(experiment):
        rows.append([name, *(deviation(results, experiment, "wall_s", name, "{:.2f} s", round_trip_ms=trip) for trip in trips)])
    value = lambda name, trip: results.value(experiment, "wall_s", name, round_trip_ms=trip)  # noqa: E731
    beside = [f"{ratio(value('sshoal', trip), value(name, trip))} of {name}'s at {trip:g} ms" for trip in trips for name in results.clients(experiment) if name != "sshoal"]
    settings = results.settings(experiment)
    count, size = settings["files"], settings["octets_a_file"] >> 10
    head = ["client", *(f"{trip:g} ms" for trip in trips)]
    last = f"sshoal's time: {', '.join(beside)}."
    return [f"{count:,} files of {size} KiB to a host, on its disk at the end, by the line's round trip:", "", *table(head, rows), "", last]


def process_starts(results):
    """T12: the CPU of a start for each size of the parent, beside vfork's; where there is a pipe, beside vfork with the
    same pipe, too."""
    sizes = sorted({row["parent_mib"] for row in results.rows("T12")})
    ways = [way for way in WAYS if way in results.clients("T12")]
    rows = []
    for way in ways:
        value = lambda figure, size, way=way: results.value("T12", figure, way, parent_mib=size)  # noqa: E731
        costs = []
        for size in sizes:
            cost = value("cpu_us_a_start", size)
            bases = ["vfork"] if way in WITHOUT_PIPE else ["vfork", "vfork pipe"]
            found = [beside(results, way, base, size) for base in bases]
            ratios = " / ".join(f"{times:.2f} x" for times in found if times)
            costs.append(NOTHING if cost is None else f"{cost:,.0f} us" + (f" ({ratios})" if ratios else ""))
        rows.append([way, *costs, show(value("system_calls", sizes[0]), "{:.0f}")])
    head = ["by", *(f"parent of {size:,} MiB" for size in sizes), "system calls a start"]
    title = (
        "CPU to start a program of one system call and wait for it, with its parent's memory touched, beside vfork and exec; "
        "where a pipe is read, also beside vfork and exec with the same pipe:"
    )
    return [title, "", *table(head, rows)]


def beside(results, way, base, size):
    """The median of what each round says a way costs, of what the base cost in the same round."""
    rounds = {}
    for row in results.rows("T12"):
        if row["parent_mib"] == size and row["client"] in (way, base):
            rounds.setdefault(row["round"], {})[row["client"]] = row["cpu_us_a_start"]
    ratios = [costs[way] / costs[base] for costs in rounds.values() if way in costs and base in costs]
    return median(ratios) if ratios else None


# The ways of T12 that read nothing.
WITHOUT_PIPE = ("vfork", "sshoal", "posix_spawn", "fork", "system", "vfork unused pipe")


def preload(results):
    """What libsshoal_preload saves real programs."""
    rows = []
    for name in results.clients("preload"):
        alone, under = (results.value("preload", "cpu_us_a_start", name, way=way) for way in ("alone", "libsshoal_preload"))
        rows.append([name, show(alone, "{:,.0f} us"), show(under, "{:,.0f} us"), ratio(under, alone)])
    count = results.settings("preload")["starts"]
    head = ["program", "alone", "with libsshoal_preload", ""]
    return [f"CPU a start, {count:,} starts of a program of one system call by programs that others have built:", "", *table(head, rows)]


def monitoring(results):
    settings = results.settings("monitoring")
    value = lambda figure, name: results.value("monitoring", figure, name)  # noqa: E731
    rows = []
    for name in results.clients("monitoring"):
        figures = [show(value("cpu_s", name), "{:.2f} s"), show(value("own_cpu_s", name), "{:.2f} s"), show(value("checks_a_second", name), "{:,.0f}")]
        rows.append([name, *figures, show(value("started_rss_kib", name), "{:,.0f} KiB")])
    head = ["by", "CPU", "of it the server's own", "checks a second", "most memory of shells and checks at a time"]
    title = f"A monitoring server of {settings['server_mib']} MiB starts {settings['checks']:,} checks from {settings['threads']} threads:"
    return [title, "", *table(head, rows)]


def idle_p99(row):
    """Of one round of T17; older data has no more than this figure."""
    return row["idle_p99_us"] if "idle_p99_us" in row else percentile([row["idle"]], 99)


def busy_p99(row):
    return row["p99_us"] if "p99_us" in row else percentile([row], 99)


def desktop(results):
    rows = []
    for client in results.clients("T17"):
        rounds = [row for row in results.rows("T17") if row["client"] == client]
        idle, busy = median(map(idle_p99, rounds)), median(map(busy_p99, rounds))
        rows.append([client, f"{idle:.0f} us", f"{busy:.0f} us", f"{busy / idle:.1f} x"])
    count = results.settings("T17")["hosts"]
    head = ["client", "idle", "while it runs", ""]
    title = f"p99 lateness of a 1 ms timer on the client's core, {count:,} simulated hosts at full tilt:"
    return [title, "", *table(head, rows)]


def known_hosts_files(settings):
    lines, size = settings["files"]["plain"]["lines"], settings["files"]["plain"]["bytes"] / 1e6
    return f"a known_hosts of {lines:,} lines ({size:.1f} MB)"


def by_file(results, experiment, figure, form, scale=1):
    """A row for each client, a column for each known_hosts: clients are named with the file behind a colon."""
    files = list(results.settings(experiment)["files"])
    names = list(dict.fromkeys(name.split(": ")[0] for name in results.clients(experiment)))
    value = lambda name, file: results.value(experiment, figure, f"{name}: {file}")  # noqa: E731
    return [[name, *(show(value(name, file), form, scale) for file in files)] for name in names if any(value(name, file) for file in files)]


def known_hosts_session(results):
    settings = results.settings("T7")
    title = f"CPU of one login and `true` with {known_hosts_files(settings)}, curve25519:"
    lines = [title, "", *table(["client", *settings["files"]], by_file(results, "T7", "cpu_ms", "{:.2f} ms")), ""]
    ours = lambda file: results.value("T7", "cpu_ms", f"sshoal: {file}")  # noqa: E731
    if all(ours(file) for file in settings["files"]):
        shares = [f"{max(0, 1 - ours('only its hosts') / ours(file)):.1%} {file}" for file in ("plain", "hashed")]
        lines += [f"The large known_hosts' share in sshoal's CPU, once there is an index: {', '.join(shares)}."]
    return lines


def known_hosts_lookup(results):
    rows = by_file(results, "T16", "wall_s", "{:.2f} ms", 1000)
    empty = show(results.value("T16", "wall_s", "nothing at all"), "{:.2f} ms", 1000)
    settings = results.settings("T16")
    title = f"One host looked up in {known_hosts_files(settings)}, from the program's start to its end (a program that does nothing: {empty}):"
    return [title, "", *table(["client", *settings["files"]], rows)]


def known_hosts_fleet(results):
    return large_fleet(results, "known-hosts-fleet")


def large_fleet(results, experiment):
    settings = results.settings(experiment)
    title = f"`{settings['command']}` on {settings['hosts']:,} simulated hosts, {settings['window']} at a time, with {known_hosts_files(settings)}, curve25519:"
    costs = by_file(results, experiment, "cpu_ms_a_host", "{:.2f} ms")
    walls = by_file(results, experiment, "wall_s", "{:.1f} s")
    head = ["client", *(f"CPU a host, {file}" for file in settings["files"]), *(f"wall, {file}" for file in settings["files"])]
    return [title, "", *table(head, [cost + wall[1:] for cost, wall in zip(costs, walls)])]


def mpssh_fleet(results):
    """The seed's own run, with our row in its table."""
    return ["mpssh as it was used at first, and as it is now:", "", *large_fleet(results, "mpssh")]


def descriptors(results):
    settings = results.settings("descriptors")
    value = lambda figure: results.value("descriptors", figure, "sshoal")  # noqa: E731
    return [
        f"{settings['hosts']:,} simulated hosts with a limit of {settings['descriptors']} file descriptors: {value('ok'):,.0f} ok in "
        f"{value('wall_s'):.0f} s, {value('peak_rss_kib') / 1024:.0f} MiB at most."
    ]


SECTIONS = {
    "T1": fan_out,
    "T2": single_login,
    "T3": round_trips,
    "T4": open_connections,
    "T5": scale,
    "T6": warm_runs,
    "T7": known_hosts_session,
    "T8": bulk_loopback,
    "T9": bulk_lines,
    "T9-large": large_file,
    "T9-rate": line_of_a_rate,
    "T10": small_files,
    "T10-100K": lambda results: small_files(results, "T10-100K"),
    "T12": process_starts,
    "preload": preload,
    "monitoring": monitoring,
    "T16": known_hosts_lookup,
    "known-hosts-fleet": known_hosts_fleet,
    "mpssh": mpssh_fleet,
    "T17": desktop,
    "descriptors": descriptors,
}


def whole(results):
    machine, versions = results.machine, results.machine["versions"]
    lines = []
    for experiment, section in SECTIONS.items():
        if results.has(experiment):
            lines += [*section(results), ""]
    sources = "".join(f", {what} in {folder}" for what, folder in results.sources.items())
    lines += [
        f"{machine['cores']} cores, {machine['system']}, {versions['ssh and sshd'].split(',')[0]} on both sides; "
        f"medians of the raw data in `{results.folder.relative_to(REPO)}`{sources}."
    ]
    return "\n".join(lines)


def write(text):
    readme = REPO / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def newest():
    folders = [path.parent for path in (REPO / "bench/results").glob("*/raw.json")]
    if not folders:
        sys.exit("table.py: no results under bench/results: run `make bench` first")
    return max(folders, key=lambda folder: json.loads((folder / "raw.json").read_text())["started"])


def main():
    words = [word for word in sys.argv[1:] if word != "--write"]
    first, *later = [Path(word).resolve() for word in words] or [newest()]
    results = Results(first)
    for folder in later:
        results.replace_from(folder)
    text = whole(results)
    if "--write" in sys.argv:
        write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
