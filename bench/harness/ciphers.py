"""What `sshoal ciphers` recommends, beside what stock ssh takes: is the recommended combination the fastest?

Nothing of sshoal is in the judge: ssh moves zeros from the host and to it, with one combination after the other, in rounds
whose order turns. A login takes its time, too, so that of one with nothing to move is taken off. Those that are nearly as fast as the
fastest, and the recommended one, are measured in more rounds: then they are judged, by medians and by how far these are known.
"""

import itertools
import json
import math
import statistics
import subprocess
import tempfile
import time

from .hosts import started
from .install import REPO
from .measure import Failed, wait_without_reaping

SSHOAL = REPO / "target/release/sshoal"
SERVERS = {
    "as it comes": [],
    "without AES-GCM": ["Ciphers -aes*-gcm@openssh.com"],
    "chacha20 and ctr": ["Ciphers chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr"],
}
# What moves this share of the fastest, after the first rounds, may be the fastest.
NEAR = 0.85
# As many rounds more for those, for each that all had.
MORE = 3
# Longest that one transfer may take, in seconds.
PATIENCE = 300


def measure(options, record, report):
    rows = []
    for server, lines in SERVERS.items():
        words = list(itertools.chain.from_iterable(("-o", line) for line in lines))
        with started(["sshd", "--hosts", "1", *words]) as hosts:
            rows += measured(options, record, report, server, hosts)
    settings = {"rounds": options.cipher_rounds, "mebibytes": options.cipher_mebibytes}
    record.experiment("ciphers", settings, rows)


def measured(options, record, report, server, hosts):
    advice = advised(options, record, server, hosts)
    pairs = candidates(advice)
    times = {pair: {"login": [], "down": [], "up": []} for pair in pairs}
    of_ssh = next(one for one in advice["recommended"] if one["by"] == "ssh")
    chosen = (of_ssh["cipher"], of_ssh["mac"])
    in_rounds(options, record, hosts, times, pairs, options.cipher_rounds)
    best = max(rate(options, times[pair]) for pair in pairs)
    near = [pair for pair in pairs if pair == chosen or rate(options, times[pair]) >= NEAR * best]
    in_rounds(options, record, hosts, times, near, MORE * options.cipher_rounds)
    rates = {pair: rate(options, times[pair]) for pair in pairs}
    fastest = max(near, key=lambda pair: rates[pair])
    share = rates[chosen] / rates[fastest]
    behind = 1 / share - 1
    known = math.hypot(uncertainty(options, times[chosen]), uncertainty(options, times[fastest]))
    verdict = "the fastest"
    if chosen != fastest:
        found = "not told apart from" if behind <= 2 * known else "slower than"
        verdict = f"{share:.1%} of {' '.join(filter(None, fastest))}, {found} it (known to {known:.1%})"
    report(f"ciphers, {server}: {' '.join(filter(None, chosen))}: {verdict}")
    by_ssh = {(row["cipher"], row["mac"]): row for row in advice["combinations"] if row["by"] == "ssh"}
    return [
        {
            "server": server,
            "cipher": pair[0],
            "mac": pair[1],
            "recommended": pair == chosen,
            "fastest": pair == fastest,
            "uncertainty": uncertainty(options, times[pair]),
            "octets_a_second": rates[pair],
            "seconds": times[pair],
            "sshoal_down": by_ssh[pair]["down"],
            "sshoal_up": by_ssh[pair]["up"],
        }
        for pair in pairs
    ]


def in_rounds(options, record, hosts, times, pairs, rounds):
    for number in range(rounds):
        turn = number % len(pairs)
        for pair in pairs[turn:] + pairs[:turn]:
            for way in ("login", "down", "up"):
                times[pair][way].append(taken(options, record, hosts, pair, way))


def advised(options, record, server, hosts):
    """The JSON of `sshoal ciphers`."""
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-home-") as home:
        seconds = ["--seconds", "0.05"] if options.quick else []
        words = [str(SSHOAL), "ciphers", "-F", str(hosts.ssh_config), hosts.addresses[0], "--json", "--no-kex", *seconds]
        environment = {"HOME": home, "PATH": "/usr/bin:/bin"}
        record.command("ciphers", f"sshoal, {server}", words, environment)
        ended = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=20 * PATIENCE)
    if ended.returncode != 0:
        raise Failed(f"sshoal ciphers: {ended.stderr}")
    return json.loads(ended.stdout)


def candidates(advice):
    """All that may be recommended, by ssh."""
    rows = [row for row in advice["combinations"] if row["by"] == "ssh" and row["weakness"] is None]
    checked_first = [row for row in rows if row["mac"] is None or "-etm@" in row["mac"]]
    return [(row["cipher"], row["mac"]) for row in checked_first]


def taken(options, record, hosts, pair, way):
    """Seconds of one ssh from its start to its end."""
    octets = options.cipher_mebibytes << 20
    cipher, mac = pair
    words = ["ssh", "-F", str(hosts.ssh_config), "-c", cipher, *(["-m", mac] if mac else []), hosts.addresses[0]]
    command = {"login": "true", "down": f"head -c {octets} /dev/zero", "up": "cat >/dev/null"}[way]
    record.command("ciphers", f"{cipher} {mac or ''} {way}".strip(), [*words, command], {})
    source = subprocess.Popen(["head", "-c", str(octets if way == "up" else 0), "/dev/zero"], stdout=subprocess.PIPE)
    begun = time.perf_counter()
    ssh = subprocess.Popen([*words, command], stdin=source.stdout, stdout=subprocess.DEVNULL)
    # Popen.wait with a timeout looks every 50 ms: as much as tells two ciphers apart.
    is_over = wait_without_reaping(ssh.pid, begun + PATIENCE)
    seconds = time.perf_counter() - begun
    if not is_over:
        ssh.kill()
    source.stdout.close()
    source.wait()
    if ssh.wait() != 0:
        raise Failed(f"ssh with {cipher} {mac}: status {ssh.returncode}")
    return seconds


def rate(options, times):
    """Octets a second of as much down as up, a login's time taken off."""
    octets = options.cipher_mebibytes << 20
    login = statistics.median(times["login"])
    each = [max(statistics.median(times[way]) - login, 1e-3) for way in ("down", "up")]
    return 2 * octets / sum(each)


def uncertainty(options, times):
    """The standard error of a rate's median, as a share of it: that of a mean of normal values, by 1.25."""
    rounds = [down + up for down, up in zip(times["down"], times["up"])]
    if len(rounds) < 2:
        return 1.0
    return 1.25 * statistics.stdev(rounds) / math.sqrt(len(rounds)) / statistics.median(rounds)
