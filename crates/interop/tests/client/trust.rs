//! The keys that a test has had made for its server: what it shows must be one of them. Nothing of known_hosts is decided
//! here; how sshoal decides is tried beside ssh, in the program's own tests.

use sshoal_crypto::{HostCertificate, PublicKey};
use sshoal_proto::HostKeyQuestion;

/// Keys of one server, or of the authority that has certified them.
pub enum Trust {
    /// Blobs of host keys.
    Keys(Vec<Vec<u8>>),
    /// The blob of an authority's key.
    Authority(Vec<u8>),
}

impl Trust {
    /// By the lines that a server has for known_hosts: a name and its key each.
    pub fn of_keys(lines: &str) -> Trust {
        let keys = lines.lines().map(|line| line.split_once(' ').unwrap().1);
        Trust::Keys(keys.map(blob).collect())
    }

    /// By the authority's public key file.
    pub fn of_authority(public: &str) -> Trust {
        Trust::Authority(blob(public))
    }

    /// Compares a key or certificate that the server proved to hold; says why not.
    pub fn judge(&self, question: &HostKeyQuestion) -> Result<(), String> {
        let is_right = match self {
            Trust::Keys(keys) => keys.contains(&question.blob),
            Trust::Authority(authority) => {
                let certificate =
                    HostCertificate::parse(&question.blob).map_err(|error| error.to_string())?;
                certificate.verify_ca().map_err(|error| error.to_string())?;
                certificate.ca_key() == authority
            }
        };
        match is_right {
            true => Ok(()),
            false => Err("the host key is not the server's".to_owned()),
        }
    }
}

fn blob(line: &str) -> Vec<u8> {
    let (key, _) = PublicKey::from_openssh_line(line).unwrap();
    key.blob().to_vec()
}
