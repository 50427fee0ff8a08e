//! Why a login is slow, and what to change: what was measured is judged, and reported. Pure: values in, values out, no
//! clock, no file, no socket. Measuring is the caller's part.

mod evidence;

pub use evidence::{Client, Evidence, Fact, Facts, Login, Phase, Span, Tier};
