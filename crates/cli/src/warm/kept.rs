//! Which hosts of a run `sshoal up` keeps already: their commands go by those connections.

use std::collections::BTreeMap;

use sshoal_net::{Endpoint, HostPlan, Identities, Identity, WarmBerth, WarmPlan};
use sshoal_pool::{Folder, Seating, board, find};
use sshoal_report::Host;

use crate::args::RunArgs;

/// Hosts of a run that are kept, by connections that are the same as those that the run would make.
#[derive(Default)]
pub(crate) struct Kept {
    folder: Option<Folder>,
    /// In the order of the run's hosts; empty if none is kept.
    seatings: Vec<Option<(Seating, Identity)>>,
}

impl Kept {
    /// Of the hosts of a run of this command line. Whatever is wrong with the process that keeps connections, the run
    /// can do without.
    pub(crate) fn of_run(args: &RunArgs, plans: &[HostPlan], jumps: &[Endpoint]) -> Kept {
        // A password is for logging in, or is not to lie about in another process.
        let wants_own = args.no_pool || args.tty || args.sudo || args.login.ask_pass;
        // What is to be gone on with is looked after by the connection's own end.
        let wants_own = wants_own || args.detach.detached().is_some();
        match wants_own {
            true => Kept::default(),
            false => Kept::of(plans, jumps),
        }
    }

    /// Whether any host may be.
    pub(crate) fn is_possible() -> bool {
        Folder::in_use().is_some()
    }

    /// Of these hosts.
    pub(crate) fn of(plans: &[HostPlan], jumps: &[Endpoint]) -> Kept {
        let Some(folder) = Folder::in_use() else {
            return Kept::default();
        };
        let mut identities = Identities::new(jumps);
        let (mut asked, mut wanted) = (Vec::new(), Vec::new());
        for (host, plan) in plans.iter().enumerate() {
            let native = plan.native().filter(|_| plan.can_be_warm());
            if let Some(native) = native.filter(|native| identities.tells_all_of(&native.endpoint))
            {
                asked.push(host);
                wanted.push(identities.of(&native.endpoint));
            }
        }
        let found = match find(&folder, &wanted) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "no connections are shared");
                return Kept::default();
            }
        };
        let mut seatings = vec![None; plans.len()];
        for ((host, identity), seating) in asked.into_iter().zip(wanted).zip(found) {
            seatings[host] = seating.map(|seating| (seating, identity));
        }
        Kept {
            folder: Some(folder),
            seatings,
        }
    }

    /// Whether that host is kept.
    pub(crate) fn has(&self, host: usize) -> bool {
        self.seatings.get(host).is_some_and(Option::is_some)
    }

    /// Notes in the report's hosts which of them are kept.
    pub(crate) fn mark(&self, hosts: &mut [Host]) {
        for (number, host) in hosts.iter_mut().enumerate() {
            if let Some(way) = &mut host.way {
                way.is_warm = self.has(number);
            }
        }
    }

    /// Takes a place at each thread that keeps one of them. A host whose thread has none is logged in to.
    pub(crate) fn board(self) -> Option<WarmPlan> {
        let folder = self.folder?;
        let mut streams = Vec::new();
        let mut decks: BTreeMap<u32, Option<usize>> = BTreeMap::new();
        let berths = self.seatings.into_iter().map(|seating| {
            let (Seating { deck, host }, identity) = seating?;
            let stream = *decks.entry(deck).or_insert_with(|| {
                let stream = board(&folder, deck).ok()?;
                streams.push(stream);
                Some(streams.len() - 1)
            });
            stream.map(|stream| WarmBerth {
                stream,
                host,
                identity,
            })
        });
        let berths: Vec<_> = berths.collect();
        (!streams.is_empty()).then_some(WarmPlan { streams, berths })
    }
}
