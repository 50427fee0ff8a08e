"""What LD_PRELOAD=libsshoal_preload.so saves programs that cannot be built again: gawk, lua5.4 and busybox start 10,000
programs by system and popen, with and without it."""

from .install import BUILT, REPO
from .measure import Failed, run_checked

LIBRARY = REPO / "target/release/libsshoal_preload.so"
TINY = BUILT / "tiny"
# What the program that is started ends with: each start is checked.
STATUS = 7

AWK_SYSTEM = 'BEGIN { for (at = 0; at < n; at++) if (system(cmd) == 7) right++; print right }'
# What a line costs that a shell must read, and one whose program is dynamic and so loads the library, too.
FOR_THE_SHELL = f"{TINY}; exit {STATUS}"
DYNAMIC = f"/bin/sh -c 'exit {STATUS}'"
# A pipe to which nothing is written. What close() returns is the status, or what wait(2) gave.
AWK_POPEN = 'BEGIN { for (at = 0; at < n; at++) { printf "" | cmd; s = close(cmd); if (s == 7 || s == 7 * 256) right++ } print right }'
LUA_SYSTEM = "local n, right = tonumber(arg[1]), 0 for at = 1, n do local _, _, s = os.execute(arg[2]) if s == 7 then right = right + 1 end end print(right)"
LUA_POPEN = (
    "local n, right = tonumber(arg[1]), 0 for at = 1, n do local p = io.popen(arg[2]) p:read('a') "
    "local _, _, s = p:close() if s == 7 then right = right + 1 end end print(right)"
)
ALONE, PRELOADED = "alone", "libsshoal_preload"


def programs(starts, scripts):
    """Each program by the name that it has in the table, with its arguments."""
    awk_of = lambda line: ["-v", f"n={starts}", "-v", f"cmd={line}"]  # noqa: E731
    awk = awk_of(TINY)
    lua = {}
    for name, text in (("system", LUA_SYSTEM), ("popen", LUA_POPEN)):
        lua[name] = scripts / f"{name}.lua"
        lua[name].write_text(text + "\n")
    return {
        "gawk: system": ["gawk", *awk, AWK_SYSTEM],
        "gawk: popen": ["gawk", *awk, AWK_POPEN],
        "lua5.4: os.execute": ["lua5.4", str(lua["system"]), str(starts), str(TINY)],
        "lua5.4: io.popen": ["lua5.4", str(lua["popen"]), str(starts), str(TINY)],
        "busybox awk: system": ["busybox", "awk", *awk, AWK_SYSTEM],
        "busybox awk: popen": ["busybox", "awk", *awk, AWK_POPEN],
        "gawk: system, a line for the shell": ["gawk", *awk_of(FOR_THE_SHELL), AWK_SYSTEM],
        "gawk: system, a dynamic program": ["gawk", *awk_of(DYNAMIC), AWK_SYSTEM],
    }


def environment(way):
    return {"LD_PRELOAD": str(LIBRARY)} if way == PRELOADED else {}


def measure(options, record, report):
    rows = []
    cases = programs(options.preload_starts, BUILT)
    for number in range(options.preload_rounds):
        for name, argv in cases.items():
            ways = [ALONE, PRELOADED] if number % 2 == 0 else [PRELOADED, ALONE]
            for way in ways:
                record.command("preload", f"{name}, {way}", argv, environment(way))
                rows.append({"client": name, "way": way, "round": number, **one(argv, way, options.preload_starts)})
    for name in cases:
        costs = [min(row["cpu_us_a_start"] for row in rows if (row["client"], row["way"]) == (name, way)) for way in (ALONE, PRELOADED)]
        report(f"preload: {name}: {costs[0]:.0f} us of CPU a start alone, {costs[1]:.0f} us under the library: {costs[0] / costs[1]:.1f} x")
    record.experiment("preload", {"starts": options.preload_starts, "rounds": options.preload_rounds, "program": "one system call"}, rows)


def one(argv, way, starts):
    sample = run_checked(argv, environment(way))
    if sample.stdout.strip() != str(starts):
        raise Failed(f"{argv}: {sample.stdout!r}, not {starts} programs that ended with {STATUS}")
    return {"cpu_us_a_start": sample.cpu_s / starts * 1e6, **sample.record()}
