//! A trial by SFTP (draft-ietf-secsh-filexfer-02), for servers that run no commands: /dev/zero is read where it can be
//! opened, and data are sent for a file that is not open. The server refuses those once it has them: nothing is stored.

use std::time::{Duration, Instant};

use sshoal_wire::Put;

use super::processor::Processor;
use super::{Leg, ZEROS};

const INIT: u8 = 1;
const VERSION: u8 = 2;
const OPEN: u8 = 3;
const READ: u8 = 5;
const WRITE: u8 = 6;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const DATA: u8 = 103;
/// SSH_FXF_READ.
const FOR_READING: u32 = 1;
/// Octets of contents in a packet: what every server takes (section 3).
const CHUNK: u32 = 32 * 1024;
/// Requests to read that are under way: 2 MiB.
const READS: u64 = 64;
/// Longest packet that a server may send, octets: OpenSSH's own limit (sftp-common.h, SFTP_MAX_MSG_LENGTH).
const MAX_PACKET: usize = 256 * 1024;
/// A handle that no server has given out.
const NO_FILE: &[u8] = b"sshoal-trial";

/// What a server did that SFTP does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error(
        "a packet of {0} octets; is there something that prints in the account's start-up files?"
    )]
    Length(usize),
    #[error("an unexpected packet of type {0}")]
    Unexpected(u8),
}

enum Stage {
    ExpectVersion,
    ExpectHandle,
    /// Reads /dev/zero.
    Down(Vec<u8>),
    Up,
    Over,
}

/// How far the trial is.
pub(super) struct Sftp {
    stage: Stage,
    /// How much is to go either way, in packets.
    packets: u64,
    processor: Processor,
    /// What has come of the next packet.
    input: Vec<u8>,
    /// What is to go next, and how much of it has.
    output: Vec<u8>,
    taken: usize,
    asked: u64,
    answered: u64,
    /// What has come of /dev/zero, octets.
    received: u64,
    from: Option<(Instant, Option<Duration>)>,
    down: Option<Leg>,
    up: Option<Leg>,
}

impl Sftp {
    pub(super) fn new(octets: u64, processor: Processor) -> Sftp {
        let mut sftp = Sftp {
            stage: Stage::ExpectVersion,
            packets: octets / u64::from(CHUNK),
            processor,
            input: Vec::new(),
            output: Vec::new(),
            taken: 0,
            asked: 0,
            answered: 0,
            received: 0,
            from: None,
            down: None,
            up: None,
        };
        sftp.request(|packet| {
            packet.put_u8(INIT);
            packet.put_u32(3);
        });
        sftp
    }

