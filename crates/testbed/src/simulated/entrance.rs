//! Accepting connections, and what a host does before its SSH begins.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::behaviour::{Behaviour, Entrance};
use super::host::Host;
use super::session::Connection;
use super::stream::HostStream;

/// Noise sent by `garbage-banner`: far more than the 8,192 bytes that OpenSSH's clients read.
const GARBAGE: usize = 64 << 10;
/// Pause after a failed accept(2): without descriptors it would fail again at once, for ever.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Accepts a host's connections until the runtime ends.
pub(super) async fn serve(host: Arc<Host>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                tokio::spawn(receive(Arc::clone(&host), tcp));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn receive(host: Arc<Host>, tcp: TcpStream) {
    let behaviour = host.connected();
    // Every error below means that the client has gone, which is the client's affair.
    let _ = match behaviour.entrance {
        Entrance::Ssh => ssh(host, tcp, behaviour).await,
        Entrance::Silence => ignore(tcp).await,
        Entrance::Garbage => garbage(tcp, host.index).await,
        Entrance::EndlessBanner => endless_banner(tcp).await,
        Entrance::TurnedAway(text) => turn_away(tcp, text).await,
    };
}

async fn ssh(host: Arc<Host>, tcp: TcpStream, behaviour: Behaviour) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let meter = host.meter();
    let config = host.config(&behaviour);
    let stream = HostStream::new(tcp, &behaviour, Arc::clone(&meter));
    let connection = Connection::new(host, Arc::new(behaviour), meter);
    match russh::server::run_stream(config, stream, connection).await {
        // The session runs as a task of its own.
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Reads until the client goes.
async fn ignore(mut tcp: TcpStream) -> io::Result<()> {
    let mut lost = [0; 1024];
    while tcp.read(&mut lost).await? > 0 {}
    Ok(())
}

async fn garbage(mut tcp: TcpStream, seed: u32) -> io::Result<()> {
    let mut noise = Vec::with_capacity(GARBAGE);
    let mut state = u64::from(seed) + 1;
    while noise.len() < GARBAGE {
        // Marsaglia's xorshift64: noise need not be better, and is the same in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // A line end would make it a line, a NUL would end it: this is to be neither.
        noise.push((state >> 56) as u8 | 0x80);
    }
    tcp.write_all(&noise).await?;
    ignore(tcp).await
}

async fn endless_banner(mut tcp: TcpStream) -> io::Result<()> {
    let lines = b"Authorised use only.\r\n".repeat(100);
    loop {
        tcp.write_all(&lines).await?;
    }
}

async fn turn_away(mut tcp: TcpStream, text: &str) -> io::Result<()> {
    tcp.write_all(text.as_bytes()).await?;
    tcp.shutdown().await
}
