//! KnownHostsCommand: known_hosts lines that a program prints (sshconnect.c, load_hostkeys_command).

use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sshoal_crypto::fingerprint_sha256;
use sshoal_fleet::{Failure, FailureKind};
use sshoal_known_hosts::KnownHosts;
use sshoal_spawn::{Command, Stdio};
use sshoal_ssh_config::Piece;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Semaphore;

use crate::process::Process;
use crate::rolling::beginning;

/// How long a program may take. The login's own deadline holds as well.
const PATIENCE: Duration = Duration::from_secs(10);
/// Programs of this kind at a time, in all of the process.
const AT_ONCE: usize = 16;
/// Octets that a program may print: what lies behind might revoke a key, so that more is an error.
const MAX_LINES: u64 = 16 * 1024 * 1024;

static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// A host's program and its arguments, with the tokens that depend on the occasion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownHostsCommand {
    /// The program first.
    pub(crate) arguments: Vec<Vec<Piece>>,
    /// HostName, by which it is asked before there is a key.
    pub(crate) host: String,
    /// Whether the host-key algorithms are ordered by what it prints.
    pub(crate) orders: bool,
}

/// Why the program is run: `%I`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// To order the host-key algorithms.
    Order,
    /// To judge a key by the host's name.
    HostName,
    /// To judge a key by the host's address (CheckHostIP).
    Address,
}

impl Invocation {
    fn word(self) -> &'static str {
        match self {
            Invocation::Order => "ORDER",
            Invocation::HostName => "HOSTNAME",
            Invocation::Address => "ADDRESS",
        }
    }
}

/// A host key as a server shows it, for the tokens that are about it.
#[derive(Debug, Clone)]
pub(crate) struct ShownKey {
    /// Its type: of a certificate, the certificate's.
    pub(crate) key_type: String,
    /// Key or certificate.
    pub(crate) blob: Vec<u8>,
    /// The plain key.
    pub(crate) plain: Vec<u8>,
}

impl KnownHostsCommand {
    /// Runs the program for a host, `name` as known_hosts writes it, and takes what it prints. A program that is not
    /// there, or has no absolute path, prints nothing: ssh goes on then, too.
    ///
    /// # Errors
    ///
    /// The program failed, or took too long: the host must not be judged without it.
    pub(crate) async fn run(
        &self,
        invocation: Invocation,
        name: &str,
        key: Option<&ShownKey>,
    ) -> Result<KnownHosts, Failure> {
        let words: Vec<String> = self
            .arguments
            .iter()
            .map(|pieces| expanded(pieces, invocation, name, key))
            .collect();
        let Some((program, arguments)) = words.split_first() else {
            return Ok(KnownHosts::default());
        };
        if !Path::new(program).is_absolute() || !Path::new(program).exists() {
            tracing::warn!(
                program,
                "KnownHostsCommand is no absolute path of a program"
            );
            return Ok(KnownHosts::default());
        }
        // The semaphore is never closed.
        let _turn = TURNS.acquire().await.ok();
        let failed = |why: String| {
            let detail = format!("KnownHostsCommand {program} ({}) {why}", invocation.word());
            let remedy = "run the command by hand, or unset KnownHostsCommand";
            Failure::with_remedy(FailureKind::HostKeyUnknown, detail, remedy)
        };
        match tokio::time::timeout(PATIENCE, output(program, arguments)).await {
            Err(_) => Err(failed(format!("did not end within {PATIENCE:?}"))),
            Ok(Err(error)) => Err(failed(format!("cannot be run: {error}"))),
            Ok(Ok((status, lines, _))) if status.success() => {
                let label = format!("KnownHostsCommand-{}", invocation.word());
                Ok(KnownHosts::parse(vec![(label, lines)]))
            }
            Ok(Ok((status, _, said))) => {
                let said = String::from_utf8_lossy(&said)
                    .trim()
                    .escape_debug()
                    .to_string();
                Err(failed(format!("failed, {status}: {said}")))
            }
        }
    }
}

fn expanded(
    pieces: &[Piece],
    invocation: Invocation,
    name: &str,
    key: Option<&ShownKey>,
) -> String {
    let of_key = |value: fn(&ShownKey) -> String| key.map_or("NONE".to_owned(), value);
    let values = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Token('H') => name.to_owned(),
        Piece::Token('I') => invocation.word().to_owned(),
        Piece::Token('t') => of_key(|key| key.key_type.clone()),
        Piece::Token('f') => of_key(|key| fingerprint_sha256(&key.plain)),
        Piece::Token('K') => of_key(|key| STANDARD.encode(&key.blob)),
        Piece::Token(other) => format!("%{other}"),
    });
    values.collect()
}

/// Starts the program and reads it to its end. It is killed if nobody waits for it any more.
async fn output(program: &str, arguments: &[String]) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::pipe())
        .stderr(Stdio::pipe());
    let mut process = Process::start(&mut command)?;
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let (lines, said) = tokio::try_join!(all(stdout), beginning(stderr))?;
    let status = process.wait().await?;
    // What it may have left running is meant to stay.
    process.group.release();
    Ok((status, lines, said))
}

/// All that comes.
async fn all(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    if let Some(stream) = stream {
        stream.take(MAX_LINES + 1).read_to_end(&mut lines).await?;
    }
    match lines.len() as u64 > MAX_LINES {
        true => Err(io::Error::other(format!(
            "it prints more than {} MiB",
            MAX_LINES >> 20
        ))),
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn nothing_of_what_is_printed_is_left_out() {
        let most = vec![b'x'; MAX_LINES as usize];
        assert_eq!(all(Some(&most[..])).await.unwrap().len(), most.len());
        let more = [&most[..], b"y"].concat();
        let error = all(Some(&more[..])).await.unwrap_err().to_string();
        assert!(error.contains("more than 16 MiB"), "{error}");
        assert_eq!(beginning(Some(&more[..])).await.unwrap().len(), 1024);
    }
}
