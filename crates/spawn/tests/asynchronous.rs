//! Waiting on tokio's reactor.

#![allow(clippy::unwrap_used)]

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;

use sshoal_spawn::{Command, Signal, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

#[tokio::test]
async fn many_children_are_awaited_at_once() {
    let mut tasks = Vec::new();
    for number in 0..50 {
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("exit {number}")])
            .spawn()
            .unwrap();
        tasks.push(tokio::spawn(async move {
            child.wait_async().await.unwrap().code()
        }));
    }
    for (number, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap(), Some(number));
    }
}

#[tokio::test]
async fn an_abandoned_wait_loses_nothing() {
    let mut child = Command::new("/bin/cat")
        .stdin(Stdio::pipe())
        .spawn()
        .unwrap();
    // Kept here, so that cat goes on while the first wait is given up.
    let stdin = child.stdin.take();
    tokio::select! {
        biased;
        _ = child.wait_async() => panic!("cat ended with its input still open"),
        () = tokio::task::yield_now() => {}
    }
    child.signal(Signal::TERM).unwrap();
    assert_eq!(
        child.wait_async().await.unwrap().signal(),
        Some(Signal::TERM.as_raw())
    );
    drop(stdin);
    assert_eq!(
        child.wait_async().await.unwrap().signal(),
        Some(Signal::TERM.as_raw())
    );
}

#[tokio::test]
async fn pipes_become_tokio_s() {
    let mut child = Command::new("/bin/cat")
        .stdin(Stdio::pipe())
        .stdout(Stdio::pipe())
        .spawn()
        .unwrap();
    let stdin = OwnedFd::from(child.stdin.take().unwrap());
    let stdout = OwnedFd::from(child.stdout.take().unwrap());
    let mut writer = Sender::from_owned_fd(stdin).unwrap();
    let mut reader = Receiver::from_owned_fd(stdout).unwrap();
    writer.write_all(b"there and back").await.unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "there and back");
    assert!(child.wait_async().await.unwrap().success());
}
