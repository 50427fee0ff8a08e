"""A name server for one name or two, some of whose answers come late or never (RFC 1035)."""

import os
import socket
import struct
import threading

PORT = 53
A, PTR, AAAA, SSHFP = 1, 12, 28, 44
TYPES = {"A": A, "PTR": PTR, "AAAA": AAAA, "SSHFP": SSHFP}
# The header's flags of an answer: QR, RD and RA; and with the code that there is no such name.
ANSWER, UNKNOWN = 0x8180, 0x8183
# What a client's address is called.
CLIENT = "client.example.org"


class NameServer:
    """Runs until the block is left. `names` has addresses by name. `settings` is the entry `dns` of fresh.toml: types of records that are `slow`,
    which take so many milliseconds, or `lost`; or that all is `silent`."""

    def __init__(self, settings, names, milliseconds):
        self.names = {CLIENT: "127.0.0.1", **names}
        self.delay = (milliseconds or 0) / 1000
        self.slow = {TYPES[name] for name in settings.get("slow", [])}
        self.lost = set(TYPES.values()) if settings.get("silent") else {TYPES[name] for name in settings.get("lost", [])}
        self.address, self.socket = bound()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        # What is empty wakes the thread.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
            waker.sendto(b"", (self.address, PORT))
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            if not query:
                return
            name, kind = question(query)
            if kind in self.lost:
                continue
            answer = self.answer(query, name, kind)
            delay = self.delay if kind in self.slow else 0
            # At once, it is sent from here: a thread would come later.
            if delay:
                threading.Timer(delay, self.send, (answer, client)).start()
            else:
                self.send(answer, client)

    def send(self, answer, client):
        try:
            self.socket.sendto(answer, client)
        except OSError:
            # The run is over.
            pass

    def answer(self, query, name, kind):
        """The question once more and what is known; no additional records."""
        end = 12 + len(encoded(name)) + 4
        data = None
        if kind == A and name in self.names:
            data = socket.inet_aton(self.names[name])
        elif kind == PTR:
            data = encoded(CLIENT)
        records = b"" if data is None else struct.pack(">HHHIH", 0xC00C, kind, 1, 1, len(data)) + data
        flags = ANSWER if records or name in self.names else UNKNOWN
        return query[:2] + struct.pack(">HHHHH", flags, 1, bool(records), 0, 0) + query[12:end] + records


def bound():
    """An address of its own, so that several may run at a time."""
    for number in range(256):
        address = f"127.53.{200 + os.getpid() % 50}.{1 + number % 254}"
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.bind((address, PORT))
            return address, made
        except OSError:
            made.close()
    raise OSError("no address has port 53 free")


def question(query):
    """The name and the type that are asked for."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels).lower(), struct.unpack(">H", query[at + 1 : at + 3])[0]


def encoded(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"
