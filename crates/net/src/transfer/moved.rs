//! How far the hosts of a run are with their files, for whoever shows that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sshoal_fleet::HostId;

/// How far all hosts of a run are, and each of them: to be looked at at any time.
#[derive(Debug)]
pub struct Moved {
    done: AtomicU64,
    left: AtomicU64,
    /// By the host's number in the run.
    hosts: Vec<HostMoved>,
}

#[derive(Debug, Default)]
struct HostMoved {
    done: AtomicU64,
    left: AtomicU64,
    /// Whether its transfer has begun, and not ended.
    is_open: AtomicBool,
}

impl Moved {
    /// Nothing yet, of so many hosts.
    pub(super) fn new(hosts: usize) -> Moved {
        Moved {
            done: AtomicU64::new(0),
            left: AtomicU64::new(0),
            hosts: (0..hosts).map(|_| HostMoved::default()).collect(),
        }
    }

    /// Octets of contents that have arrived.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Octets that are still to come, as far as is known.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Both, of each host whose transfer is under way: what has arrived, what is left.
    pub fn of_hosts(&self) -> impl Iterator<Item = (HostId, u64, u64)> {
        let hosts = (0..).map(HostId).zip(&self.hosts);
        let open = hosts.filter(|(_, host)| host.is_open.load(Ordering::Relaxed));
        open.map(|(id, host)| {
            let amount = |of: &AtomicU64| of.load(Ordering::Relaxed);
            (id, amount(&host.done), amount(&host.left))
        })
    }

    /// A host's transfer begins, perhaps again.
    pub(super) fn begin(&self, host: usize) {
        self.hosts[host].done.store(0, Ordering::Relaxed);
        self.hosts[host].is_open.store(true, Ordering::Relaxed);
    }

    /// So many octets more have arrived.
    pub(super) fn add(&self, host: usize, octets: u64) {
        self.hosts[host].done.fetch_add(octets, Ordering::Relaxed);
        self.done.fetch_add(octets, Ordering::Relaxed);
    }

    /// So many octets are left for a host.
    pub(super) fn set_left(&self, host: usize, left: u64) {
        let before = self.hosts[host].left.swap(left, Ordering::Relaxed);
        // Wraps where less is left: the sum of all shares is what counts.
        let change = left.wrapping_sub(before);
        self.left.fetch_add(change, Ordering::Relaxed);
    }

    /// A host's transfer has ended: what is not moved any more is not left either.
    pub(super) fn end(&self, host: usize) {
        self.set_left(host, 0);
        self.hosts[host].is_open.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_all_is_the_sum_of_what_is_left_of_each() {
        let moved = Moved::new(3);
        for host in [0, 2] {
            moved.begin(host);
            moved.set_left(host, 100);
        }
        moved.add(2, 30);
        moved.set_left(2, 70);
        assert_eq!((moved.done(), moved.left()), (30, 170));
        let hosts: Vec<_> = moved.of_hosts().collect();
        assert_eq!(hosts, [(HostId(0), 0, 100), (HostId(2), 30, 70)]);
        moved.end(2);
        assert_eq!((moved.done(), moved.left()), (30, 100));
        assert_eq!(moved.of_hosts().count(), 1);
        // Tried again.
        moved.begin(2);
        assert_eq!(moved.of_hosts().last(), Some((HostId(2), 0, 0)));
    }
}
