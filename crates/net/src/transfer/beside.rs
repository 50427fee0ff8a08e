//! Sessions beside the SFTP channels, in which a host runs commands for us: what those that hash and those that unpack or
//! make archives have in common.

use std::time::Duration;

use sshoal_proto::{Event, LocalChannel, SessionRequest};

/// How long a host may take to begin a command: start-up files of shells are slow at times. Some hosts never do, and
/// do not say so.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What a session asks for that is told what to do on its standard input.
pub(super) fn request(command: String) -> SessionRequest {
    SessionRequest {
        standard_input: true,
        ..SessionRequest::exec(command)
    }
}

/// The channel that something has happened on, if that is for its session to know.
pub(super) fn channel(event: &Event) -> Option<LocalChannel> {
    match event {
        Event::Data { channel, .. }
        | Event::Started(channel)
        | Event::ChannelRefused { channel, .. }
        | Event::StartRefused(channel)
        | Event::Eof(channel)
        | Event::Closed(channel)
        | Event::ExitStatus { channel, .. }
        | Event::ExitSignal { channel, .. } => Some(*channel),
        _ => None,
    }
}
