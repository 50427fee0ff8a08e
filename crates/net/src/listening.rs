//! How this side listens for the forwards of a host: ssh_config(5).

use sshoal_ssh_config::Resolved;

/// GatewayPorts, StreamLocalBindMask and StreamLocalBindUnlink of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// Whether everybody may connect where no address is named.
    pub gateway_ports: bool,
    /// Which rights a unix socket is not to have.
    pub bind_mask: u32,
    /// Whether a unix socket that is in the way is removed.
    pub bind_unlink: bool,
}

impl Default for Listening {
    /// ssh's own defaults.
    fn default() -> Self {
        Listening {
            gateway_ports: false,
            bind_mask: 0o177,
            bind_unlink: false,
        }
    }
}

impl Listening {
    /// What the configuration says for a host.
    pub(crate) fn of(resolved: &Resolved) -> Listening {
        let word = |keyword: &str| {
            let mut others = resolved.others.iter();
            let found = others.find(|other| other.keyword == keyword)?;
            found.arguments.first().map(String::as_str)
        };
        let mask = word("streamlocalbindmask").and_then(|mask| u32::from_str_radix(mask, 8).ok());
        Listening {
            gateway_ports: word("gatewayports") == Some("yes"),
            bind_mask: mask.unwrap_or(Listening::default().bind_mask),
            bind_unlink: word("streamlocalbindunlink") == Some("yes"),
        }
    }
}
