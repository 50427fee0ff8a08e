//! What a diagnosis looks like: in a terminal, as JSON, as a page, and for programs that show traces. Foreign text is made
//! harmless in each of them for what reads it.

mod chrome_trace;
mod html;
mod json;
mod text;

pub use chrome_trace::chrome_trace;
pub use html::{Followed, html};
pub use json::{SCHEMA_VERSION, json};
pub use text::{TextOptions, text};

pub(crate) use html::page;
pub(crate) use json::microseconds;
pub(crate) use text::Painter;

use crate::evidence::{Client, Tier};

impl Client {
    /// Its name in JSON and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Client::Sshoal => "sshoal",
            Client::Ssh => "ssh",
        }
    }
}

impl Tier {
    /// Its name in JSON and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Client => "client",
            Tier::NoRoot => "no-root",
            Tier::Root => "root",
        }
    }
}
