"""T3: round trips to the first output, over a line of 100 ms; counted on the wire, and as time.

Each run has a line of its own: the test bed joins two network namespaces, starts sshd behind the line, runs the client
before it and prints how many round trips the connection took.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from . import clients
from .hosts import PATIENCE, TESTBED, HostSet
from .install import REPO
from .measure import Failed
from .rounds import interleaved

PORT = 22
COMMAND = "echo first"
INNER = REPO / "bench/harness/first_byte.py"
# "wan: 10.0.0.1:4000 to 10.0.0.2:22: 14 round trips, 13 of them for data alone"
COUNTED = re.compile(r"^wan: \S+ to \S+: (\d+) round trips, (\d+) of them for data alone$", re.MULTILINE)


def measure(options, record, report):
    fans = options.chosen(clients.single())
    with tempfile.TemporaryDirectory(prefix="sshoal-bench-wan-") as folder:
        folder = Path(folder)
        folder.chmod(0o755)
        make_server(folder)

        def one(client, number):
            row = run_on_line(client, folder, options.round_trip_ms, number)
            record.command("T3", client.label, row.pop("argv"), {})
            report(f"T3: {client.label}: {row['round_trips']} round trips, {row['first_byte_s']:.3f} s to the first byte")
            return row

        rows = []
        for client in fans:
            # A client that fails does not take the others' figures with it.
            try:
                rows += interleaved([client], options.wan_rounds, one)
            except (Failed, subprocess.TimeoutExpired) as error:
                report(f"NOT MEASURED: T3 {client.label}: {error}")
    record.experiment("T3", {"round_trip_ms": options.round_trip_ms, "command": COMMAND, "servers": "sshd"}, rows)


def make_server(folder):
    """Keys, configuration and client files; addresses come when the line exists."""
    for name in ("host_ed25519", "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized_keys").write_text((folder / "id_ed25519.pub").read_text())
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host_ed25519\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\n"
        "StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n"
        # A session whose connection went with the line must not stay.
        "ClientAliveInterval 1\nClientAliveCountMax 2\n"
    )


def run_on_line(client, folder, round_trip_ms, number):
    # Its output goes nowhere: a session that outlives the line would hold our pipe open.
    sshd = f'exec /usr/sbin/sshd -D -f {folder}/sshd_config -o PidFile=none -o ListenAddress="$SSHOAL_WAN_SERVER:{PORT}" >/dev/null 2>&1'
    inner = [sys.executable, str(INNER), str(folder), client.name, client.kex, COMMAND]
    line = [str(TESTBED), "wan", "--delay-ms", str(round_trip_ms / 2), "--seed", str(number)]
    words = [*line, "--server-cmd", sshd, "--wait-port", str(PORT), "--", *inner]
    account = folder / f"account-{client.name}-{client.kex}-{number}".replace(" ", "-").replace("/", "-")
    account.mkdir()
    ended = subprocess.run(with_plain_account(account, words), capture_output=True, text=True, timeout=PATIENCE)
    counted = COUNTED.findall(ended.stderr)
    if ended.returncode != 0 or len(counted) != 1:
        raise Failed(f"{ended.returncode}, {len(counted)} connections: {ended.stdout}{ended.stderr[-2000:]}")
    round_trips, data_round_trips = map(int, counted[0])
    row = json.loads(ended.stdout)
    return {**row, "round_trips": round_trips, "data_round_trips": data_round_trips}


def host_set(folder, address):
    """The files of the one host behind the line, whose address is known only there."""
    key = (folder / "host_ed25519.pub").read_text()
    (folder / "hosts").write_text(f"{address}\n")
    (folder / "known_hosts").write_text(f"{address} {key}")
    (folder / "ssh_config").write_text(
        f"Host *\n    User root\n    Port {PORT}\n    IdentityFile {folder}/id_ed25519\n    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {folder}/known_hosts\n    GlobalKnownHostsFile /dev/null\n"
        "    StrictHostKeyChecking yes\n    BatchMode yes\n"
    )
    return HostSet.read(folder)


def with_plain_account(folder, words):
    """Starts `words` where root's home is empty and its shell is /bin/sh.

    sshd starts the user's shell in the user's home directory, and start-up files there can cost more than the login.
    A mount namespace of its own gives the server another /etc/passwd and leaves the machine's alone.
    """
    home = folder / "home"
    home.mkdir(mode=0o700)
    lines = Path("/etc/passwd").read_text().splitlines()
    others = [line for line in lines if not line.startswith("root:")]
    passwd = folder / "passwd"
    passwd.write_text("\n".join([f"root:x:0:0::{home}:/bin/sh", *others]) + "\n")
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc/passwd && shift && exec "$@"', "sh", str(passwd), *words]
