//! A panic while one host is worked on is a defect of this program, and ends that host alone.
//!
//! tokio drops a task that panics and goes on, so a host whose task says nothing more would be waited for for ever.
//! [`caught`] turns the panic into a failure where more is known of the host; [`Watch`] speaks for a task that is gone.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;

use sshoal_fleet::{Event, Failure, FailureKind, HostId};

use crate::worker::{Report, Worker};

/// Does the work; a panic in it becomes a failure, and the work is dropped.
///
/// What the work borrowed mutably is in no defined state then, but safe: use it for no more than to let it go.
///
/// The work has a place of its own on the heap: in an async function it would be there twice, as an argument and as what
/// is awaited, and a thousand idle hosts would pay for that.
pub(crate) fn caught<T>(work: impl Future<Output = T>) -> impl Future<Output = Result<T, Failure>> {
    let mut work = Box::pin(work);
    poll_fn(
        move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
            Err(panic) => Poll::Ready(Err(failure(said(panic.as_ref())))),
        },
    )
}

/// Tells the fleet that a host's task is gone, if it goes without having reported the host's end.
pub(crate) struct Watch {
    worker: Rc<Worker>,
    host: HostId,
    is_over: bool,
}

impl Watch {
    pub(crate) fn begin(worker: &Rc<Worker>, host: HostId) -> Self {
        Watch {
            worker: worker.clone(),
            host,
            is_over: false,
        }
    }

    /// Reports the end of the attempt.
    pub(crate) fn end(mut self, event: Event) {
        self.is_over = true;
        self.worker.report(Report::Host(self.host, event));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            let event = Event::Crashed(failure("its task is gone"));
            self.worker.report(Report::Host(self.host, event));
        }
    }
}

/// The failure of a host that this program did not do its work for.
pub(crate) fn failure(what: &str) -> Failure {
    let detail = format!("sshoal failed while it worked on this host: {what}");
    Failure::new(FailureKind::Internal, detail)
}

/// A panic's message: std makes them `&str` or `String`.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}
