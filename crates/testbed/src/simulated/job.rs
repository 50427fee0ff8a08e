//! Commands that take time: each a task that writes to its channel as fast as the client reads.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use russh::ChannelId;
use russh::server::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

/// The connection is gone: nobody is left to tell.
pub(super) struct Gone;

/// Data of one CHANNEL_DATA, the largest that OpenSSH's clients take.
const PIECE: usize = 32 << 10;

/// Runs `work`, then sends exit-status 0 and, unless `never_close`, the channel's end.
pub(super) fn spawn(
    handle: Handle,
    channel: ChannelId,
    never_close: bool,
    work: impl Future<Output = Result<(), Gone>> + Send + 'static,
) -> AbortHandle {
    let whole = async move {
        if work.await.is_ok() {
            // Each fails only if the connection is gone.
            let _ = handle.exit_status_request(channel, 0).await;
            if !never_close {
                let _ = handle.eof(channel).await;
                let _ = handle.close(channel).await;
            }
        }
    };
    tokio::spawn(whole).abort_handle()
}

pub(super) async fn sleep(time: Duration) -> Result<(), Gone> {
    tokio::time::sleep(time).await;
    Ok(())
}

/// `bytes` bytes of "y\n".
pub(super) async fn yes(handle: Handle, channel: ChannelId, bytes: u64) -> Result<(), Gone> {
    let piece = Bytes::from(b"y\n".repeat(PIECE / 2));
    let mut left = bytes;
    while left > 0 {
        let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let data = piece.slice(..length);
        handle.data(channel, data).await.map_err(|_| Gone)?;
        left -= length as u64;
    }
    Ok(())
}

/// The numbers 1 to `lines`, one every `every`, the first after the first wait.
pub(super) async fn slow(
    handle: Handle,
    channel: ChannelId,
    lines: u64,
    every: Duration,
) -> Result<(), Gone> {
    let mut due = Instant::now();
    for line in 1..=lines {
        due += every;
        sleep_until(due).await;
        let data = format!("{line}\n");
        handle.data(channel, data).await.map_err(|_| Gone)?;
    }
    Ok(())
}

/// Sends what it receives, and takes off `backlog` what it has sent.
pub(super) async fn cat(
    handle: Handle,
    channel: ChannelId,
    mut received: UnboundedReceiver<Bytes>,
    backlog: Arc<AtomicUsize>,
) -> Result<(), Gone> {
    while let Some(data) = received.recv().await {
        let length = data.len();
        handle.data(channel, data).await.map_err(|_| Gone)?;
        backlog.fetch_sub(length, Ordering::Relaxed);
    }
    Ok(())
}
