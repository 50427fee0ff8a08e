//! Which hosts of a run, or of a copy, `sshoal up` keeps already: their commands and transfers go by those connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use sshoal_fleet::HostId;
use sshoal_net::{
    Endpoint, HostPlan, Identities, Identity, SharedConnection, Sharing, WarmBerth, WarmPlan,
};
use sshoal_pool::{Folder, Seating, board, find, share};
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

    /// Of the hosts of a copy, unless that `wants_own` connections.
    pub(crate) fn of_copy(wants_own: bool, plans: &[HostPlan], jumps: &[Endpoint]) -> Kept {
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
        (!streams.is_empty()).then_some(WarmPlan::Commands { streams, berths })
    }

    /// Has the connections shared, each when its host's turn has come.
    pub(crate) fn sharing(self) -> Option<WarmPlan> {
        let folder = self.folder?;
        let kept: Vec<bool> = self.seatings.iter().map(Option::is_some).collect();
        kept.contains(&true).then(|| WarmPlan::Transfers {
            sharing: Arc::new(Sharer {
                folder,
                seatings: self.seatings,
            }),
            kept,
        })
    }
}

/// Asks for connections to be shared.
struct Sharer {
    folder: Folder,
    seatings: Vec<Option<(Seating, Identity)>>,
}

impl Sharing for Sharer {
    fn share(&self, host: HostId) -> Option<SharedConnection> {
        let (seating, identity) = self.seatings.get(host.0 as usize)?.as_ref()?;
        match share(&self.folder, *seating, identity) {
            Ok(shared) => shared.map(|(shared, socket)| SharedConnection {
                socket,
                server: shared.server,
                round_trip: shared.round_trip,
                address: shared.address,
                host_key: shared.host_key,
            }),
            Err(error) => {
                tracing::debug!(%error, "a connection is not shared");
                None
            }
        }
    }
}
