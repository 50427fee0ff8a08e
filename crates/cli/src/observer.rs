//! Joins the network's observer with the report.

use std::io;
use std::time::Instant;

use sshoal_fleet::{HostId, HostResult, Progress};
use sshoal_net::{Observer, Stream};
use sshoal_report::Reporter;

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

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        self.0.tick(Instant::now(), progress)
    }
}
