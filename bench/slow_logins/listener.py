#!/usr/bin/env python3
"""Takes connections as inetd does, and waits before it starts sshd for each: `listener.py ADDRESS PORT MILLISECONDS`.

It ends with its standard input."""

import os
import select
import socket
import subprocess
import sys
import time

RUNS = "/run/sshoal-slow/runs"


def serve(address, port, milliseconds):
    listener = socket.create_server((address, port))
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            with open(RUNS, "a") as runs:
                print("listener", file=runs)
            time.sleep(milliseconds / 1000)
            # -e: there is no log here.
            sshd = ["/usr/sbin/sshd", "-i", "-e", "-f", "/etc/ssh/sshd_config"]
            os._exit(subprocess.call(sshd, stdin=connection, stdout=connection, stderr=subprocess.DEVNULL))
        connection.close()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
