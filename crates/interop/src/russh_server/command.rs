//! A command, with its streams joined to a channel's.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use russh::server::Handle;
use russh::{ChannelId, Sig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::UnboundedReceiver;

/// Octets of output read at a time: those of one CHANNEL_DATA of the size that OpenSSH takes.
const PIECE: usize = 32 << 10;
/// RFC 4254, section 5.2: SSH_EXTENDED_DATA_STDERR.
const STDERR: u32 = 1;

/// The connection is gone: nobody is left to tell.
struct Gone;

/// Starts `line` by the shell.
pub(super) fn start(line: &[u8], environment: &[(String, String)]) -> io::Result<Child> {
    Command::new("/bin/sh")
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .envs(environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// Carries input and output until the command ends, and reports how it ended (RFC 4254, section 6.10).
pub(super) async fn run(
    mut child: Child,
    input: UnboundedReceiver<Vec<u8>>,
    handle: Handle,
    channel: ChannelId,
) {
    let stdin = child.stdin.take();
    // Apart, so that a command which does not read its input still ends.
    let feeding = tokio::spawn(feed(input, stdin));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let carried = tokio::try_join!(
        drain(stdout, &handle, channel, None),
        drain(stderr, &handle, channel, Some(STDERR))
    );
    let ended = child.wait().await;
    feeding.abort();
    let (Ok(_), Ok(status)) = (carried, ended) else {
        return;
    };
    // Each of these fails only if the connection is gone.
    let _ = match (status.code(), status.signal()) {
        (Some(code), _) => handle.exit_status_request(channel, code as u32).await,
        (None, signal) => {
            let name = signal_name(signal.unwrap_or_default());
            handle
                .exit_signal_request(channel, name, false, String::new(), String::new())
                .await
        }
    };
    let _ = handle.eof(channel).await;
    let _ = handle.close(channel).await;
}

async fn feed(mut input: UnboundedReceiver<Vec<u8>>, stdin: Option<ChildStdin>) {
    let Some(mut stdin) = stdin else { return };
    while let Some(data) = input.recv().await {
        if stdin.write_all(&data).await.is_err() {
            // The command has closed its input: the rest is of no use.
            return;
        }
    }
}

async fn drain(
    source: Option<impl AsyncRead + Unpin>,
    handle: &Handle,
    channel: ChannelId,
    extended: Option<u32>,
) -> Result<(), Gone> {
    let Some(mut source) = source else {
        return Ok(());
    };
    loop {
        let mut piece = vec![0; PIECE];
        let length = source.read(&mut piece).await.map_err(|_| Gone)?;
        if length == 0 {
            return Ok(());
        }
        piece.truncate(length);
        match extended {
            None => handle.data(channel, piece).await,
            Some(kind) => handle.extended_data(channel, kind, piece).await,
        }
        .map_err(|_| Gone)?;
    }
}

/// Those of RFC 4254, section 6.10, that tests send.
fn signal_name(number: i32) -> Sig {
    match number {
        1 => Sig::HUP,
        2 => Sig::INT,
        9 => Sig::KILL,
        15 => Sig::TERM,
        other => Sig::Custom(other.to_string()),
    }
}
