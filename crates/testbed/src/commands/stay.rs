//! Staying until told to go.

use std::io::{self, Read};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// What a command that stays does meanwhile.
pub(super) trait Staying {
    /// Tells whoever waits that all is up. From now on signals are handled.
    fn announce(&mut self) -> io::Result<()>;

    /// A line for standard output, on SIGUSR1 and at the end.
    fn report(&mut self) -> io::Result<String>;

    /// Makes well what is slow, on SIGUSR2; a line for standard output. There is nothing to be made well in most.
    fn mend(&mut self) -> io::Result<String> {
        self.report()
    }
}

/// Announces, then waits for SIGINT, SIGTERM or, with `until_eof`, the end of standard input.
pub(super) fn stay(until_eof: bool, staying: &mut impl Staying) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut asked = signal(SignalKind::user_defined1())?;
        let mut mended = signal(SignalKind::user_defined2())?;
        let mut input = input_end(until_eof)?;
        staying.announce()?;
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                () = &mut input => break,
                _ = asked.recv() => println!("{}", staying.report()?),
                _ = mended.recv() => println!("{}", staying.mend()?),
            }
        }
        println!("{}", staying.report()?);
        Ok(())
    })
}

/// Ready when standard input ends; never if that is not awaited.
fn input_end(awaited: bool) -> io::Result<impl Future<Output = ()> + Unpin> {
    let (ended, end) = oneshot::channel::<()>();
    let not_awaited = match awaited {
        // A thread, for a blocking read that nothing could interrupt; the process's end does.
        true => {
            thread::Builder::new()
                .name("standard input".to_owned())
                .spawn(move || {
                    let mut lost = [0; 4096];
                    while io::stdin().read(&mut lost).is_ok_and(|read| read > 0) {}
                    drop(ended);
                })?;
            None
        }
        false => Some(ended),
    };
    Ok(Box::pin(async move {
        let _ = end.await;
        drop(not_awaited);
    }))
}
