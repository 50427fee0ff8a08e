"""Keeps what else runs on the machine (daemons, the kernel's own workers) off the client's core while one wake-up in a hundred
counts: a kernel thread that runs for a millisecond twice a second is otherwise most of a p99."""

import os
from contextlib import contextmanager


@contextmanager
def elsewhere(cores):
    """All threads that may be moved run on these cores, and where they did before, afterwards. Threads that the kernel has bound
    to a core stay, and so does everything where we are not root. What the moved ones start meanwhile inherits their cores."""
    before = {}
    for thread in threads():
        try:
            before[thread] = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, cores)
        except OSError:
            before.pop(thread, None)
    try:
        yield
    finally:
        for thread in threads():
            try:
                if os.sched_getaffinity(thread) == set(cores):
                    os.sched_setaffinity(thread, before.get(thread, range(os.cpu_count())))
            except OSError:
                continue


def threads():
    """The numbers of all threads of the machine."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += map(int, os.listdir(f"/proc/{process}/task"))
        except OSError:
            continue
    return found
