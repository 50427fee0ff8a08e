//! Passwords and answers: zeroised when dropped, never printed.

use zeroize::Zeroizing;

/// A password or an answer to a prompt.
///
/// Has no `Debug` and no `Display`; its memory is overwritten when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes ownership of the octets.
    pub fn new(octets: Vec<u8>) -> Self {
        Secret(Zeroizing::new(octets))
    }

    /// The octets, for the one place that sends them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}
