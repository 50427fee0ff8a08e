//! The server's channels and the processes behind them: RFC 4254, as OpenSSH does it.

use sshoal_wire::{
    ChannelClose, ChannelData, ChannelEof, ChannelExtendedData, ChannelFailure, ChannelOpen,
    ChannelOpenConfirmation, ChannelOpenFailure, ChannelRequest, ChannelSuccess,
    ChannelWindowAdjust, Decoder, Disconnect, Message, Put, RequestFailure, reason,
};

use super::process::{End, Process};
use super::sshd::Server;

/// Octets that OpenSSH lets a client send in one message.
const MAX_DATA: usize = 32 * 1024;

/// A session.
pub struct Channel {
    client: u32,
    /// What we may still send.
    window: usize,
    max_packet: usize,
    /// What the client may still send.
    pub allowed: usize,
    pub stdin: Vec<u8>,
    consumed: usize,
    pub stdin_ended: bool,
    process: Option<Process>,
    ended: bool,
    closed: bool,
}

impl Channel {
    /// Drops what was received: for stories that only count.
    pub fn forget_stdin(&mut self) {
        self.stdin.drain(..self.consumed);
        self.consumed = 0;
    }
}

impl Server {
    pub(super) fn handle_connection(&mut self, message: &Message<'_>) {
        match message {
            Message::GlobalRequest(request) if request.want_reply => self.say(RequestFailure),
            Message::GlobalRequest(_)
            | Message::Pong(_)
            | Message::RequestFailure(_)
            | Message::ChannelOpenFailure(_)
            | Message::ChannelSuccess(_)
            | Message::ChannelFailure(_) => {}
            Message::ChannelOpen(open) => self.handle_open(open),
            Message::ChannelRequest(request) => self.handle_request(request),
            Message::ChannelWindowAdjust(adjust) => {
                if let Some(channel) = self.channel(adjust.recipient_channel) {
                    channel.window += adjust.bytes_to_add as usize;
                    assert!(channel.window <= u32::MAX as usize);
                }
            }
            Message::ChannelData(data) => self.handle_stdin(data),
            Message::ChannelEof(eof) => {
                if let Some(channel) = self.channel(eof.recipient_channel) {
                    assert!(!channel.stdin_ended, "EOF once");
                    channel.stdin_ended = true;
                    if let Some(process) = &mut channel.process {
                        process.handle_stdin_end();
                    }
                }
            }
            Message::ChannelClose(close) => self.handle_close(close.recipient_channel),
            other => panic!("the client says {}", other.name()),
        }
    }

    fn handle_open(&mut self, open: &ChannelOpen<'_>) {
        assert!(open.maximum_packet_size <= MAX_DATA as u32);
        let taken = |number: &u32| self.channels.contains_key(number);
        let number = (self.policy.first_channel..)
            .find(|number| !taken(number))
            .expect("free");
        if self.channels.len() >= self.policy.max_sessions {
            return self.say(ChannelOpenFailure {
                recipient_channel: open.sender_channel,
                reason_code: reason::OPEN_CONNECT_FAILED,
                description: b"open failed",
                language_tag: b"",
            });
        }
        // direct-tcpip is connected to an echo; a session has no window before its process runs.
        let tcp = open.channel_type == b"direct-tcpip";
        let allowed = if tcp { self.policy.window as usize } else { 0 };
        let channel = Channel {
            client: open.sender_channel,
            window: open.initial_window_size as usize,
            max_packet: open.maximum_packet_size as usize,
            allowed,
            stdin: Vec::new(),
            consumed: 0,
            stdin_ended: false,
            process: tcp.then(|| Process::start(b"cat")),
            ended: false,
            closed: false,
        };
        self.channels.insert(number, channel);
        self.say(ChannelOpenConfirmation {
            recipient_channel: open.sender_channel,
            sender_channel: number,
            initial_window_size: allowed as u32,
            maximum_packet_size: self.policy.max_packet,
            data: b"",
        });
    }

    fn handle_close(&mut self, number: u32) {
        let Some(channel) = self.channel(number) else {
            return;
        };
        if !channel.closed {
            let recipient_channel = channel.client;
            self.say(ChannelClose { recipient_channel });
        }
        self.channels.remove(&number);
    }

    /// A channel, or the end of the connection if there is none (serverloop.c, "unknown channel").
    fn channel(&mut self, number: u32) -> Option<&mut Channel> {
        if !self.channels.contains_key(&number) {
            self.over = Some(format!("unknown channel {number}"));
            let text = format!("Received request for nonexistent channel {number}.");
            self.say(Disconnect {
                reason_code: reason::DISCONNECT_PROTOCOL_ERROR,
                description: text.as_bytes(),
                language_tag: b"",
            });
        }
        self.channels.get_mut(&number)
    }

