"""An SSH server on asyncssh for interoperation tests: it accepts the keys it is told to accept, runs each exec
request with /bin/sh, and has SFTP. It ends when its standard input does."""

import argparse
import asyncio
import signal
import sys

import asyncssh


class AnyUser(asyncssh.SSHServer):
    """Any user name will do; the key decides."""

    def __init__(self, authorized_keys):
        self.authorized_keys = authorized_keys
        self.connection = None

    def connection_made(self, conn):
        self.connection = conn

    def begin_auth(self, username):
        # Read anew at each login, so that a test may change the file while the server runs.
        self.connection.set_authorized_keys(self.authorized_keys)
        return True


async def run_command(process):
    """Runs the command with its streams joined to the channel's."""
    if process.command is None:
        process.stderr.write(b"only commands here\n")
        process.exit(1)
        return
    child = await asyncio.create_subprocess_shell(
        process.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(process.env) or None,
    )
    feeding = asyncio.ensure_future(feed(process.stdin, child.stdin))
    await asyncio.gather(drain(child.stdout, process.stdout), drain(child.stderr, process.stderr))
    status = await child.wait()
    feeding.cancel()
    if status < 0:
        process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
    else:
        process.exit(status)


async def feed(source, sink):
    """From the channel to the command's standard input, until either side has enough."""
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except (BrokenPipeError, ConnectionResetError, asyncssh.Error):
        pass
    sink.close()


async def drain(source, sink):
    """From the command's output to the channel."""
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()


async def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--host-key", action="append", required=True, metavar="FILE")
    parser.add_argument("--authorized-keys", required=True, metavar="FILE")
    parser.add_argument("--kex", default="*", help="key exchanges, comma-separated")
    parser.add_argument("--ciphers", default="*", help="ciphers, comma-separated")
    parser.add_argument("--macs", default="*", help="MACs, comma-separated")
    parser.add_argument("--rekey-bytes", type=int, help="ask for new keys after so many bytes")
    args = parser.parse_args()

    host, port = args.listen.rsplit(":", 1)
    limits = {"rekey_bytes": args.rekey_bytes} if args.rekey_bytes else {}
    await asyncssh.create_server(
        lambda: AnyUser(args.authorized_keys),
        host,
        int(port),
        server_host_keys=args.host_key,
        process_factory=run_command,
        sftp_factory=True,
        encoding=None,
        kex_algs=args.kex,
        encryption_algs=args.ciphers,
        mac_algs=args.macs,
        compression_algs=["none"],
        allow_pty=False,
        **limits,
    )
    print("listening", args.listen, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


asyncio.run(main())
