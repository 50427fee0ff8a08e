//! Whatever answers in place of our shell: it is refused, and nothing is made up.

use super::*;

fn said(octets: &[u8]) -> Result<ShellServer, ShellError> {
    let mut server = ShellServer::new([7; 16]);
    server.handle_input(octets)?;
    Ok(server)
}

#[test]
fn what_is_no_shell_of_ours_is_told() {
    let motd = said(b"Welcome\nsshoal-shell\n").unwrap();
    assert!(motd.transmit().ends_with(b"echo \"sshoal-lacks$lacks\";\n"));
    for (octets, wanted) in [
        (
            &b"sshoal-shell\nsshoal-lacks stat xargs\n"[..],
            "the host lacks stat, xargs",
        ),
        (b"sshoal-shell\nhello\n", "no answer"),
        (b"sshoal-shell\nsshoal-ready 22\n0\n", "no answer"),
        (&[b'x'; 100_000], "no POSIX shell"),
        (&b"x\n".repeat(50_000), "no POSIX shell"),
    ] {
        let error = said(octets).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// A host that answers what it likes.
#[test]
fn answers_that_answer_nothing_are_refused() {
    let look = |path: &[u8]| {
        let mut packet = vec![7, 0, 0, 0, 1];
        packet.put_string(path);
        packet
    };
    let mut list = vec![11, 0, 0, 0, 1];
    list.put_string(b"/");
    let mut link = vec![19, 0, 0, 0, 1];
    link.put_string(b"/");
    for (request, answer) in [
        (look(b"/"), &b"0\n"[..]),
        (look(b"/"), b"41ed 1 2 3 4\n"),
        (look(b"/"), b"v1 2 3 4\n"),
        (look(b"/"), b"41ed 1 2 3 4 5\n0\n"),
        (list.clone(), b"0\nn501\n"),
        (list.clone(), b"0\nn0\n"),
        (list.clone(), b"n1\n"),
        (list, b"0\nn1\nname\0nothing\n"),
        (link, b"d100\n"),
    ] {
        let mut server = said(b"sshoal-shell\nsshoal-ready 0022\n").unwrap();
        let mut octets = Vec::new();
        octets.put_string(&request);
        server.handle_requests(&octets).unwrap();
        let error = server.handle_input(answer).unwrap_err();
        assert!(
            matches!(error, ShellError::NoAnswer(_)),
            "{answer:?}: {error}"
        );
    }
}

/// The end of what a file does not have is made up: none of it may be taken for contents.
#[test]
fn what_a_file_has_not_is_not_made_up() {
    for (counts, wanted) in [
        (
            "0+0 records in 0+0 records out 1+0 records in 1+0 records out 65536 bytes copied 1+0 records in",
            Some(65_636),
        ),
        (
            "1+0 records in 65536 bytes (66 kB) copied 0+1 records in 9 bytes copied, size 1",
            Some(65_545),
        ),
        ("1+0 records in 0+1 records in size 65540", Some(65_540)),
        ("1+0 records in 0+0 records in size", Some(65_536)),
        ("0+1 records in 0+0 records in size 7", Some(7)),
        ("", Some(0)),
        ("0+0 records in 0+0 records in", Some(0)),
        ("1+0 records in 0+1 records in", None),
        ("1+0 records in 0+1 records in size 70000", None),
        ("1+0 records in 0+1 records in 65637 bytes copied", None),
        ("changed", None),
    ] {
        let mut server = said(b"sshoal-shell\nsshoal-ready 0022\n").unwrap();
        let mut octets = Vec::new();
        let mut open = vec![3, 0, 0, 0, 1];
        open.put_string(b"/file");
        open.extend([0, 0, 0, 1, 0, 0, 0, 0]);
        octets.put_string(&open);
        let mut read = vec![5, 0, 0, 0, 2];
        read.put_string(&1_u32.to_be_bytes());
        read.put_u64(0);
        read.put_u32(65_636);
        server.handle_requests(&octets).unwrap();
        server.handle_input(b"=1:2\n").unwrap();
        octets.clear();
        octets.put_string(&read);
        server.handle_requests(&octets).unwrap();
        server.take_replies();
        server.handle_input(b"d65636\n").unwrap();
        server.handle_input(&[b'0'; 65_636]).unwrap();
        assert!(server.take_replies().is_empty());
        server
            .handle_input(format!("t {counts}\n").as_bytes())
            .unwrap();
        let replies = server.take_replies();
        match wanted {
            Some(0) => assert_eq!((replies[4], &replies[9..13]), (101, &[0, 0, 0, 1][..])),
            Some(len) => assert_eq!((replies[4], replies.len()), (103, len + 13), "{counts}"),
            None => assert_eq!((replies[4], &replies[9..13]), (101, &[0, 0, 0, 4][..])),
        }
    }
}
