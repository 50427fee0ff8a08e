//! Joins the network's observer with the report.

use std::io;
use std::time::Instant;

use sshoal_fleet::{HostId, HostResult, Progress};
use sshoal_net::{Observer, Secret, Stream};
use sshoal_report::Reporter;

use crate::prompt::{self, PromptError};

/// Passes everything on to the report.
pub(crate) struct Reporting(pub(crate) Reporter);

impl Observer for Reporting {
    fn output(&mut self, host: HostId, stream: Stream, octets: &[u8]) -> io::Result<()> {
        let stream = match stream {
            Stream::Stdout => sshoal_report::Stream::Stdout,
            Stream::Stderr => sshoal_report::Stream::Stderr,
        };
        self.0.handle_output(host, stream, octets)
    }

    fn result(&mut self, result: &HostResult) -> io::Result<()> {
        self.0.handle_result(result)
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        self.0.notice(text)
    }

    fn ask(&mut self, question: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<Secret>> {
        self.0.pause()?;
        match prompt::secret(question, wanted) {
            Ok(secret) => Ok(Some(secret)),
            Err(error @ (PromptError::Nowhere | PromptError::Io(_))) => {
                self.0.notice(&format!(
                    "{}: {error}",
                    question.trim_end_matches([':', ' '])
                ))?;
                Ok(None)
            }
            Err(PromptError::Interrupted | PromptError::Declined) => Ok(None),
        }
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        self.0.tick(Instant::now(), progress)
    }
}
