//! A traced login for a reader: as lines of text with bars, and as JSON.

mod json;
mod text;

pub use json::json;
pub use text::{TextOptions, text};
