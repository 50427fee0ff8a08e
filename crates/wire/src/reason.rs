//! Numbers that say why (RFC 4250, sections 4.2.2 and 4.3), and their names for error messages.

macro_rules! reasons {
    ($(#[$doc:meta])* $function:ident; $($value:literal $name:ident $text:literal)*) => {
        $(
            #[doc = concat!("`SSH_", stringify!($name), "`: ", $text, ".")]
            pub const $name: u32 = $value;
        )*

        $(#[$doc])*
        #[must_use]
        pub const fn $function(reason_code: u32) -> &'static str {
            match reason_code {
                $($value => $text,)*
                _ => "a reason this program does not know",
            }
        }
    };
}

reasons! {
    /// What the `reason_code` of a DISCONNECT says (RFC 4253, section 11.1).
    disconnect;
    1  DISCONNECT_HOST_NOT_ALLOWED_TO_CONNECT    "host not allowed to connect"
    2  DISCONNECT_PROTOCOL_ERROR                 "protocol error"
    3  DISCONNECT_KEY_EXCHANGE_FAILED            "key exchange failed"
    4  DISCONNECT_RESERVED                       "reserved"
    5  DISCONNECT_MAC_ERROR                      "MAC error"
    6  DISCONNECT_COMPRESSION_ERROR              "compression error"
    7  DISCONNECT_SERVICE_NOT_AVAILABLE          "service not available"
    8  DISCONNECT_PROTOCOL_VERSION_NOT_SUPPORTED "protocol version not supported"
    9  DISCONNECT_HOST_KEY_NOT_VERIFIABLE        "host key not verifiable"
    10 DISCONNECT_CONNECTION_LOST                "connection lost"
    11 DISCONNECT_BY_APPLICATION                 "ended by the application"
    12 DISCONNECT_TOO_MANY_CONNECTIONS           "too many connections"
    13 DISCONNECT_AUTH_CANCELLED_BY_USER         "authentication cancelled by the user"
    14 DISCONNECT_NO_MORE_AUTH_METHODS_AVAILABLE "no more authentication methods available"
    15 DISCONNECT_ILLEGAL_USER_NAME              "illegal user name"
}

reasons! {
    /// What the `reason_code` of a CHANNEL_OPEN_FAILURE says (RFC 4254, section 5.1).
    open_failure;
    1 OPEN_ADMINISTRATIVELY_PROHIBITED "administratively prohibited"
    2 OPEN_CONNECT_FAILED              "connect failed"
    3 OPEN_UNKNOWN_CHANNEL_TYPE        "unknown channel type"
    4 OPEN_RESOURCE_SHORTAGE           "resource shortage"
}

/// `SSH_EXTENDED_DATA_STDERR`: the `data_type_code` of standard error (RFC 4254, section 5.2).
pub const EXTENDED_DATA_STDERR: u32 = 1;
