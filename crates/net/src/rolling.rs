//! What is seen to between two batches of a run: a pause, and a command of this machine that has to succeed.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use sshoal_fleet::Rolling;
use sshoal_spawn::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use crate::process::Process;
use crate::shell;

/// From one attempt of the command to the next.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);
/// Octets that are quoted of what it printed last.
const MAX_SAID: u64 = 1024;
/// How long what it printed is waited for once it has ended: what it left running may keep its output open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);
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
    /// Waits until a run may be gone on with of which `ended` batches have ended, before it is begun. `tell` is called with why it
    /// takes longer, once.
    ///
    /// # Errors
    ///
    /// In words, why it may not.
    pub fn agree(&self, ended: u32, tell: impl FnOnce(String)) -> Result<(), String> {
        if self.pause.is_zero() && self.until.is_none() {
            return Ok(());
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot wait: {error}"))?;
        runtime.block_on(self.between(ended, tell))
    }

    /// Waits until the next batch may begin. `ended` batches have ended. `tell` is called with why it takes longer, once.
    ///
    /// # Errors
    ///
    /// The command has not succeeded: in words, what it did last.
    pub(crate) async fn between(
        &self,
        ended: u32,
        tell: impl FnOnce(String),
    ) -> Result<(), String> {
        sleep(self.pause).await;
        let Some(until) = &self.until else {
            return Ok(());
        };
        let begun = Instant::now();
        let limit = until.at_most.as_secs_f64();
        let mut tell = Some(tell);
        loop {
            let left = until.at_most.saturating_sub(begun.elapsed());
            let what = match timeout(left, attempt(&until.line, ended)).await {
                Ok(Ok((status, _))) if status.success() => return Ok(()),
                Ok(Ok((status, said))) => failure(status, &said),
                Ok(Err(error)) => format!("it cannot be run: {error}"),
                Err(_) => "it had not ended".to_owned(),
            };
            if begun.elapsed().saturating_add(BETWEEN_ATTEMPTS) >= until.at_most {
                return Err(format!(
                    "--until has not succeeded within {limit} s: {what}"
                ));
            }
            if let Some(tell) = tell.take() {
                tell(format!(
                    "--until has not succeeded yet and is repeated for {limit} s: {what}"
                ));
            }
            sleep(BETWEEN_ATTEMPTS).await;
        }
    }
}

/// `exit status: 4: not yet`
fn failure(status: ExitStatus, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    match said.trim() {
        "" => status.to_string(),
        said => format!("{status}: {}", said.escape_debug()),
    }
}

/// Runs the command once; returns its status and what it said. It is killed if nobody waits for it any more.
async fn attempt(line: &str, ended: u32) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut command = shell::command(line);
    command
        .env(BATCH, ended.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::pipe())
        .stderr(Stdio::pipe());
    let mut process = Process::start(&mut command)?;
    let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
    let words = async { tokio::try_join!(beginning(stdout), beginning(stderr)) };
    tokio::pin!(words);
    let (status, words) = tokio::select! {
        words = &mut words => (process.wait().await?, Some(words?)),
        status = process.wait() => {
            (status?, timeout(LAST_WORDS, words).await.ok().transpose()?)
        }
    };
    // What it may have left running is meant to stay.
    process.group.release();
    let (printed, said) = words.unwrap_or_default();
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
        let mut told = Vec::new();
        plan(&line, Duration::from_secs(60))
            .between(3, |what| told.push(what))
            .await
            .unwrap();
        assert_eq!(std::fs::read_to_string(log).unwrap(), "3\n3\n");
        let expected = "--until has not succeeded yet and is repeated for 60 s: exit status: 1";
        assert_eq!(told, [expected]);
    }

    #[tokio::test]
    async fn a_command_has_ended_though_what_it_left_running_holds_its_output() {
        let dir = tempfile::tempdir().unwrap();
        let number = dir.path().join("number");
        let line = format!("sleep 3600 & echo $! >{}", number.display());
        plan(&line, Duration::MAX)
            .between(1, |what| panic!("{what}"))
            .await
            .unwrap();
        let number = std::fs::read_to_string(number).unwrap();
        let left = rustix::process::Pid::from_raw(number.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(left, rustix::process::Signal::KILL)
            .expect("it is left running");
    }

    #[tokio::test]
    async fn what_does_not_succeed_in_time_is_told() {
        let soon = Duration::from_millis(300);
        let said = |line| async move { plan(line, soon).between(1, drop).await.unwrap_err() };
        let failed = said("echo not yet >&2; exit 4").await;
        assert!(failed.ends_with("status: 4: not yet"), "{failed}");
        let said = said("exec sleep 3600").await;
        assert!(said.contains("it had not ended"), "{said}");
    }
}
