//! Gathered output: hosts that said the same are shown once, under their folded names.
//!
//! A host's output is kept until the host ends, then joins a group: found by length and hash, settled by
//! comparing. Only one copy of equal outputs stays, so memory and disk go with what differs.

use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::RandomState,
    io::{self, Write as _},
};

use sshoal_targets::natural_cmp;

use crate::{
    capture::Capture,
    console::{Console, Stream},
    kept::Kept,
    sanitise::visible,
    spill::Spill,
    summary::named,
};

/// Above and below the names, as clush draws it.
const RULE: &[u8] = b"---------------\n";

/// What one group of hosts said on one stream.
pub(crate) struct Group {
    pub(crate) content: Capture,
    /// Positions of the hosts in the run.
    pub(crate) hosts: Vec<usize>,
}

impl Group {
    /// The hosts' folded names and, for more than one, their number: `web[1-40,42] (41)`.
    pub(crate) fn name(&self, labels: &[String]) -> String {
        let names: Vec<&String> = self.hosts.iter().map(|host| &labels[*host]).collect();
        named(&names)
    }
}

/// The outputs of all hosts that have ended, on one stream, equal ones together.
#[derive(Default)]
struct Groups {
    groups: Vec<Group>,
    /// Positions in `groups` by length and hash. More than one only if hashes collide.
    index: HashMap<(u64, u64), Vec<usize>>,
    hash_state: RandomState,
}

impl Groups {
    fn add(&mut self, host: usize, mut content: Capture, spill: &mut Spill) -> io::Result<()> {
        let key = (content.len(), content.hash(spill, &self.hash_state)?);
        let candidates = self.index.entry(key).or_default();
        for candidate in candidates.iter() {
            let group = &mut self.groups[*candidate];
            if group.content.same_as(&content, spill)? {
                group.hosts.push(host);
                return content.clear(spill);
            }
        }
        candidates.push(self.groups.len());
        self.groups.push(Group {
            content,
            hosts: vec![host],
        });
        Ok(())
    }

    /// The largest group first; equal ones by their first host's name.
    fn sorted(self, labels: &[String]) -> Vec<Group> {
        let mut groups = self.groups;
        for group in &mut groups {
            group
                .hosts
                .sort_unstable_by(|a, b| natural_cmp(&labels[*a], &labels[*b]));
        }
        groups.sort_by(|a, b| {
            let by_size = Reverse(a.hosts.len()).cmp(&Reverse(b.hosts.len()));
            by_size.then_with(|| natural_cmp(&labels[a.hosts[0]], &labels[b.hosts[0]]))
        });
        groups
    }
}

/// All output of a run, to be shown at its end.
pub(crate) struct Gathered {
    running: Vec<[Kept; 2]>,
    groups: [Groups; 2],
    /// Whether a host without any standard output counts as one that said nothing, as a comparison needs.
    keep_silent: bool,
}

impl Gathered {
    pub(crate) fn new(hosts: usize, keep_silent: bool) -> Gathered {
        let running = (0..hosts).map(|_| Default::default()).collect();
        Gathered {
            running,
            groups: Default::default(),
            keep_silent,
        }
    }

    pub(crate) fn push(
        &mut self,
        host: usize,
        stream: Stream,
        bytes: &[u8],
        spill: &mut Spill,
    ) -> io::Result<()> {
        self.running[host][stream as usize].push(bytes, spill)
    }

    /// The host has ended; `ran` tells whether its command did.
    pub(crate) fn end(&mut self, host: usize, ran: bool, spill: &mut Spill) -> io::Result<()> {
        for (index, kept) in std::mem::take(&mut self.running[host])
            .into_iter()
            .enumerate()
        {
            let compared = ran && self.keep_silent && index == Stream::Stdout as usize;
            if !kept.is_empty() || compared {
                self.groups[index].add(host, kept.into_lines(spill)?, spill)?;
            }
        }
        Ok(())
    }

    /// Ends what is still running and returns the groups of a stream, the most common output first.
    pub(crate) fn take(
        &mut self,
        stream: Stream,
        labels: &[String],
        spill: &mut Spill,
    ) -> io::Result<Vec<Group>> {
        for host in 0..self.running.len() {
            self.end(host, false, spill)?;
        }
        Ok(std::mem::take(&mut self.groups[stream as usize]).sorted(labels))
    }
}

/// Writes groups under their names, in the form of `dshbak -c` and `clush -b`.
pub(crate) fn write_groups(
    groups: Vec<Group>,
    labels: &[String],
    stream: Stream,
    console: &mut Console,
    spill: &mut Spill,
) -> io::Result<()> {
    let terminal = console.is_terminal(stream);
    let mut out = console.writer(stream);
    for mut group in groups {
        out.write_all(RULE)?;
        let name = group.name(labels);
        let name = if terminal { visible(&name) } else { name };
        out.write_all(name.as_bytes())?;
        out.write_all(b"\n")?;
        out.write_all(RULE)?;
        if terminal {
            group.content.write_visible(spill, &mut out)?;
        } else {
            io::copy(&mut group.content.reader(spill), &mut out)?;
        }
        group.content.clear(spill)?;
    }
    Ok(())
}
