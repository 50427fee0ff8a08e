//! One host's transfer by a connection that another process keeps: its channels are on it beside those of others.

use std::rc::Rc;
use std::sync::Arc;

use sshoal_fleet::{Gate, HostId, Outcome, Phase};
use sshoal_proto::ExecFate;
use tokio::task::spawn_blocking;

use super::{Sharing, goes_cold};
use crate::failures::Ended;
use crate::host::{Orders, aborted, pass};
use crate::login::asks_nobody;
use crate::plan::{Endpoint, NativePlan, RunPlan};
use crate::session::HostSession;
use crate::worker::Worker;

/// Transfers what there is. A host that is not kept any more is to be begun anew, with a login; and so is one whose connection ends,
/// where the transfer may be.
pub(crate) async fn transfer(
    worker: &Rc<Worker>,
    host: HostId,
    plan: &NativePlan,
    sharing: Arc<dyn Sharing>,
    orders: &mut Orders,
) -> Result<Outcome, Ended> {
    pass(worker, host, orders, Gate::Session).await?;
    worker.enter(host, Phase::Session);
    let asked = spawn_blocking(move || sharing.share(host));
    let shared = tokio::select! {
        biased;
        shared = asked => shared.ok().flatten(),
        _ = orders.recv() => return Err(aborted(ExecFate::NotSent)),
    };
    let Some(shared) = shared else {
        return Err(goes_cold(
            worker,
            host,
            "it is not kept any more".to_owned(),
        ));
    };
    let mut session = Box::new(HostSession::share(worker, host, plan, shared)?);
    let end = session.run(orders).await;
    if end.is_err() {
        worker.keepers.goes_cold(host);
    }
    end
}

/// Whether a login to a host, and to the jump hosts on the way there, asks nobody for anything, as far as can be told before.
pub(crate) fn logs_in_unasked(run: &RunPlan, endpoint: &Endpoint) -> bool {
    let is_way_unasked = |jump| logs_in_unasked(run, run.jump(jump));
    asks_nobody(&endpoint.login) && endpoint.via.is_none_or(is_way_unasked)
}
