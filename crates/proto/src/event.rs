//! What a connection tells and asks its caller.

use std::ops::Range;

use crate::channels::{LocalChannel, Stream};

/// Something that happened, or a question that the caller answers by the method named with it.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// The server proved that it holds this host key. Is it the right one? No input is taken and nothing
    /// of the user's is sent until [`Connection::accept_host_key`](crate::Connection::accept_host_key).
    HostKey(HostKeyQuestion),
    /// The next credential is wanted: [`Connection::authenticate`](crate::Connection::authenticate).
    /// `None` before the first attempt.
    AuthenticationNeeded(Option<AuthenticationFailure>),
    /// A signature by a key that is not held here:
    /// [`Connection::provide_signature`](crate::Connection::provide_signature) or
    /// [`Connection::withhold_signature`](crate::Connection::withhold_signature).
    SignatureNeeded(SignatureRequest),
    /// Keyboard-interactive prompts: [`Connection::answer_prompts`](crate::Connection::answer_prompts).
    PromptsToAnswer {
        /// Title, may be empty. Octets of the server: sanitise before showing.
        name: Vec<u8>,
        /// Instruction, may be empty.
        instruction: Vec<u8>,
        /// May be none: the answer is then an empty list.
        prompts: Vec<Prompt>,
    },
    /// The password is right but expired (USERAUTH_PASSWD_CHANGEREQ).
    PasswordExpired {
        /// The server's words.
        prompt: Vec<u8>,
    },
    /// USERAUTH_BANNER: text to show before login (RFC 4252 section 5.4).
    Banner(Vec<u8>),
    /// The user is logged in.
    Authenticated,
    /// The host keys that the server says it has (hostkeys-00@openssh.com, PROTOCOL section 2.5): what follows
    /// `want_reply`. Comes once, and only after [`Connection::hear_host_keys`](crate::Connection::hear_host_keys).
    HostKeysOffered(Vec<u8>),
    /// The reply to [`Connection::prove_host_keys`](crate::Connection::prove_host_keys); `None` if the server proves
    /// nothing.
    HostKeysProven(Option<Vec<u8>>),
    /// The reply to a [`Connection::send_global_request`](crate::Connection::send_global_request), the oldest without one: the
    /// data of REQUEST_SUCCESS, or `None` for REQUEST_FAILURE.
    GlobalReply(Option<Vec<u8>>),
    /// The server wants to open a channel for a place that it listens at ("forwarded-tcpip" or
    /// "forwarded-streamlocal@openssh.com"): [`Connection::confirm_forwarded`](crate::Connection::confirm_forwarded),
    /// [`refuse_forwarded`](crate::Connection::refuse_forwarded) or
    /// [`proxy_forwarded`](crate::Connection::proxy_forwarded). Comes only after
    /// [`Connection::admit_forwarded`](crate::Connection::admit_forwarded).
    ForwardedChannel {
        /// Our number for it.
        channel: LocalChannel,
        /// Where in the input CHANNEL_OPEN is, as a payload.
        open: Range<usize>,
    },
    /// A message for a channel that somebody else speaks for
    /// ([`Connection::open_proxied`](crate::Connection::open_proxied)).
    Packet {
        /// Which channel, by our number.
        channel: LocalChannel,
        /// Where in the input its payload is.
        payload: Range<usize>,
    },
    /// The channel is open.
    ChannelOpened(LocalChannel),
    /// The server has opened a channel to the agent that was forwarded to it.
    AgentChannel(LocalChannel),
    /// CHANNEL_OPEN_FAILURE.
    ChannelRefused {
        /// Which channel.
        channel: LocalChannel,
        /// RFC 4250 section 4.3.
        reason_code: u32,
        /// The server's words, made printable.
        description: String,
    },
    /// The server started the session's command.
    Started(LocalChannel),
    /// The server refused the session's command (CHANNEL_FAILURE).
    StartRefused(LocalChannel),
    /// The server refused a pseudo-terminal.
    PtyRefused(LocalChannel),
    /// The reply to [`Connection::ask_to_signal`](crate::Connection::ask_to_signal).
    SignalAnswered {
        /// Which channel.
        channel: LocalChannel,
        /// CHANNEL_SUCCESS.
        delivered: bool,
    },
    /// Data: `range` of the very slice given to [`Connection::handle_input`](crate::Connection::handle_input),
    /// decrypted in place. Say [`Connection::consumed`](crate::Connection::consumed) when it is out of the way.
    Data {
        /// Which channel.
        channel: LocalChannel,
        /// Standard output, or standard error.
        stream: Stream,
        /// Where in the input.
        range: Range<usize>,
    },
    /// The server will send no more data on this channel.
    Eof(LocalChannel),
    /// The command ended with this status (RFC 4254 section 6.10).
    ExitStatus {
        /// Which channel.
        channel: LocalChannel,
        /// As the command gave it.
        status: u32,
    },
    /// The command was ended by a signal (RFC 4254 section 6.10).
    ExitSignal {
        /// Which channel.
        channel: LocalChannel,
        /// Without "SIG".
        name: String,
        /// Whether a core was dumped.
        core_dumped: bool,
        /// The server's words, made printable.
        message: String,
    },
    /// Both sides closed the channel; its number is free.
    Closed(LocalChannel),
    /// [`Connection::send_data`](crate::Connection::send_data) may take more again.
    Writable(LocalChannel),
}

/// A host key to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKeyQuestion {
    /// The negotiated algorithm, for example "ssh-ed25519".
    pub algorithm: &'static str,
    /// The key (RFC 4253 section 6.6), or a certificate, of which only the key inside was made use of so far.
    pub blob: Vec<u8>,
}

/// USERAUTH_FAILURE (RFC 4252 section 5.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthenticationFailure {
    /// Methods that can continue.
    pub methods: Vec<String>,
    /// The credential was right, but another one is needed as well.
    pub partial_success: bool,
}

/// What an agent is to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureRequest {
    /// Signature algorithm, for example "rsa-sha2-512".
    pub algorithm: String,
    /// Public key or certificate of the signing key.
    pub key: Vec<u8>,
    /// The octets to sign (RFC 4252 section 7).
    pub data: Vec<u8>,
}

/// One prompt of keyboard-interactive (RFC 4256 section 3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Octets of the server: sanitise before showing.
    pub text: Vec<u8>,
    /// Whether the answer may be seen while typed.
    pub echo: bool,
}
