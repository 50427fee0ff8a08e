#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use super::*;

fn asked(head: &[u8]) -> String {
    let said = response(head, || "up 1\n".to_owned());
    String::from_utf8(said).unwrap()
}

#[test]
fn a_get_is_answered_and_nothing_else() {
    let answered = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: 5\r\nConnection: close\r\n\r\nup 1\n";
    for head in [
        &b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"GET / HTTP/1.0\n\n",
    ] {
        assert_eq!(asked(head), answered);
    }
    assert!(asked(b"POST / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405 "));
    assert!(asked(b"GET / HTTP/1.0\r\n").starts_with("HTTP/1.0 400 "));
    assert!(asked(b"").starts_with("HTTP/1.0 400 "));
    assert!(asked(&[b'a'; MAX_HEAD]).starts_with("HTTP/1.0 431 "));
}

#[test]
fn whoever_says_nothing_or_never_ends_is_left_in_time() {
    let (here, mut there) = UnixStream::pair().unwrap();
    let late = answer_until(&here, || panic!("nothing was asked"), Instant::now());
    assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
    there.write_all(&[b'a'; MAX_HEAD]).unwrap();
    answer(&here, || panic!("that was no request")).unwrap();
    drop(here);
    let mut said = String::new();
    there.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.0 431 "), "{said}");
}

#[test]
fn a_socket_is_the_user_s_alone_and_takes_the_place_of_one_that_nobody_listens_at() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let bound = Bound::at(&path).unwrap();
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let refused = Bound::at(&path).err().unwrap();
    assert!(matches!(refused, MetricsError::InUse { .. }), "{refused}");
    drop(bound);
    assert!(!path.exists());
    drop(UnixListener::bind(&path).unwrap());
    let socket = MetricsSocket::default();
    assert!(!socket.is_at(&path));
    socket.replace(Bound::at(&path).unwrap());
    assert!(socket.is_at(&path));
    UnixStream::connect(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!socket.is_at(&path), "nobody finds it");
    fs::write(&path, "a file").unwrap();
    let refused = Bound::at(&path).err().unwrap();
    assert!(
        matches!(refused, MetricsError::NoSocket { .. }),
        "{refused}"
    );
    socket.close();
    assert!(path.exists(), "it is another's");
    let nowhere = Bound::at(&dir.path().join("nowhere/socket")).err().unwrap();
    let words = nowhere.to_string();
    assert!(
        words.contains("nowhere/socket") && words.contains("folder"),
        "{words}"
    );
}
