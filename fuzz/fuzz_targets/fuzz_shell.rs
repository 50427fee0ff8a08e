//! A shell in an SFTP server's place that says what it likes, in whatever pieces: it is refused or goes on, and what is made of it is
//! SFTP that a download can read.

#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sshoal_transfer::{
    Deletion, Download, DownloadPlan, Excludes, Hashing, Method, Owners, Rights, ShellServer, Verify,
};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Say(&'a [u8]),
    Line(&'a [u8]),
    /// What stat says.
    Look { mode: u16, size: u32 },
    Done,
    Refuse(&'a str),
    Group(Vec<&'a [u8]>),
    EndOfGroups,
    Path(&'a [u8]),
    Octets { len: u16, blocks: u8 },
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut download = Download::new(Arc::new(DownloadPlan {
        sources: [&b"/a"[..], b"*/b*", b"c"].map(<[u8]>::to_vec).into(),
        recursive: true,
        preserve: true,
        owners: Owners::Kept { by_name: false },
        rights: Rights::All,
        excludes: Excludes::default(),
        deletion: Deletion::None,
        in_order: false,
        method: Method::Sftp,
        hashing: Hashing { compares: false, verifies: Verify::Never },
        in_flight: 1 << 16,
    }));
    let mut shell = ShellServer::new([7; 16]);
    let greeting = shell.handle_input(b"sshoal-shell\nsshoal-ready 0022\n");
    greeting.expect("the greeting of host.sh");
    for step in steps {
        let said = match step {
            Step::Say(octets) => octets.to_vec(),
            Step::Line(octets) => [octets, b"\n"].concat(),
            Step::Look { mode, size } => format!("{mode:x} {size} 0 0 1 2\n").into_bytes(),
            Step::Done => b"0\n".to_vec(),
            Step::Refuse(words) => format!("! {words}\n").into_bytes(),
            Step::Group(names) => {
                let mut said = format!("n{}\n", names.len()).into_bytes();
                for name in &names {
                    said.extend_from_slice(name);
                    said.push(0);
                }
                said.extend(names.iter().flat_map(|_| b"81a4 3 0 0 1 2\n"));
                said
            }
            Step::EndOfGroups => b"n1\n/\0-\n.\n".to_vec(),
            Step::Path(path) => [b"p", path, b"\0"].concat(),
            Step::Octets { len, blocks } => {
                let mut said = format!("d{len}\n").into_bytes();
                said.resize(said.len() + usize::from(len), 7);
                said.extend_from_slice(format!("t {blocks}+0 records in\n").as_bytes());
                said
            }
        };
        while let Some(piece) = download.transmit(0).next() {
            let len = piece.len().min(shell.room());
            if len == 0 {
                break;
            }
            let asked = shell.handle_requests(&piece[..len]);
            asked.expect("what a download asks for");
            download.transmitted(0, len);
        }
        shell.transmitted(shell.transmit().len());
        if shell.handle_input(&said).is_err() {
            return;
        }
        let replies = shell.take_replies();
        download.handle_input(0, &replies).expect("SFTP");
        while download.poll_need().is_some() {}
        while download.poll_event().is_some() {}
    }
});