    fn handle_request(&mut self, request: &ChannelRequest<'_>) {
        let window = self.policy.window;
        let Some(channel) = self.channel(request.recipient_channel) else {
            return;
        };
        let recipient_channel = channel.client;
        let is_start = matches!(request.request_type, b"exec" | b"shell" | b"subsystem");
        let accepted = match request.request_type {
            b"env" | b"pty-req" => true,
            b"exec" => {
                assert!(channel.process.is_none(), "one command a session");
                let command = Decoder::new(request.data).string().expect("a command");
                channel.process = Some(Process::start(command));
                channel.allowed = window as usize;
                if channel.stdin_ended {
                    channel
                        .process
                        .iter_mut()
                        .for_each(Process::handle_stdin_end);
                }
                self.executions.push(command.to_vec());
                true
            }
            _ => false,
        };
        if accepted && is_start {
            self.say(ChannelWindowAdjust {
                recipient_channel,
                bytes_to_add: window,
            });
        }
        match (request.want_reply, accepted) {
            (true, true) => self.say(ChannelSuccess { recipient_channel }),
            (true, false) => self.say(ChannelFailure { recipient_channel }),
            (false, _) => {}
        }
    }

    fn handle_stdin(&mut self, data: &ChannelData<'_>) {
        let reads = self.policy.reads_stdin;
        let max_packet = self.policy.max_packet as usize;
        let Some(channel) = self.channel(data.recipient_channel) else {
            return;
        };
        assert!(!channel.stdin_ended, "no data after EOF");
        assert!(
            data.data.len() <= max_packet.min(MAX_DATA),
            "messages of 32 KiB"
        );
        channel.allowed = channel
            .allowed
            .checked_sub(data.data.len())
            .expect("no data over the window");
        channel.stdin.extend(data.data);
        if let Some(process) = &mut channel.process {
            process.handle_stdin(data.data);
        }
        if reads {
            self.read_stdin(data.recipient_channel);
        }
    }

    /// Closes a session, whatever its process does.
    pub fn close(&mut self, number: u32) {
        let channel = self.channels.get_mut(&number).expect("open");
        channel.closed = true;
        let recipient_channel = channel.client;
        self.say(ChannelClose { recipient_channel });
    }

    /// The process reads what has come: more than three packets' worth is given back (channels.c).
    pub fn read_stdin(&mut self, number: u32) {
        let channel = self.channels.get_mut(&number).expect("open");
        let unread = channel.stdin.len() - channel.consumed;
        if unread <= 3 * MAX_DATA {
            return;
        }
        channel.consumed = channel.stdin.len();
        channel.allowed += unread;
        let recipient_channel = channel.client;
        self.say(ChannelWindowAdjust {
            recipient_channel,
            bytes_to_add: unread as u32,
        });
    }

    /// Sends what processes have written, as far as windows allow, and reports those that ended.
    pub(super) fn pump(&mut self) {
        let numbers: Vec<u32> = self.channels.keys().copied().collect();
        for number in numbers {
            while self.pump_data(number) {}
            self.pump_end(number);
        }
    }

    fn pump_data(&mut self, number: u32) -> bool {
        let Some(Channel {
            client,
            window,
            max_packet,
            process: Some(process),
            closed: false,
            ..
        }) = self.channels.get_mut(&number)
        else {
            return false;
        };
        let recipient_channel = *client;
        let errors = process.stdout.is_empty();
        let source = match errors {
            true => &mut process.stderr,
            false => &mut process.stdout,
        };
        let len = source.len().min(*window).min(*max_packet);
        if len == 0 {
            return false;
        }
        *window -= len;
        let data: Vec<u8> = source.drain(..len).collect();
        match errors {
            true => self.say(ChannelExtendedData {
                recipient_channel,
                data_type_code: reason::EXTENDED_DATA_STDERR,
                data: &data,
            }),
            false => self.say(ChannelData {
                recipient_channel,
                data: &data,
            }),
        }
        true
    }

    fn pump_end(&mut self, number: u32) {
        let Some(channel) = self.channels.get_mut(&number) else {
            return;
        };
        let recipient_channel = channel.client;
        let Some(Process {
            stdout,
            stderr,
            end: Some(end),
            ..
        }) = &channel.process
        else {
            return;
        };
        if channel.ended || !stdout.is_empty() || !stderr.is_empty() {
            return;
        }
        let mut data = Vec::new();
        let request_type: &[u8] = match *end {
            End::Status(status) => {
                data.put_u32(status);
                b"exit-status"
            }
            End::Signal(name) => {
                data.put_string(name.as_bytes());
                data.put_boolean(true);
                data.put_string(b"terminated by a test");
                data.put_string(b"");
                b"exit-signal"
            }
        };
        (channel.ended, channel.closed) = (true, true);
        self.say(ChannelEof { recipient_channel });
        self.say(ChannelRequest {
            recipient_channel,
            request_type,
            want_reply: false,
            data: &data,
        });
        self.say(ChannelClose { recipient_channel });
    }
}
