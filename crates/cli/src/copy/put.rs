//! `sshoal put`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sshoal_net::{HostPlan, Put, Scan, Source, TransferPlan, Way, scan};
use sshoal_transfer::{
    Deletion, Entry, Excludes, Kind, LeftOut, Surplus, UploadPlan, UploadRoot, Verify,
};

use super::args::{Congestion, CopyArgs, PutArgs};
use super::part_tag::PartTags;
use super::{CopyError, Ready, check_standard_input, counted, owners};
use crate::rolling;
use crate::say::say;

/// What to type.
const EXAMPLE: &str = "sshoal put -w 'web[1-40]' motd /etc/motd";

/// Copies to the hosts; returns the exit status.
pub(crate) fn put(args: &PutArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let since = Instant::now();
    let options = &args.options;
    let missing = |missing| CopyError::Missing {
        missing,
        example: EXAMPLE,
    };
    let Some((target, sources)) = args.paths.split_last() else {
        return Err(missing("nothing to send was given, and no target").into());
    };
    if sources.is_empty() {
        return Err(missing("what to send and where to are both needed").into());
    }
    if target.as_os_str().is_empty() {
        return Err(missing("the target is empty").into());
    }
    let is_input = |path: &PathBuf| path.as_path() == Path::new("-");
    let from_input = sources.iter().any(is_input);
    if from_input {
        check_standard_input(options)?;
        if sources.len() > 1 || target.as_os_str().as_bytes().ends_with(b"/") {
            return Err(CopyError::StandardInputAlone.into());
        }
        if options.owner {
            return Err(CopyError::OwnerOfInput.into());
        }
    }
    let congestion = args.congestion.control()?;
    let batched = rolling::targets(&options.hosts, &options.rolling)?;
    let targets = &batched.targets;
    let found = match from_input {
        true => standard_input(),
        false => scan(sources, options.recursive, &excludes(options))?,
    };
    for LeftOut { path, trouble } in &found.left_out {
        let path = String::from_utf8_lossy(path);
        say(format!("{path}: {trouble}; it is left out"));
    }
    check_deletion(options, &found, target)?;
    // A connection that others share has the kernel's default.
    let wants_own = matches!(args.congestion, Congestion::Named(_));
    let ready = Ready::new(options, &batched, wants_own, since)?;
    let mut what = description(&found, target);
    what.extend_from_slice(owners::description(options).as_bytes());
    if let Some(status) = ready.dry_run(|_| what.clone()) {
        return Ok(status);
    }
    let (block, ahead) = TransferPlan::reading(targets.len());
    let tags = PartTags::of(&args.paths);
    let (owners, names) = owners::of_put(options, &found);
    let Scan {
        roots,
        entries,
        paths,
        left_out,
    } = found;
    let only_told = match options.deletion() {
        Deletion::None => None,
        deletion => Some(deletion == Deletion::Told),
    };
    let surplus = only_told
        .map(|only_told| Surplus::new(&roots, &entries, excludes(options), only_told))
        .map(Arc::new);
    let upload = UploadPlan {
        target: target.as_os_str().as_bytes().to_vec(),
        roots,
        entries,
        left_out,
        preserve: options.preserve,
        owners,
        names,
        method: options.method.into(),
        hashing: options.hashing(),
        surplus,
        writes_devices: options.yes,
        tag: tags.tag(),
        block,
        ahead,
    };
    let source = match from_input {
        true => Source::standard_input(targets.len()).map_err(CopyError::Unreadable)?,
        false => Source::files(paths, targets.len()),
    };
    let source = source.hashing(options.hashing().verifies != Verify::Never);
    let way = Way::Put(Put {
        upload: Arc::new(upload),
        source: Arc::new(source),
        // The same path is another file's for another account, or another host of this name.
        journals: tags.journals(ready.plans.iter().map(HostPlan::account)),
        congestion,
    });
    ready.carry_out(way, false)
}

/// `--delete`: of files there is nothing beside that could be surplus, and whoever empties a host did not mean it.
fn check_deletion(args: &CopyArgs, found: &Scan, target: &Path) -> Result<(), CopyError> {
    if !args.delete {
        return Ok(());
    }
    let mut folders = found.roots.iter().filter(|root| root.is_folder);
    let is_root = target
        .components()
        .all(|part| !matches!(part, Component::Normal(_)));
    let is_all = target.has_root() && is_root;
    match folders.clone().next() {
        None => Err(CopyError::DeleteWithoutFolder),
        Some(_) if is_all && folders.any(|root| root.name.is_empty()) => Err(CopyError::DeleteAll),
        Some(_) => Ok(()),
    }
}

/// `--exclude`.
pub(super) fn excludes(args: &CopyArgs) -> Excludes {
    let patterns = args.exclude.iter();
    Excludes::new(patterns.map(|pattern| pattern.as_bytes().to_vec()))
}

fn standard_input() -> Scan {
    Scan {
        roots: vec![UploadRoot {
            name: Vec::new(),
            is_folder: false,
        }],
        entries: vec![Entry {
            root: 0,
            path: Vec::new(),
            folder: None,
            kind: Kind::Stream,
            mode: 0o666,
            // It is never kept.
            owner: (0, 0),
            times: (0, 0),
        }],
        paths: vec![PathBuf::from("-")],
        left_out: Vec::new(),
    }
}

/// What `--dry-run` says.
fn description(found: &Scan, target: &Path) -> Vec<u8> {
    let count = |is_one: fn(&Kind) -> bool| {
        let entries = found.entries.iter();
        entries.filter(|entry| is_one(&entry.kind)).count()
    };
    let mut parts = Vec::new();
    for (count, what) in [
        (count(|kind| matches!(kind, Kind::File { .. })), "file"),
        (
            count(|kind| matches!(kind, Kind::Device { .. })),
            "block device",
        ),
        (count(|kind| matches!(kind, Kind::Folder)), "folder"),
        (
            count(|kind| matches!(kind, Kind::Link { .. } | Kind::HardLink { .. })),
            "link",
        ),
    ] {
        if count > 0 {
            parts.push(counted(count, what));
        }
    }
    if count(|kind| matches!(kind, Kind::Stream)) > 0 {
        parts.push("standard input".to_owned());
    }
    let octets: u64 = found.entries.iter().map(Entry::size).sum();
    let what = format!("put {} ({octets} octets) to ", parts.join(", "));
    [what.as_bytes(), target.as_os_str().as_bytes()].concat()
}
