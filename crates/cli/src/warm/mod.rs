//! `sshoal up`, `down` and `status`: connections that stay, for ssh, scp, rsync, git and everything else that knows ControlPath.

mod args;
mod background;
mod kept;
mod observer;
mod request;
mod rounds;
mod status;
mod up;
mod voice;

pub(crate) use args::{DownArgs, StatusArgs, UpArgs};
pub(crate) use kept::Kept;
pub(crate) use status::{age, down, status};
pub(crate) use up::up;
