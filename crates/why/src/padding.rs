//! sshd's padding of requests for authentication, which hides from a client how much work they are.
//!
//! ```text
//! first request     answered when it is padded (`none`; later versions do not pad that one)
//! key probe         PK_OK goes out at once, and sshd sleeps afterwards; the refusal of a key goes out padded
//! signed request    waits until the probe's padding is over, and is padded itself
//! ```

use std::time::Duration;

use crate::causes::version;
use crate::evidence::{Evidence, Login, Phase};
use crate::reckoning::Sample;

/// Each request is padded to a time of its own for each user: 5 ms and up to 4.2 more, doubled until the request's own work has
/// room in it (auth2.c, `user_specific_delay`, `ensure_minimum_time_since`).
const LEAST: Duration = Duration::from_millis(5);
const MOST: Duration = Duration::from_micros(9_200);
/// What is taken where the logins do not show it: the middle.
const USUAL: Duration = Duration::from_micros(7_100);

/// The first version of OpenSSH that pads.
const SINCE: (u32, u32) = (7, 8);

/// sshd gives a login two minutes (LoginGraceTime): so often 5 ms may be doubled.
const MAX_DOUBLINGS: u32 = 14;

/// What else there is in the answer to a first request: the service's, and looking the user up.
const BESIDE: Duration = Duration::from_micros(500);

/// sshd's padding for this user, as the logins of a client show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pad {
    /// What a request is padded to at least.
    pub(crate) base: Duration,
    /// How often that is doubled in the first request; `None` if that one is not padded.
    pub(crate) doublings: Option<u32>,
}

impl Pad {
    /// The padding, if the server is one that pads: from the first request, which has little else in it.
    pub(crate) fn of(evidence: &Evidence, logins: &[&Login], round_trip: Duration) -> Option<Pad> {
        let identification = evidence.identification.as_deref();
        if identification.is_some_and(|server| !pads(server)) {
            return None;
        }
        let of = |phase: Phase, trips: u32| {
            let spans = logins.iter().flat_map(|login| &login.spans);
            let spans = spans.filter(move |span| span.phase == phase);
            let sample = Sample::of(spans.map(|span| span.duration))?;
            Some(sample.median.saturating_sub(round_trip * trips))
        };
        let first = of(Phase::FirstRequest, 2).and_then(|time| pad(time.saturating_sub(BESIDE)));
        if let Some((base, doublings)) = first {
            let doublings = Some(doublings);
            return Some(Pad { base, doublings });
        }
        // Two of them, unless more than these is in it.
        let signed = of(Phase::SignedRequest, 1).map(|time| time / 2);
        let base = signed.filter(|base| (LEAST..=MOST).contains(base));
        Some(Pad {
            base: base.unwrap_or(USUAL),
            doublings: None,
        })
    }

    /// What a request with so much work in it is padded to.
    pub(crate) fn around(&self, work: Duration) -> Duration {
        let mut padded = self.base;
        for _ in 0..MAX_DOUBLINGS {
            if padded >= work {
                break;
            }
            padded *= 2;
        }
        padded
    }

    /// What of a phase's time is padding around work that is not worth a word. That of keys that are refused is none: they are too many.
    pub(crate) fn in_phase(&self, phase: Phase, requests: u32, round_trip: Duration) -> Duration {
        match phase {
            Phase::FirstRequest if self.doublings.is_some() => self.base,
            Phase::SignedRequest if requests > 0 => {
                self.base + self.base.saturating_sub(round_trip)
            }
            Phase::SignedRequest => self.base,
            _ => Duration::ZERO,
        }
    }
}

/// OpenSSH does, from that version on; what does not tell its version is not taken for an old one.
fn pads(identification: &str) -> bool {
    let is_since = version(identification).is_none_or(|version| version >= SINCE);
    identification.contains("OpenSSH") && is_since
}

/// Which padding a request of this length, without the round trip, is, and how often it is doubled.
fn pad(request: Duration) -> Option<(Duration, u32)> {
    // What else there is in a request is small beside the padding.
    let slack = Duration::from_micros(400);
    (0..=MAX_DOUBLINGS).find_map(|doublings| {
        let base = request / 2_u32.pow(doublings);
        let fits = base + slack >= LEAST && base <= MOST + slack;
        fits.then(|| (base.clamp(LEAST, MOST), doublings))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::evidence::Client;
    use crate::fixtures::{clean, ms, slow};
    use crate::reckoning::counted;

    fn of(evidence: &Evidence) -> Option<Pad> {
        Pad::of(evidence, &counted(evidence, Client::Sshoal), ms(0.05))
    }

    #[test]
    fn it_is_told_by_the_first_request_however_often_it_is_doubled() {
        let mut evidence = clean(0.05);
        let quiet = of(&evidence).unwrap();
        assert_eq!(quiet.doublings, Some(0));
        assert!(quiet.base.abs_diff(ms(7.3)) < ms(0.2), "{quiet:?}");
        slow(&mut evidence, Phase::FirstRequest, 7.3);
        assert_eq!(of(&evidence).unwrap().doublings, Some(1));
    }

    #[test]
    fn where_the_first_request_is_not_padded_the_signed_one_has_two() {
        let mut evidence = clean(0.05);
        for login in &mut evidence.logins {
            for span in &mut login.spans {
                if span.phase == Phase::FirstRequest {
                    span.duration = ms(1.0);
                }
            }
        }
        let found = of(&evidence).unwrap();
        assert_eq!(found.doublings, None);
        assert!(found.base.abs_diff(ms(7.5)) < ms(0.4), "{found:?}");
        slow(&mut evidence, Phase::SignedRequest, 300.0);
        assert_eq!(of(&evidence).unwrap().base, USUAL);
    }

    #[test]
    fn other_servers_have_none() {
        let mut evidence = clean(0.05);
        for server in ["SSH-2.0-dropbear_2022.83", "SSH-2.0-OpenSSH_7.4"] {
            evidence.identification = Some(server.to_owned());
            assert_eq!(of(&evidence), None, "{server}");
        }
        for server in [
            "SSH-2.0-OpenSSH_7.8",
            "SSH-2.0-OpenSSH_for_Windows_8.1",
            "SSH-2.0-OpenSSH_10.0",
        ] {
            evidence.identification = Some(server.to_owned());
            assert!(of(&evidence).is_some(), "{server}");
        }
    }

    #[test]
    fn work_is_padded_to_the_next_doubling() {
        let pad = Pad {
            base: ms(8.0),
            doublings: Some(0),
        };
        assert_eq!(pad.around(ms(3.0)), ms(8.0));
        assert_eq!(pad.around(ms(64.0)), ms(64.0));
        assert_eq!(pad.around(ms(65.0)), ms(128.0));
    }

    proptest! {
        #[test]
        fn every_doubling_of_every_padding_is_known(base in 5.4..9.2_f64, doublings in 0..12_u32) {
            let (found, times) = pad(ms(base) * 2_u32.pow(doublings)).unwrap();
            prop_assert_eq!(times, doublings);
            prop_assert!(found.abs_diff(ms(base)) < ms(0.1), "{:?} for {}", found, base);
        }
    }
}
