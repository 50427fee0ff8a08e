"""Wakes every millisecond on the given cores and tells, as JSON, how late it was: how many times by so many
microseconds, in steps of ten. Ends after so many seconds or when
standard input ends, whichever comes first.

    lateness.py SECONDS CORES
"""

import json
import os
import select
import sys
import time
from collections import Counter

PERIOD_NS = 1_000_000
STEP_NS = 10_000


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
    steps = Counter(lateness // STEP_NS * STEP_NS // 1000 for lateness in late)
    print(json.dumps({"wakeups": len(late), "p50_us": late[len(late) // 2] / 1000, "max_us": late[-1] / 1000, "wakeups_by_us": steps}))


main()
