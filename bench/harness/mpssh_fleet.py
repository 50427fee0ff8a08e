"""The run that sshoal was begun for, as its author ran it with mpssh: 1,400 hosts, 999 at a time, no pause, host keys
checked against a known_hosts of 2.3 MB, in the clear and hashed. `mpssh` of sshoal, the first time and later, and with
mpssh's own pause; pssh at the same parallelism, which makes each ssh read all of the file, before and after `sshoal
known-hosts split`; and mpssh.py, if its path is in MPSSH_PY. All with curve25519."""

import os

from . import clients
from .known_hosts_fleet import measure_fans, pssh
from .large_known_hosts import HASHED, PLAIN

COMMAND = "true"
CHECKED = "o StrictHostKeyChecking=yes"


def measure(options, record, report):
    original = os.environ.get("MPSSH_PY")

    def fans(file, split):
        made = [pssh(f"pssh: {file.kind}", file.options)]
        if file.kind in (PLAIN, HASHED):
            made.append(pssh(f"pssh after split: {file.kind}", split))
            made.append(mpssh(f"mpssh the first time: {file.kind}", file, prepare=file.forget))
        made.append(mpssh(f"mpssh: {file.kind}", file))
        if file.kind in (PLAIN, HASHED):
            made.append(mpssh(f"mpssh, its own pause: {file.kind}", file, pause=[]))
        if original:
            made.append(mpssh(f"mpssh.py: {file.kind}", file, program=original))
            if file.kind in (PLAIN, HASHED):
                made.append(mpssh(f"mpssh.py after split: {file.kind}", file, program=original, known_hosts=split))
        return made

    measure_fans("mpssh", fans, options, record, report)


def mpssh(name, file, program=None, pause=("-d", "0"), known_hosts=None, prepare=lambda: None):
    """A program with mpssh's flags: ours, unless `program` is another. `known_hosts` are ssh's words for other files."""

    def argv(shoal, window, command):
        prepare()
        option = (known_hosts or file.options)[1]
        # Without a blank behind the letter, for mpssh.py leaves it to the value.
        flags = [f"F{shoal.ssh_config_curve25519}", CHECKED, f"o {option}"]
        words = [word for flag in flags for word in ("-O", flag)]
        start = [program] if program else clients.mpssh_program()
        return [*start, "-p", str(window), *pause, "-u", shoal.user, "-f", str(shoal.file), *words, command]

    return clients.Client(name, clients.CURVE25519, argv, lambda shoal: file.environment, has_both=False)
