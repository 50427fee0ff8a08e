//! A traced login for a reader: as lines of text with bars, as JSON, and for programs that show traces.

mod events;
mod json;
mod text;

pub use events::events;
pub use json::json;
pub use text::{TextOptions, text};
