//! The table of all messages.
//!
//! A row: number, name (the RFC's, without `SSH_MSG_`), struct, who sends it, the phases in which a client may
//! receive it, where it is specified, which dialect it belongs to if numbers are shared, and its fields.

use crate::{
    AuthMethod, Counted, DecodeError, Decoder, Dialect, Extension, KexDialect, NameList, PhaseSet,
    Prompt, Put, UserauthDialect,
};

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Clients only.
    Client,
    /// Servers only.
    Server,
    /// Either side.
    Both,
}

/// What the table says of a message beyond its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The message number.
    pub number: u8,
    /// The RFC's name, without `SSH_MSG_`.
    pub name: &'static str,
    /// Who sends it.
    pub sender: Sender,
    /// When a client may receive it.
    pub phases: PhaseSet,
    /// A dialect in which the number has this meaning.
    pub dialect: Dialect,
}

messages! {
    // Number and name, struct, sender, phases in which a client may receive it, source; fields.

    // Transport layer, generic: 1 to 19.

    1   DISCONNECT                Disconnect<'a>              Both   [ANY]              "RFC 4253, section 11.1"
        { reason_code: u32, description: string, language_tag: last_tag }
    2   IGNORE                    Ignore<'a>                  Both   [UNSTRICT]         "RFC 4253, section 11.2"
        { data: string }
    3   UNIMPLEMENTED             Unimplemented               Both   [UNSTRICT]         "RFC 4253, section 11.4"
        { sequence_number: u32 }
    4   DEBUG                     Debug<'a>                   Both   [UNSTRICT]         "RFC 4253, section 11.3"
        { always_display: boolean, message: string, language_tag: last_tag }
    5   SERVICE_REQUEST           ServiceRequest<'a>          Client []                 "RFC 4253, section 10"
        { service_name: string }
    6   SERVICE_ACCEPT            ServiceAccept<'a>           Server [SERVICE]          "RFC 4253, section 10"
        { service_name: string }
    7   EXT_INFO                  ExtInfo<'a>                 Both   [SERVICE USERAUTH] "RFC 8308, section 2.3"
        { extensions: extensions }

    // Algorithm negotiation: 20 to 29.

    20  KEXINIT                   KexInit<'a>                 Both   [OPENING KEYED]    "RFC 4253, section 7.1"
        {
            cookie: cookie,
            kex_algorithms: name_list,
            server_host_key_algorithms: name_list,
            encryption_algorithms_client_to_server: name_list,
            encryption_algorithms_server_to_client: name_list,
            mac_algorithms_client_to_server: name_list,
            mac_algorithms_server_to_client: name_list,
            compression_algorithms_client_to_server: name_list,
            compression_algorithms_server_to_client: name_list,
            languages_client_to_server: name_list,
            languages_server_to_client: name_list,
            first_kex_packet_follows: boolean,
            reserved: u32,
        }
    21  NEWKEYS                   NewKeys                     Both   [KEX]              "RFC 4253, section 7.3"
        {}

    // Key exchange method specific: 30 to 49.

    /// `public` is the client's half: a curve point, or a hybrid's encapsulation key followed by one.
    30  KEX_ECDH_INIT             KexEcdhInit<'a>             Client []                 "RFC 5656, section 4"
        when kex = KexDialect::Ecdh
        { public: string }
    /// `public` is the server's half: a curve point, or a hybrid's ciphertext followed by one.
    31  KEX_ECDH_REPLY            KexEcdhReply<'a>            Server [KEX]              "RFC 5656, section 4"
        when kex = KexDialect::Ecdh
        { host_key: string, public: string, signature: string }
    30  KEXDH_INIT                KexDhInit<'a>               Client []                 "RFC 4253, section 8"
        when kex = KexDialect::Dh
        { e: mpint }
    31  KEXDH_REPLY               KexDhReply<'a>              Server [KEX]              "RFC 4253, section 8"
        when kex = KexDialect::Dh
        { host_key: string, f: mpint, signature: string }
    /// Sizes of the group in bits.
    34  KEX_DH_GEX_REQUEST        KexGexRequest               Client []                 "RFC 4419, section 3"
        when kex = KexDialect::GroupExchange
        { min: u32, n: u32, max: u32 }
    31  KEX_DH_GEX_GROUP          KexGexGroup<'a>             Server [KEX]              "RFC 4419, section 3"
        when kex = KexDialect::GroupExchange
        { p: mpint, g: mpint }
    32  KEX_DH_GEX_INIT           KexGexInit<'a>              Client []                 "RFC 4419, section 3"
        when kex = KexDialect::GroupExchange
        { e: mpint }
    33  KEX_DH_GEX_REPLY          KexGexReply<'a>             Server [KEX]              "RFC 4419, section 3"
        when kex = KexDialect::GroupExchange
        { host_key: string, f: mpint, signature: string }

    // User authentication: 50 to 79.

    50  USERAUTH_REQUEST          UserauthRequest<'a>         Client []                 "RFC 4252, section 5"
        { user_name: string, service_name: string, method: auth_method }
    51  USERAUTH_FAILURE          UserauthFailure<'a>         Server [USERAUTH]         "RFC 4252, section 5.1"
        { authentications_that_can_continue: name_list, partial_success: boolean }
    52  USERAUTH_SUCCESS          UserauthSuccess             Server [USERAUTH]         "RFC 4252, section 5.1"
        {}
    53  USERAUTH_BANNER           UserauthBanner<'a>          Server [USERAUTH]         "RFC 4252, section 5.4"
        { message: string, language_tag: last_tag }
    60  USERAUTH_PK_OK            UserauthPkOk<'a>            Server [USERAUTH]         "RFC 4252, section 7"
        when userauth = UserauthDialect::PublicKey
        { algorithm: string, key: string }
    60  USERAUTH_PASSWD_CHANGEREQ UserauthPasswdChangereq<'a> Server [USERAUTH]         "RFC 4252, section 8"
        when userauth = UserauthDialect::Password
        { prompt: string, language_tag: last_tag }
    60  USERAUTH_INFO_REQUEST     UserauthInfoRequest<'a>     Server [USERAUTH]         "RFC 4256, section 3.2"
        when userauth = UserauthDialect::KeyboardInteractive
        { name: string, instruction: string, language_tag: string, prompts: prompts }
    61  USERAUTH_INFO_RESPONSE    UserauthInfoResponse<'a>    Client []                 "RFC 4256, section 3.4"
        when userauth = UserauthDialect::KeyboardInteractive
        { responses: responses }

    // Connection protocol: 80 to 127.

    /// The format of `data` depends on `request_name`.
    80  GLOBAL_REQUEST            GlobalRequest<'a>           Both   [CONNECTION]       "RFC 4254, section 4"
        { request_name: string, want_reply: boolean, data: tail }
    /// The format of `data` depends on the request that this answers.
    81  REQUEST_SUCCESS           RequestSuccess<'a>          Both   [CONNECTION]       "RFC 4254, section 4"
        { data: tail }
    82  REQUEST_FAILURE           RequestFailure              Both   [CONNECTION]       "RFC 4254, section 4"
        {}
    /// Window and packet size in bytes; the format of `data` depends on `channel_type`.
    90  CHANNEL_OPEN              ChannelOpen<'a>             Both   [CONNECTION]       "RFC 4254, section 5.1"
        { channel_type: string, sender_channel: u32, initial_window_size: u32, maximum_packet_size: u32, data: tail }
    /// Window and packet size in bytes; the format of `data` depends on the channel type.
    91  CHANNEL_OPEN_CONFIRMATION ChannelOpenConfirmation<'a> Both   [CONNECTION]       "RFC 4254, section 5.1"
        { recipient_channel: u32, sender_channel: u32, initial_window_size: u32, maximum_packet_size: u32, data: tail }
    92  CHANNEL_OPEN_FAILURE      ChannelOpenFailure<'a>      Both   [CONNECTION]       "RFC 4254, section 5.1"
        { recipient_channel: u32, reason_code: u32, description: string, language_tag: last_tag }
    93  CHANNEL_WINDOW_ADJUST     ChannelWindowAdjust         Both   [CONNECTION]       "RFC 4254, section 5.2"
        { recipient_channel: u32, bytes_to_add: u32 }
    94  CHANNEL_DATA              ChannelData<'a>             Both   [CONNECTION]       "RFC 4254, section 5.2"
        { recipient_channel: u32, data: string }
    95  CHANNEL_EXTENDED_DATA     ChannelExtendedData<'a>     Both   [CONNECTION]       "RFC 4254, section 5.2"
        { recipient_channel: u32, data_type_code: u32, data: string }
    96  CHANNEL_EOF               ChannelEof                  Both   [CONNECTION]       "RFC 4254, section 5.3"
        { recipient_channel: u32 }
    97  CHANNEL_CLOSE             ChannelClose                Both   [CONNECTION]       "RFC 4254, section 5.3"
        { recipient_channel: u32 }
    /// The format of `data` depends on `request_type`.
    98  CHANNEL_REQUEST           ChannelRequest<'a>          Both   [CONNECTION]       "RFC 4254, section 5.4"
        { recipient_channel: u32, request_type: string, want_reply: boolean, data: tail }
    99  CHANNEL_SUCCESS           ChannelSuccess              Both   [CONNECTION]       "RFC 4254, section 5.4"
        { recipient_channel: u32 }
    100 CHANNEL_FAILURE           ChannelFailure              Both   [CONNECTION]       "RFC 4254, section 5.4"
        { recipient_channel: u32 }

    // Local extensions: 192 to 255.

    192 PING                      Ping<'a>                    Both   [CONNECTION]       "OpenSSH's PROTOCOL, section 1.8"
        { data: string }
    193 PONG                      Pong<'a>                    Both   [CONNECTION]       "OpenSSH's PROTOCOL, section 1.8"
        { data: string }
}

/// The RFC's name of a message number, without `SSH_MSG_`: for logs. Where the dialect decides, all names it may
/// have; [`Message::name`] knows which.
#[must_use]
pub fn message_name(number: u8) -> &'static str {
    match number {
        30 => "KEX_ECDH_INIT|KEXDH_INIT",
        31 => "KEX_ECDH_REPLY|KEXDH_REPLY|KEX_DH_GEX_GROUP",
        60 => "USERAUTH_PK_OK|USERAUTH_PASSWD_CHANGEREQ|USERAUTH_INFO_REQUEST",
        _ => ROWS
            .iter()
            .find(|row| row.number == number)
            .map_or("UNKNOWN", |row| row.name),
    }
}
