//! What a test server runs: programs of a few words, without a process.

/// Octets that tell where they stand, so that a loss or a swap shows.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

/// How a process ends.
pub enum End {
    Status(u32),
    Signal(&'static str),
}

/// A running program: what it has yet to write, and how it will end.
pub struct Process {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    echoes: bool,
    /// `None` while it waits for the end of its standard input, or for ever.
    pub end: Option<End>,
    ends_with_stdin: bool,
}

impl Process {
    /// Starts `command`: `true`, `fail N`, `print N`, `complain N`, `die NAME`, `cat`, `sink`, `sleep`.
    pub fn start(command: &[u8]) -> Self {
        let text = std::str::from_utf8(command).expect("a command of the tests");
        let (program, argument) = text.split_once(' ').unwrap_or((text, ""));
        let number = || argument.parse::<usize>().expect("a number");
        let mut process = Process {
            stdout: Vec::new(),
            stderr: Vec::new(),
            echoes: program == "cat",
            end: Some(End::Status(0)),
            ends_with_stdin: matches!(program, "cat" | "sink"),
        };
        match program {
            "true" => {}
            "fail" => process.end = Some(End::Status(number() as u32)),
            "print" => process.stdout = pattern(number()),
            "complain" => process.stderr = pattern(number()),
            "die" => process.end = Some(End::Signal("TERM")),
            "cat" | "sink" | "sleep" => process.end = None,
            other => panic!("no program {other:?}"),
        }
        process
    }

    pub fn handle_stdin(&mut self, data: &[u8]) {
        if self.echoes {
            self.stdout.extend(data);
        }
    }

    pub fn handle_stdin_end(&mut self) {
        if self.ends_with_stdin {
            self.end = Some(End::Status(0));
        }
    }
}
