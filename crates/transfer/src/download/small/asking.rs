//! Small files on their way into batches.

use super::stream::Stage;
use super::{
    BATCH_FILES, BATCH_OCTETS, Base, FetchedSmall, GROUP, LOOKS, REQUESTS, SmallLook, SmallNeed,
    Wanted, Way,
};
use crate::Trouble;
use crate::download::{Asked, Download};
use crate::sftp::Request;

impl Download {
    /// Does what can be done now about small files.
    pub(in crate::download) fn fetch_small(&mut self) {
        let is_listed = self.is_all_listed();
        let small = &mut self.small;
        if small.way == Way::Undecided && small.found.len() >= small.fewest {
            small.way = Way::Open;
        }
        match small.way {
            Way::Open => {
                self.look_for_small();
                self.greet_streams();
                self.leave_few();
            }
            Way::Undecided if is_listed => self.stop_asking(None),
            Way::Undecided | Way::Closed => {}
        }
        self.check_small();
    }

    /// Whether all that is found is looked for, too.
    pub(super) fn is_all_looked_for(&self) -> bool {
        self.is_all_listed() && self.small.found.is_empty() && self.small.looks.is_empty()
    }

    /// Has this machine look whether files are here already.
    fn look_for_small(&mut self) {
        while self.small.looks.len() < LOOKS && !self.small.found.is_empty() {
            let count = self.small.found.len().min(GROUP);
            let group: Vec<(Base, Wanted)> = self.small.found.drain(..count).collect();
            let id = self.id();
            if !self.plan.preserve {
                // Times that are not kept are those of the copying: they tell nothing.
                let unseen = vec![Ok(false); count];
                self.small.looks.insert(id, group);
                self.handle_seen(id, unseen);
                continue;
            }
            let files = group.iter().map(|(_, it)| {
                let attributes = &it.item.attributes;
                SmallLook {
                    path: it.item.local.clone(),
                    like: (it.size(), attributes.modified().unwrap_or(0)),
                    owner: self.owner_here(&it.item.remote, attributes),
                    mode: attributes.permissions(),
                }
            });
            let files = files.collect();
            self.small.needs.push_back(SmallNeed::Look { id, files });
            self.small.looks.insert(id, group);
        }
    }

    pub(super) fn handle_seen(&mut self, id: u64, seen: Vec<Result<bool, String>>) {
        let Some(group) = self.small.looks.remove(&id) else {
            return;
        };
        for ((base, wanted), seen) in group.into_iter().zip(seen) {
            match seen {
                _ if self.interrupted => {}
                Ok(true) => {
                    self.small_has_left(wanted.size());
                    self.done(wanted.item.local, true);
                }
                Ok(false) if self.small.way == Way::Open => {
                    self.small.ready_octets += wanted.size();
                    self.small.ready[base as usize].push_back(wanted);
                }
                Ok(false) => self.fetch_alone(wanted),
                Err(error) => {
                    self.small_has_left(wanted.size());
                    let doing = "making the file";
                    let trouble = Trouble::Local { doing, error };
                    self.failed(wanted.item.remote, trouble);
                }
            }
        }
    }

    /// It goes over SFTP.
    pub(super) fn fetch_alone(&mut self, wanted: Wanted) {
        self.small.leave(wanted.size());
        self.queue.push_back(wanted.item);
    }

    /// It is not to be fetched any more.
    pub(super) fn small_has_left(&mut self, octets: u64) {
        self.left = self.left.saturating_sub(octets);
        self.small.leave(octets);
    }

    fn greet_streams(&mut self) {
        let [home, root] = &self.small.ready;
        let base = match home.len() > root.len() {
            true => Base::Home,
            false => Base::Root,
        };
        let streams = self.small.streams.iter_mut();
        for stream in streams.filter(|it| it.stage == Stage::Opening) {
            stream.greet(base);
        }
    }

    /// The host is ready: a batch is what there is by now.
    pub(super) fn fill_batch(&mut self, stream: usize) {
        let small = &mut self.small;
        // Those that are about to begin get their share.
        let share = small.ready_octets / small.beginning().max(1) as u64 + 1;
        let stream = &mut small.streams[stream];
        let ready = &mut small.ready[stream.base as usize];
        let (mut files, mut octets) = (Vec::new(), 0);
        while octets < share.min(BATCH_OCTETS)
            && files.len() < BATCH_FILES
            && let Some(wanted) = ready.pop_front()
        {
            octets += wanted.size();
            files.push(wanted);
        }
        small.ready_octets -= octets;
        stream.ask(files);
    }

    /// So few that a session would not be worth it go by themselves.
    fn leave_few(&mut self) {
        let small = &self.small;
        let has_none = !small.has_worked && small.streams.iter().all(|it| it.stage == Stage::Over);
        if has_none && small.ready() < small.fewest && self.is_all_looked_for() {
            self.stop_asking(None);
        }
    }

    /// No more batches: what has not joined one goes over SFTP.
    pub(super) fn stop_asking(&mut self, why: Option<&'static str>) {
        let small = &mut self.small;
        small.way = Way::Closed;
        let found = small.found.drain(..).map(|(_, wanted)| wanted);
        let mut rest: Vec<Wanted> = found.collect();
        rest.extend(small.ready.iter_mut().flat_map(|ready| ready.drain(..)));
        small.ready_octets = 0;
        for stream in &mut small.streams {
            if matches!(stream.stage, Stage::Opening | Stage::Greeted) {
                stream.stage = Stage::Over;
                stream.cut();
            }
        }
        rest.into_iter().for_each(|wanted| self.fetch_alone(wanted));
        if why.is_some() {
            self.tally.why_no_batches = why;
        }
    }

    /// Looks again at files that have come.
    fn check_small(&mut self) {
        while self.channels[0].client.pending() < REQUESTS
            && let Some(wanted) = self.small.to_check.pop_front()
        {
            let id = self.id();
            let path = wanted.item.remote.clone();
            self.small.checking.insert(id, wanted);
            self.ask(Request::Lstat { path: &path }, Asked::Small { id });
        }
    }

    /// The answer to [`poll_small`](Self::poll_small).
    pub fn provide_small(&mut self, fetched: FetchedSmall) {
        match fetched {
            FetchedSmall::Seen { id, seen } => self.handle_seen(id, seen),
            FetchedSmall::Stored(stored) => {
                for (number, stored) in stored {
                    self.handle_stored(number, stored);
                }
            }
            FetchedSmall::Placed(placed) => {
                for (id, placed) in placed {
                    self.handle_placed(id, placed);
                }
            }
            FetchedSmall::Cleared(ids) => {
                let items = ids.iter().filter_map(|id| self.small.clearing.remove(id));
                let items: Vec<_> = items.collect();
                if !self.interrupted {
                    self.queue.extend(items);
                }
            }
        }
        self.advance();
    }
}
