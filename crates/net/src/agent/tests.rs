#![allow(clippy::unwrap_used)]

use std::sync::mpsc;

use sshoal_agent::MAX_MESSAGE_LEN;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::LocalSet;

use super::*;

const SUCCESS: &[u8] = &[0, 0, 0, 1, 6];
const REQUEST_IDENTITIES: &[u8] = &[0, 0, 0, 1, 11];
const EXTENSION: u8 = 27;

/// What an agent answers a forwarded request with, and the numbers of the messages that it got. It says SUCCESS to
/// everything, but may hang up when it is to bind a connection.
async fn forwarded(host_key: Vec<u8>, binds: bool) -> (Option<Vec<u8>>, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let (tell, told) = mpsc::channel();
    tokio::task::spawn_local(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let tell = tell.clone();
            tokio::task::spawn_local(async move {
                while let Ok(length) = stream.read_u32().await {
                    let mut message = vec![0; length as usize];
                    stream.read_exact(&mut message).await.unwrap();
                    tell.send(message[0]).unwrap();
                    if message[0] == EXTENSION && !binds {
                        return;
                    }
                    stream.write_all(SUCCESS).await.unwrap();
                }
            });
        }
    });
    let asker = Asker {
        session: Session {
            host_key,
            session_id: vec![1; 32],
            proof: vec![2; 83],
        },
        turns: Semaphore::new(FORWARDED_OF_A_HOST),
    };
    let agent = Agent::new(socket.to_str().unwrap());
    let answer = agent.pass_on(&asker, &[], REQUEST_IDENTITIES).await;
    (answer, told.try_iter().collect())
}

#[tokio::test]
async fn a_forwarded_request_goes_by_no_connection_that_could_not_be_bound() {
    let forwarding = async {
        let (answer, got) = forwarded(vec![0; 51], true).await;
        assert_eq!(
            (answer.as_deref(), got),
            (Some(SUCCESS), vec![EXTENSION, 11])
        );
        let (answer, got) = forwarded(vec![0; 51], false).await;
        assert_eq!((answer, got), (None, vec![EXTENSION]));
        // So long a key that no agent takes the message.
        let (answer, got) = forwarded(vec![0; MAX_MESSAGE_LEN], true).await;
        assert_eq!((answer, got), (None, vec![]));
    };
    LocalSet::new().run_until(forwarding).await;
}
