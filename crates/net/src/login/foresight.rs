//! What can be said of a run's logins before the first of them.

use std::collections::HashSet;
use std::sync::Arc;

use sshoal_fleet::Deadlines;
use tokio::runtime::Builder;

use super::order::{Candidates, KeySigner, candidates};
use super::patience;
use super::plan::LoginPlan;
use crate::plan::HostPlan;

/// Whether hosts log in with nothing but security keys, so that each login waits for a person.
///
/// Touches come one after the other, and a server waits two minutes at most (LoginGraceTime): such a run needs few
/// logins at a time, or most of its hosts give up before their turn. Where the keys are the agent's, it is asked for
/// them here, once a run.
pub fn logins_wait_for_touch(hosts: &[HostPlan], deadlines: &Deadlines) -> bool {
    let mut seen = HashSet::new();
    let mut plans = hosts
        .iter()
        .filter_map(HostPlan::native)
        .map(|host| &host.endpoint.login)
        .filter(|plan| seen.insert(Arc::as_ptr(plan)));
    plans.any(|plan| waits_for_touch(plan, deadlines))
}

/// Whether nothing is known by which a login would ask a person for something, a touch or a passphrase. An agent is not asked what
/// its keys want.
pub(crate) fn asks_nobody(plan: &LoginPlan) -> bool {
    let known = candidates(plan, None).keys;
    let mut asking = known
        .iter()
        .filter(|key| key.waits_for_touch() || matches!(key.signer, KeySigner::Locked(_)));
    asking.next().is_none()
}

fn waits_for_touch(plan: &LoginPlan, deadlines: &Deadlines) -> bool {
    let without_agent = candidates(plan, None);
    if without_agent.keys.iter().any(|key| !key.waits_for_touch()) {
        return false;
    }
    let found = match without_agent.complete {
        true => without_agent,
        false => with_agent(plan, deadlines),
    };
    !found.keys.is_empty() && found.keys.iter().all(|key| key.waits_for_touch())
}

fn with_agent(plan: &LoginPlan, deadlines: &Deadlines) -> Candidates {
    let runtime = Builder::new_current_thread().enable_all().build();
    let keys = match (&plan.agent, runtime) {
        (Some(agent), Ok(runtime)) => runtime.block_on(agent.keys(patience(deadlines.login))),
        _ => return candidates(plan, Some(&[])),
    };
    // An agent that cannot be asked is told of by the hosts that need it.
    candidates(plan, Some(keys.unwrap_or_default()))
}
