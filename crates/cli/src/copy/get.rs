//! `sshoal get`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use sshoal_net::{Accounts, Get, GetTarget, PartNames, TransferPlan, Way, check_standard_output};
use sshoal_report::file_names;
use sshoal_transfer::{DownloadPlan, Hashing, Verify};

use super::args::{CopyArgs, GetArgs};
use super::part_tag::PartTags;
use super::put::excludes;
use super::{CopyError, Ready, counted, owners};
use crate::rolling;

/// What to type.
const EXAMPLE: &str = "sshoal get -w 'web[1-40]' /etc/hosts fetched";

/// Copies from the hosts; returns the exit status.
pub(crate) fn get(args: &GetArgs) -> Result<u8, Box<dyn std::error::Error>> {
    let since = Instant::now();
    let options = &args.options;
    let missing = |missing| CopyError::Missing {
        missing,
        example: EXAMPLE,
    };
    let Some((folder, sources)) = args.paths.split_last() else {
        return Err(missing("nothing to fetch was given, and no folder for it").into());
    };
    if sources.is_empty() {
        return Err(missing("what to fetch and a folder for it are both needed").into());
    }
    let folder = PathBuf::from(folder);
    let to_output = folder == Path::new("-");
    if to_output && options.recursive {
        return Err(CopyError::FoldersToOutput.into());
    }
    if to_output {
        check_standard_output().map_err(CopyError::Unwritable)?;
    }
    let to_device = folder
        .metadata()
        .is_ok_and(|it| it.file_type().is_block_device());
    let hashing = match options.hashing() {
        hashing if !to_output && !to_device => hashing,
        // What is printed is in nobody's place: there is nothing to compare with, and nothing to take back.
        hashing if hashing.compares || hashing.verifies == Verify::Always => {
            return Err(match to_device {
                true => CopyError::HashesOfDevice,
                false => CopyError::HashesOfOutput,
            }
            .into());
        }
        _ => Hashing::default(),
    };
    if owners::are_set(options) && (to_output || to_device) {
        return Err(match to_device {
            true => CopyError::OwnersOfDevice,
            false => CopyError::OwnersOfOutput,
        }
        .into());
    }
    if !to_output && !to_device && folder.exists() && !folder.is_dir() {
        return Err(CopyError::NoFolder(folder).into());
    }
    let is_for_devices = folder.starts_with("/dev") && !folder.starts_with("/dev/shm");
    if is_for_devices && !to_output && !folder.exists() && !options.dry_run {
        return Err(CopyError::NoDevice(folder).into());
    }
    let batched = rolling::targets(&options.hosts, &options.rolling)?;
    let targets = &batched.targets;
    if to_device {
        check_device(options, &folder, sources.len(), targets.len())?;
    }
    let ready = Ready::new(options, &batched, false, since)?;
    let labels: Vec<String> = ready.hosts.iter().map(|host| host.label.clone()).collect();
    let folders: Vec<PathBuf> = file_names(&labels)
        .iter()
        .map(|name| folder.join(name))
        .collect();
    let shown = ready.dry_run(|host| {
        let into = match to_output || to_device {
            true => &folder,
            false => &folders[host],
        };
        let owners = owners::description(options).into_bytes();
        [description(sources, into), owners].concat()
    });
    if let Some(status) = shown {
        return Ok(status);
    }
    let accounts = Accounts::default();
    let (owners, rights) = owners::of_get(options, &accounts)?;
    let download = DownloadPlan {
        sources: sources
            .iter()
            .map(|source| source.as_bytes().to_vec())
            .collect(),
        recursive: options.recursive,
        preserve: options.preserve,
        owners,
        rights,
        excludes: excludes(options),
        hashing,
        deletion: options.deletion(),
        in_order: to_output,
        method: options.method.into(),
        in_flight: TransferPlan::in_flight(targets.len()),
    };
    let tags = PartTags::of(&args.paths);
    let target = match to_output {
        _ if to_device => GetTarget::Device(folder),
        true => GetTarget::Output,
        false => GetTarget::Folders {
            hosts: folders,
            parts: PartNames(tags.tag()),
            // As the folders, in which the parts are.
            journals: tags.journals(&labels),
        },
    };
    let way = Way::Get(Get {
        download: Arc::new(download),
        target,
        accounts: Arc::new(accounts),
    });
    // One host's files are theirs to the last octet; those of several have names before their lines.
    ready.carry_out(way, to_output && targets.len() == 1 && !options.shown.json)
}

/// A device has room for one file's contents, and loses what it holds.
fn check_device(
    options: &CopyArgs,
    device: &Path,
    sources: usize,
    hosts: usize,
) -> Result<(), CopyError> {
    if sources != 1 || hosts != 1 || options.recursive {
        return Err(CopyError::DeviceForOne(device.to_owned()));
    }
    match options.yes || options.dry_run {
        true => Ok(()),
        false => Err(CopyError::DeviceNotConfirmed(device.to_owned())),
    }
}

/// What `--dry-run` says.
fn description(sources: &[OsString], folder: &Path) -> Vec<u8> {
    let names: Vec<&[u8]> = sources.iter().map(|source| source.as_bytes()).collect();
    let count = format!("get {}, ", counted(sources.len(), "path"));
    let names = names.join(&b' ');
    let into = [b" into ", folder.as_os_str().as_bytes()].concat();
    [count.as_bytes(), &names, &into].concat()
}
