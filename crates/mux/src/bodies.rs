//! The bodies of what a passenger in proxy mode sends: what follows the type of a channel or of a request.
//!
//! OpenSSH's server ends the whole connection, everybody's, for one that does not follow its format (session.c and
//! serverloop.c, `sshpkt_fatal`): too short, too long, a text with a NUL. So the known ones are read to their end before
//! they pass. Those of other types pass as they are: OpenSSH's server refuses them unread.

use sshoal_wire::{
    ChannelOpen, ChannelOpenConfirmation, ChannelRequest, DecodeError, Decoder, Message, Problem,
};

use Field::{Flag, Modes, Number, Octets, Text};

/// One field of a body, and what it is called.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// A string without the octet 0.
    Text(&'static str),
    /// A string.
    Octets(&'static str),
    Number(&'static str),
    Flag(&'static str),
    /// Terminal modes (RFC 4254 section 8).
    Modes,
}

/// TTY_OP_END, and the first opcode of which RFC 4254 section 8 does not say what follows it.
const MODES_END: u8 = 0;
const MODES_UNDEFINED: u8 = 160;

/// Reads what a message has behind the fields that all of its number have.
///
/// # Errors
/// A server would end the connection for it.
pub(crate) fn check(message: &Message<'_>) -> Result<(), DecodeError> {
    match message {
        Message::ChannelOpen(ChannelOpen {
            channel_type, data, ..
        }) => {
            let name = "channel type";
            read("CHANNEL_OPEN", name, channel_type, of_channel, data)
        }
        Message::ChannelRequest(ChannelRequest {
            request_type, data, ..
        }) => {
            let name = "request type";
            read("CHANNEL_REQUEST", name, request_type, of_request, data)
        }
        // No type of channel that a server opens has anything there.
        Message::ChannelOpenConfirmation(ChannelOpenConfirmation { data, .. }) => {
            let mut fields = Decoder::named("CHANNEL_OPEN_CONFIRMATION", data);
            fields.field("maximum packet size");
            fields.finish()
        }
        _ => Ok(()),
    }
}

/// Reads a body, if its type is known.
fn read(
    message: &'static str,
    name: &'static str,
    kind: &[u8],
    fields_of: fn(&[u8]) -> Option<&'static [Field]>,
    body: &[u8],
) -> Result<(), DecodeError> {
    let mut decoder = Decoder::named(message, body);
    without_nul(decoder.field(name), kind)?;
    let Some(fields) = fields_of(kind) else {
        return Ok(());
    };
    for field in fields {
        match *field {
            Text(name) => {
                text(&mut decoder, name)?;
            }
            Octets(name) => {
                decoder.field(name).string()?;
            }
            Number(name) => {
                decoder.field(name).u32()?;
            }
            Flag(name) => {
                decoder.field(name).boolean()?;
            }
            Modes => {
                let modes = decoder.field("terminal modes").string()?;
                read_modes(message, modes)?;
            }
        }
    }
    decoder.finish()
}

/// The fields of a channel that a client opens (RFC 4254 sections 6.1 and 7.2; OpenSSH's PROTOCOL sections 2.2 and 2.4).
fn of_channel(channel_type: &[u8]) -> Option<&'static [Field]> {
    let fields: &'static [Field] = match channel_type {
        b"session" => &[],
        b"direct-tcpip" => &[
            Text("host to connect"),
            Number("port to connect"),
            Text("originator IP address"),
            Number("originator port"),
        ],
        b"direct-streamlocal@openssh.com" => &[
            Text("socket path"),
            Text("reserved"),
            Number("reserved number"),
        ],
        b"tun@openssh.com" => &[Number("tunnel mode"), Number("remote unit number")],
        _ => return None,
    };
    Some(fields)
}

/// The fields of a request (RFC 4254 section 6, RFC 4335; OpenSSH's PROTOCOL sections 2.1 and 2.5).
fn of_request(request_type: &[u8]) -> Option<&'static [Field]> {
    let fields: &'static [Field] = match request_type {
        b"pty-req" => &[
            Text("TERM environment variable value"),
            Number("width in characters"),
            Number("height in rows"),
            Number("width in pixels"),
            Number("height in pixels"),
            Modes,
        ],
        b"x11-req" => &[
            Flag("single connection"),
            Text("x11 authentication protocol"),
            Text("x11 authentication cookie"),
            Number("x11 screen number"),
        ],
        b"env" => &[Text("variable name"), Text("variable value")],
        b"exec" => &[Text("command")],
        b"subsystem" => &[Text("subsystem name")],
        b"shell" | b"auth-agent-req@openssh.com" | b"agent-req" | b"eow@openssh.com" => &[],
        b"window-change" => &[
            Number("terminal width in columns"),
            Number("terminal height in rows"),
            Number("terminal width in pixels"),
            Number("terminal height in pixels"),
        ],
        b"xon-xoff" => &[Flag("client can do")],
        b"break" => &[Number("break length")],
        b"signal" => &[Text("signal name")],
        b"exit-status" => &[Number("exit status")],
        b"exit-signal" => &[
            Text("signal name"),
            Flag("core dumped"),
            Octets("error message"),
            Octets("language tag"),
        ],
        _ => return None,
    };
    Some(fields)
}

/// Whether the payload of a CHANNEL_REQUEST asks for a terminal.
pub(crate) fn asks_for_terminal(payload: &[u8]) -> bool {
    let mut fields = Decoder::named("CHANNEL_REQUEST", payload);
    let head = fields.u8().and_then(|_| fields.u32());
    head.and_then(|_| fields.string()) == Ok(b"pty-req")
}

/// A string without the octet 0.
///
/// # Errors
/// It has one, or is cut short.
pub(crate) fn text<'a>(
    fields: &mut Decoder<'a>,
    name: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let text = fields.field(name).string()?;
    without_nul(fields, text)?;
    Ok(text)
}

fn without_nul(fields: &Decoder<'_>, text: &[u8]) -> Result<(), DecodeError> {
    match text.contains(&0) {
        true => Err(fields.error(Problem::Nul)),
        false => Ok(()),
    }
}

/// As ttymodes.c, `ssh_tty_parse_modes`: an argument after each opcode, up to one that ends them.
fn read_modes(message: &'static str, modes: &[u8]) -> Result<(), DecodeError> {
    let mut fields = Decoder::named(message, modes);
    while !fields.unread().is_empty() {
        match fields.field("terminal mode").u8()? {
            MODES_END | MODES_UNDEFINED.. => break,
            _ => fields.field("terminal mode's argument").u32()?,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests;
