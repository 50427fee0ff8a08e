//! What is seen to between two batches of a run: a pause, and a command of this machine that has to succeed.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use sshoal_fleet::Rolling;
use sshoal_spawn::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout_at};

use crate::process::Process;
use crate::shell;

/// From one attempt of the command to the next.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);
/// Octets that are quoted of what it printed last.
const MAX_SAID: u64 = 1024;
/// Tells the command how many batches have ended.
const BATCH: &str = "SSHOAL_BATCH";

/// A run in batches.
#[derive(Debug, Clone, Default)]
pub struct RollingPlan {
    /// Which hosts when, and how many may fail.
    pub rolling: Rolling,
    /// How long to wait before each further batch.
    pub pause: Duration,
    /// What must succeed before each further batch, after the pause.
    pub until: Option<Until>,
}

/// A command of this machine.
#[derive(Debug, Clone)]
pub struct Until {
    /// As the user's shell takes it; SSHOAL_BATCH tells it how many batches have ended.
    pub line: String,
    /// It is repeated for so long until it succeeds.
    pub at_most: Duration,
}

impl RollingPlan {
    /// Waits until a run may be gone on with of which `ended` batches have ended, before it is begun.
    ///
    /// # Errors
    ///
    /// In words, why it may not.
    pub fn agree(&self, ended: u32) -> Result<(), String> {
        if self.pause.is_zero() && self.until.is_none() {
            return Ok(());
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot wait: {error}"))?;
        runtime.block_on(self.between(ended))
    }

    /// Waits until the next batch may begin. `ended` batches have ended.
    ///
    /// # Errors
    ///
    /// The command has not succeeded: in words, what it did last.
    pub(crate) async fn between(&self, ended: u32) -> Result<(), String> {
        sleep(self.pause).await;
        let Some(until) = &self.until else {
            return Ok(());
        };
        let deadline = Instant::now() + until.at_most;
        let given_up = |what: String| {
            let limit = until.at_most.as_secs_f64();
            Err(format!(
                "--until has not succeeded within {limit} s: {what}"
            ))
        };
        loop {
            let attempt = timeout_at(deadline, attempt(&until.line, ended)).await;
            let what = match attempt {
                Ok(Ok((status, _))) if status.success() => return Ok(()),
                Ok(Ok((status, said))) => {
                    let said = String::from_utf8_lossy(&said);
                    format!("{status}: {}", said.trim().escape_debug())
                }
                Ok(Err(error)) => format!("it cannot be run: {error}"),
                Err(_) => return given_up("it had not ended".to_owned()),
            };
            if Instant::now() + BETWEEN_ATTEMPTS >= deadline {
                return given_up(what);
            }
            sleep(BETWEEN_ATTEMPTS).await;
        }
    }
}

/// Runs the command once. It is killed if nobody waits for it any more.
async fn attempt(line: &str, ended: u32) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut command = shell::command(line);
    command
        .env(BATCH, ended.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::pipe())
        .stderr(Stdio::pipe());
    let mut process = Process::start(&mut command)?;
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let (printed, said) = tokio::try_join!(beginning(stdout), beginning(stderr))?;
    let status = process.wait().await?;
    // What it may have left running is meant to stay.
    process.group.release();
    Ok((status, if said.is_empty() { printed } else { said }))
}

/// As much as is quoted; the rest is read so that the command need not wait.
pub(crate) async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(MAX_SAID).read_to_end(&mut kept).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn plan(line: &str, at_most: Duration) -> RollingPlan {
        let line = line.to_owned();
        RollingPlan {
            until: Some(Until { line, at_most }),
            ..RollingPlan::default()
        }
    }

    #[tokio::test]
    async fn a_command_is_repeated_until_it_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let line = format!(
            "echo $SSHOAL_BATCH >>{0}; [ $(wc -l <{0}) = 2 ]",
            log.display()
        );
        plan(&line, Duration::from_secs(60))
            .between(3)
            .await
            .unwrap();
        assert_eq!(std::fs::read_to_string(log).unwrap(), "3\n3\n");
    }

    #[tokio::test]
    async fn what_does_not_succeed_in_time_is_told() {
        let soon = Duration::from_millis(300);
        let failed = plan("echo not yet >&2; exit 4", soon).between(1).await;
        let said = failed.unwrap_err();
        assert!(said.contains("status: 4: not yet"), "{said}");
        let said = plan("exec sleep 3600", soon).between(1).await.unwrap_err();
        assert!(said.contains("it had not ended"), "{said}");
    }
}
