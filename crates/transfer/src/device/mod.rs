//! Block devices on a host: what is found out before one is touched (`survey`, `facts`), in which pieces an image goes onto it
//! (`segments`), and the session on the host that writes them (`session`).
//!
//! A disk writes whole physical blocks, and what writes less makes it, or the kernel, read first (read-modify-write). So
//! everything goes in whole aligned blocks, but for what an image has beyond its last one.

mod facts;
mod segments;
mod session;
mod survey;

pub(crate) use facts::Device;
pub(crate) use segments::Segment;
pub(crate) use session::{Session, SessionStage, Word, command, is_tellable};
pub(crate) use survey::{Question, Survey, SurveyStep};