    /// Adds a packet: its length, and what `fill` puts into it.
    fn request(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.output.len();
        self.output.put_u32(0);
        fill(&mut self.output);
        let length = (self.output.len() - start - 4) as u32;
        self.output[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    pub(super) fn handle(&mut self, octets: &[u8], now: Instant) -> Result<(), Problem> {
        self.input.extend_from_slice(octets);
        let input = std::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        while let Some((head, behind)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*head) as usize;
            if !(5..=MAX_PACKET).contains(&length) {
                return Err(Problem::Length(length));
            }
            let Some((packet, behind)) = behind.split_at_checked(length) else {
                break;
            };
            self.take(packet[0], &packet[5..], now)?;
            rest = behind;
        }
        self.input = rest.to_vec();
        Ok(())
    }

    /// Takes a packet without its number.
    fn take(&mut self, kind: u8, body: &[u8], now: Instant) -> Result<(), Problem> {
        match (&self.stage, kind) {
            (Stage::ExpectVersion, VERSION) if self.packets == 0 => self.stage = Stage::Over,
            (Stage::ExpectVersion, VERSION) => {
                self.request(|packet| {
                    packet.put_u8(OPEN);
                    packet.put_u32(0);
                    packet.put_string(b"/dev/zero");
                    packet.put_u32(FOR_READING);
                    packet.put_u32(0);
                });
                self.stage = Stage::ExpectHandle;
            }
            (Stage::ExpectHandle, HANDLE) => {
                let handle = body.get(4..).unwrap_or_default().to_vec();
                self.begin(Stage::Down(handle), now);
            }
            // There is no /dev/zero in a chroot.
            (Stage::ExpectHandle, STATUS) => self.begin(Stage::Up, now),
            (Stage::Down(_), DATA) => {
                self.answered += 1;
                self.received += body.len().saturating_sub(4) as u64;
                if self.answered == self.packets {
                    self.down = self.leg(now);
                    self.begin(Stage::Up, now);
                }
            }
            // It lets nobody read there: what was asked for is not all answered yet, but nothing was measured.
            (Stage::Down(_), STATUS) => {
                self.answered += 1;
                if self.answered == self.asked {
                    self.begin(Stage::Up, now);
                }
            }
            (Stage::Up, STATUS) => {
                self.answered += 1;
                if self.answered == self.packets {
                    self.received = self.packets * u64::from(CHUNK);
                    self.up = self.leg(now);
                    self.stage = Stage::Over;
                }
            }
            (Stage::Over, _) => {}
            (_, other) => return Err(Problem::Unexpected(other)),
        }
        Ok(())
    }

    fn begin(&mut self, stage: Stage, now: Instant) {
        self.stage = stage;
        (self.asked, self.answered, self.received) = (0, 0, 0);
        self.from = Some((now, self.processor.time()));
    }

    fn leg(&self, now: Instant) -> Option<Leg> {
        let (from, cpu) = self.from?;
        let spent = self.processor.time().zip(cpu);
        (self.received > 0).then(|| Leg {
            octets: self.received,
            elapsed: now.saturating_duration_since(from),
            client_cpu: spent.map(|(to, from)| to.saturating_sub(from)),
            server_cpu: None,
        })
    }

    /// What can be sent now.
    pub(super) fn transmit(&mut self) -> &[u8] {
        if self.taken == self.output.len() {
            self.output.clear();
            self.taken = 0;
            self.ask();
        }
        &self.output[self.taken..]
    }

    /// Puts further requests into the output.
    fn ask(&mut self) {
        if let Stage::Down(handle) = &self.stage {
            let handle = handle.clone();
            let until = self.packets.min(self.answered + READS);
            for number in self.asked..until {
                self.request(|packet| {
                    packet.put_u8(READ);
                    packet.put_u32(number as u32);
                    packet.put_string(&handle);
                    packet.put_u64(number * u64::from(CHUNK));
                    packet.put_u32(CHUNK);
                });
            }
            self.asked = self.asked.max(until);
        }
        if matches!(self.stage, Stage::Up) && self.asked < self.packets {
            let number = self.asked;
            self.request(|packet| {
                packet.put_u8(WRITE);
                packet.put_u32(number as u32);
                packet.put_string(NO_FILE);
                packet.put_u64(number * u64::from(CHUNK));
                packet.put_string(&ZEROS[..CHUNK as usize]);
            });
            self.asked += 1;
        }
    }

    pub(super) fn transmitted(&mut self, octets: usize) {
        self.taken += octets;
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// What was measured from the server and to it.
    pub(super) fn legs(&self) -> (Option<Leg>, Option<Leg>) {
        (self.down, self.up)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        packet.put_u32(5 + body.len() as u32);
        packet.put_u8(kind);
        packet.put_u32(7);
        packet.put_bytes(body);
        packet
    }

    fn sent(sftp: &mut Sftp) -> usize {
        let mut all = 0;
        loop {
            let length = sftp.transmit().len();
            if length == 0 {
                return all;
            }
            sftp.transmitted(length);
            all += length;
        }
    }

    fn chunk() -> Vec<u8> {
        let mut body = Vec::new();
        body.put_string(&ZEROS[..CHUNK as usize]);
        packet(DATA, &body)
    }

    #[test]
    fn both_directions_are_measured_where_zeros_can_be_read() {
        let mut sftp = Sftp::new(4 * u64::from(CHUNK), Processor::own());
        let now = Instant::now();
        sent(&mut sftp);
        sftp.handle(&packet(VERSION, &[]), now).unwrap();
        sent(&mut sftp);
        sftp.handle(&packet(HANDLE, b"\0\0\0\x02hi"), now).unwrap();
        assert!(sent(&mut sftp) > 0);
        for octets in [chunk(), chunk(), chunk(), chunk()].concat().chunks(1000) {
            sftp.handle(octets, now).unwrap();
        }
        assert_eq!(sftp.legs().0.unwrap().octets, 4 * u64::from(CHUNK));
        assert!(sent(&mut sftp) > 4 * CHUNK as usize);
        for _ in 0..4 {
            assert!(!sftp.is_over());
            sftp.handle(&packet(STATUS, &[0; 12]), now).unwrap();
        }
        assert!(sftp.is_over());
        assert_eq!(sftp.legs().1.unwrap().octets, 4 * u64::from(CHUNK));
    }

    #[test]
    fn without_zeros_only_what_goes_up_is_measured() {
        for opens in [false, true] {
            let mut sftp = Sftp::new(2 * u64::from(CHUNK), Processor::own());
            let now = Instant::now();
            sftp.handle(&packet(VERSION, &[]), now).unwrap();
            sent(&mut sftp);
            if opens {
                sftp.handle(&packet(HANDLE, b"\0\0\0\x02hi"), now).unwrap();
                sent(&mut sftp);
                sftp.handle(&packet(STATUS, &[0; 12]), now).unwrap();
            }
            sftp.handle(&packet(STATUS, &[0; 12]), now).unwrap();
            sent(&mut sftp);
            sftp.handle(&packet(STATUS, &[0; 12]), now).unwrap();
            sftp.handle(&packet(STATUS, &[0; 12]), now).unwrap();
            assert!(sftp.is_over(), "{opens}");
            assert_eq!(sftp.legs().0, None);
            assert!(sftp.legs().1.is_some());
        }
    }

    #[test]
    fn what_is_no_sftp_is_refused() {
        let mut sftp = Sftp::new(0, Processor::own());
        let words = sftp.handle(b"Welcome to this host\n", Instant::now());
        assert!(matches!(words, Err(Problem::Length(_))), "{words:?}");
        let mut sftp = Sftp::new(0, Processor::own());
        let other = sftp.handle(&packet(DATA, &[]), Instant::now());
        assert_eq!(other, Err(Problem::Unexpected(DATA)));
    }
}
