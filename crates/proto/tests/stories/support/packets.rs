//! The server's packets: RFC 4253 section 6, with the means to break its rules.

use sshoal_crypto::{Opener, Sealer};

/// Both directions of the packet protocol, as the server has them.
pub struct Packets {
    sealer: Sealer,
    opener: Opener,
    /// Sequence number of the next packet said.
    pub next_said: u32,
    /// Sequence number of the next packet heard.
    pub next_heard: u32,
    inbox: Vec<u8>,
    /// What the client will receive.
    pub outbox: Vec<u8>,
}

impl Packets {
    pub fn new() -> Self {
        Packets {
            sealer: Sealer::plain(),
            opener: Opener::plain(),
            next_said: 0,
            next_heard: 0,
            inbox: Vec::new(),
            outbox: Vec::new(),
        }
    }

    /// Says one payload.
    pub fn say(&mut self, payload: &[u8]) {
        let packet = self.seal(payload);
        self.outbox.extend(packet);
    }

    /// One payload as the packet that is next, without sending it.
    pub fn seal(&mut self, payload: &[u8]) -> Vec<u8> {
        let padding = self.sealer.padding_len(payload.len());
        let mut packet = Vec::new();
        packet.extend(((1 + payload.len() + padding) as u32).to_be_bytes());
        packet.push(padding as u8);
        packet.extend(payload);
        packet.resize(packet.len() + padding, 0);
        self.sealer
            .seal(self.next_said, &mut packet, 0)
            .expect("a whole packet");
        self.next_said = self.next_said.wrapping_add(1);
        packet
    }

    /// Octets from the client.
    pub fn feed(&mut self, octets: &[u8]) {
        self.inbox.extend(octets);
    }

    /// The client's identification string without its line end, once it is there.
    pub fn hear_line(&mut self) -> Option<String> {
        let end = self.inbox.windows(2).position(|pair| pair == b"\r\n")?;
        let rest = self.inbox.split_off(end + 2);
        let mut line = std::mem::replace(&mut self.inbox, rest);
        line.truncate(end);
        Some(String::from_utf8(line).expect("an identification is ASCII"))
    }

    /// The client's next payload with its sequence number, once it is there whole.
    pub fn hear(&mut self) -> Option<(u32, Vec<u8>)> {
        let head = self.inbox.get(..self.opener.head_len())?;
        let len = self
            .opener
            .packet_len(self.next_heard, head)
            .expect("the client's lengths are sound");
        if self.inbox.len() < len {
            return None;
        }
        let rest = self.inbox.split_off(len);
        let mut packet = std::mem::replace(&mut self.inbox, rest);
        let payload = self
            .opener
            .open(self.next_heard, &mut packet)
            .expect("the client's packets are sound");
        let sequence = self.next_heard;
        self.next_heard = self.next_heard.wrapping_add(1);
        Some((sequence, packet[payload].to_vec()))
    }

    /// What was said so far stays; from here on packets are sealed with `sealer`.
    pub fn say_with(&mut self, sealer: Sealer, restart: bool) {
        self.sealer = sealer;
        if restart {
            self.next_said = 0;
        }
    }

    /// From the next packet on the client uses these keys.
    pub fn hear_with(&mut self, opener: Opener, restart: bool) {
        self.opener = opener;
        if restart {
            self.next_heard = 0;
        }
    }
}
