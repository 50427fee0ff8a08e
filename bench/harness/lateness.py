"""Wakes every millisecond on the given cores and tells, as JSON, how late it was. Ends after so many seconds or when
standard input ends, whichever comes first.

    lateness.py SECONDS CORES
"""

import json
import os
import select
import sys
import time

PERIOD_NS = 1_000_000


def main():
    seconds, cores = float(sys.argv[1]), sys.argv[2]
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    late = []
    begun = time.monotonic_ns()
    end = begun + int(seconds * 1e9)
    due = begun + PERIOD_NS
    while due < end:
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        now = time.monotonic_ns()
        late.append(now - due)
        # Periods that were slept through are late too: the next wake-up was due while this one had not come.
        due += PERIOD_NS
        # Once in 64 is often enough to notice the end, and rare enough to cost nothing.
        if len(late) % 64 == 0 and select.select([sys.stdin], [], [], 0)[0]:
            break
    late.sort()
    print(json.dumps({"wakeups": len(late), **{f"p{p}_us": percentile(late, p) for p in (50, 90, 99)}, "max_us": late[-1] / 1000}))


def percentile(ordered, percent):
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] / 1000


main()
