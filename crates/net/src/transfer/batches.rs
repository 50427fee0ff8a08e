//! What the sessions beside the SFTP channels do for either way of a transfer: small files, many at a time.

use sshoal_transfer::{Download, Upload};

/// A transfer's streams, by their numbers. Members are named as those of [`Upload`] and [`Download`].
pub(super) trait Batches {
    fn stream_command(&self) -> String;
    fn wants_stream(&self) -> bool;
    fn add_stream(&mut self) -> usize;
    fn stream_transmit(&self, stream: usize) -> &[u8];
    fn stream_transmitted(&mut self, stream: usize, octets: usize);
    fn stream_is_complete(&self, stream: usize) -> bool;
    /// Whether what waits for a stream is about to become more.
    fn stream_is_about_to_send(&self, stream: usize) -> bool;
    fn handle_stream_input(&mut self, stream: usize, input: &[u8]);
    /// Octets of what came that the host is not to be told of yet.
    fn stream_holds(&self, stream: usize) -> usize;
    fn end_stream_input(&mut self, stream: usize);
    fn stream_exited(&mut self, stream: usize, status: Option<u32>);
    fn end_stream(&mut self, stream: usize);
    fn give_up_streams(&mut self);
    fn awaits_stream(&self) -> bool;
}

/// What both have under the same names.
macro_rules! in_common {
    () => {
        fn stream_command(&self) -> String {
            self.stream_command()
        }

        fn wants_stream(&self) -> bool {
            self.wants_stream()
        }

        fn add_stream(&mut self) -> usize {
            self.add_stream()
        }

        fn stream_transmit(&self, stream: usize) -> &[u8] {
            self.stream_transmit(stream)
        }

        fn stream_transmitted(&mut self, stream: usize, octets: usize) {
            self.stream_transmitted(stream, octets);
        }

        fn stream_is_complete(&self, stream: usize) -> bool {
            self.stream_is_complete(stream)
        }

        fn handle_stream_input(&mut self, stream: usize, input: &[u8]) {
            self.handle_stream_input(stream, input);
        }

        fn end_stream(&mut self, stream: usize) {
            self.end_stream(stream);
        }

        fn give_up_streams(&mut self) {
            self.give_up_streams();
        }

        fn awaits_stream(&self) -> bool {
            self.awaits_stream()
        }
    };
}

impl Batches for Upload {
    in_common!();

    fn stream_is_about_to_send(&self, stream: usize) -> bool {
        self.stream_is_about_to_send(stream)
    }

    /// What a host says is listened to at once.
    fn stream_holds(&self, _stream: usize) -> usize {
        0
    }

    /// What it had to say, it has said.
    fn end_stream_input(&mut self, stream: usize) {
        self.end_stream(stream);
    }

    /// Among that was how it ended.
    fn stream_exited(&mut self, _stream: usize, _status: Option<u32>) {}
}

impl Batches for Download {
    in_common!();

    /// Names are told all at once.
    fn stream_is_about_to_send(&self, _stream: usize) -> bool {
        false
    }

    fn stream_holds(&self, stream: usize) -> usize {
        self.stream_holds(stream)
    }

    fn end_stream_input(&mut self, stream: usize) {
        self.end_stream_input(stream);
    }

    fn stream_exited(&mut self, stream: usize, status: Option<u32>) {
        self.stream_exited(stream, status);
    }
}
