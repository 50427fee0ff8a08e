//! What a delay line is asked to be, and why one could not be had.

use std::io;
use std::time::Duration;

use thiserror::Error;

/// The smallest queue that is chosen where none is asked for: four packets of 64 KiB.
const SMALLEST_DEFAULT_QUEUE: u64 = 256 * 1024;

/// The link to imitate. Both directions get the same, each with a queue of its own.
///
/// The default has no delay, no limit of rate and no loss.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineSpec {
    /// How long a packet is under way, one way. A round trip takes twice this.
    pub delay: Duration,
    /// Bits a second that pass in each direction, IP headers included. None: as fast as the machine can.
    pub rate_bits: Option<u64>,
    /// Bytes that may wait for the rate; what comes on top is dropped. None: one round trip's worth of the
    /// rate, and at least 256 KiB. Without a rate nothing waits, and this has no meaning.
    pub queue_bytes: Option<u64>,
    /// The probability, 0 to 1, that a segment is lost.
    pub loss: f64,
    /// Where the losses start from: the same seed loses the same segments of each direction's sequence.
    pub seed: u64,
}

impl LineSpec {
    /// A line without limit or loss that delays by `delay` each way.
    pub fn delayed(delay: Duration) -> LineSpec {
        LineSpec {
            delay,
            ..LineSpec::default()
        }
    }

    /// The length of each direction's queue in bytes, chosen as [`LineSpec::queue_bytes`] says.
    pub(crate) fn queue_limit(&self) -> u64 {
        let round_trip = self.delay.as_nanos() * 2;
        let chosen = |rate: u64| u128::from(rate) / 8 * round_trip / 1_000_000_000;
        match (self.queue_bytes, self.rate_bits) {
            (Some(bytes), _) => bytes,
            (None, Some(rate)) => u64::try_from(chosen(rate))
                .map_or(u64::MAX, |bytes| bytes.max(SMALLEST_DEFAULT_QUEUE)),
            (None, None) => u64::MAX,
        }
    }

    pub(crate) fn check(&self) -> Result<(), LineError> {
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(LineError::Spec("the loss is a probability from 0 to 1"));
        }
        if self.rate_bits == Some(0) {
            return Err(LineError::Spec("a rate of 0 bits a second passes nothing"));
        }
        Ok(())
    }
}

/// Why a delay line could not be set up or did not last.
#[derive(Debug, Error)]
pub enum LineError {
    /// Only root may make network namespaces and TUN devices.
    #[error("the delay line makes network namespaces and TUN devices: run it as root")]
    NotRoot,
    /// The specification makes no sense.
    #[error("no such line can be: {0}")]
    Spec(&'static str),
    /// The program `ip` could not be started.
    #[error("cannot start `ip` (install iproute2): {0}")]
    NoIpProgram(#[source] io::Error),
    /// The program `ip` refused.
    #[error("`{command}` failed: {message}")]
    Ip {
        /// The command as it was started.
        command: String,
        /// What it wrote on its standard error.
        message: String,
    },
    /// A system call failed.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Nothing listens where a server was expected.
    #[error("nothing listens on port {port} of the server's namespace after {} s", waited.as_secs_f32())]
    NotListening {
        /// The port that was watched.
        port: u16,
        /// For how long.
        waited: Duration,
    },
}

impl LineError {
    /// For `map_err`: a system call failed while `doing` this.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> LineError {
        move |source| LineError::System { doing, source }
    }
}
