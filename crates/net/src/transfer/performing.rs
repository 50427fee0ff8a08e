//! What an engine needs of this machine, done as jobs.

use std::collections::HashMap;
use std::sync::Arc;

use sshoal_transfer::sftp::SharedOctets;
use sshoal_transfer::{
    AccountKind, DownloadNeed, Fetched, LocalFile, SmallGroup, SmallProblem, UploadNeed,
};

use super::accounts::Accounts;
use super::blocks::Block;
use super::changed::Changed;
use super::disk::Jobs;
use super::engine::Answer;
use super::folder::{Folder, Kept};
use super::keeper::Keeper;
use super::source::{OpenFile, Source};
use super::surplus;
use super::writing::{Piece, Writing};

/// What is told of a job that has panicked.
pub(super) const PANICKED: &str = "a defect of sshoal: the job has panicked";

/// What is told of a file that nobody wants any more.
fn closed() -> String {
    "it is closed".to_owned()
}

/// A journal, and what a file is called in it.
pub(super) struct Noted<'a> {
    pub(super) keeper: &'a Option<Arc<Keeper>>,
    pub(super) key: Vec<u8>,
}

pub(super) fn perform_upload(
    need: UploadNeed,
    source: &Arc<Source>,
    open: &mut HashMap<usize, Arc<OpenFile>>,
    noted: Noted<'_>,
    jobs: &Jobs<Answer>,
) {
    let panicked = || PANICKED.to_owned();
    let text = |error: std::io::Error| error.to_string();
    let (keeper, key) = (noted.keeper.clone(), noted.key);
    match need {
        UploadNeed::Open { entry } => {
            let source = source.clone();
            jobs.perform(Answer::Opened(entry, Err(panicked())), move || {
                let opened = source.open(entry).and_then(|file| {
                    let proven = match (keeper, file.opened.size) {
                        (Some(keeper), Some(size)) if !file.is_device => {
                            keeper.begin(&key, &file.identity, size).map_err(text)?
                        }
                        _ => None,
                    };
                    Ok((file, proven))
                });
                Answer::Opened(entry, opened)
            });
        }
        UploadNeed::Forget { entry } => {
            jobs.perform(Answer::Forgotten(entry, Err(panicked())), move || {
                let forgotten = keeper.map_or(Ok(()), |keeper| keeper.forget(&key));
                Answer::Forgotten(entry, forgotten.map_err(text))
            });
        }
        UploadNeed::Read {
            entry, offset, len, ..
        } => {
            let Some(file) = open.get(&entry).cloned() else {
                jobs.answer(Answer::Data(need, Err(closed())));
                return;
            };
            let source = source.clone();
            let answer = move |data: Result<Arc<Block>, String>| {
                Answer::Data(need, data.map(|block| block as SharedOctets))
            };
            let panicked = answer(Err(panicked()));
            let Some(arrival) = file.arrival(offset, len) else {
                jobs.perform(panicked, move || answer(source.read(&file, offset, len)));
                return;
            };
            // Closed, it is waited for no longer.
            let file = Arc::downgrade(&file);
            jobs.perform_after(arrival, panicked, move || {
                let file = file.upgrade().ok_or_else(closed);
                answer(file.and_then(|file| source.read(&file, offset, len)))
            });
        }
        UploadNeed::Check { entry, hashes } => {
            let Some(file) = open.get(&entry).cloned() else {
                return;
            };
            let answer = move |checked| Answer::Checked(entry, checked);
            let stop = jobs.stop();
            jobs.perform(answer(Err(panicked())), move || {
                let hash = hashes.then(|| file.hash(&stop)).transpose();
                answer(hash.and_then(|hash| Ok((file.is_same()?, hash))))
            });
        }
        UploadNeed::Hash { entry } => {
            let (source, stop) = (source.clone(), jobs.stop());
            jobs.perform(Answer::Hashed(entry, Err(panicked())), move || {
                Answer::Hashed(entry, source.hash(entry, &stop))
            });
        }
        UploadNeed::Release { entry } => drop(open.remove(&entry)),
    }
}

/// What is to be read, if nothing has to be waited for.
pub(super) fn read_at_once(
    need: &UploadNeed,
    source: &Arc<Source>,
    open: &HashMap<usize, Arc<OpenFile>>,
) -> Option<SharedOctets> {
    let &UploadNeed::Read {
        entry, offset, len, ..
    } = need
    else {
        return None;
    };
    let block = source.read_at_once(open.get(&entry)?, offset, len)?;
    Some(block)
}

pub(super) fn read_small(group: SmallGroup, source: &Arc<Source>, jobs: &Jobs<Answer>) {
    let failed = group.entries.iter();
    let failed = failed.map(|_| Err(SmallProblem::Failed(PANICKED.to_owned())));
    let panicked = Answer::Small(group.clone(), failed.collect());
    let source = source.clone();
    jobs.perform(panicked, move || {
        let entries = group.entries.iter();
        let files = entries.map(|&entry| source.read_small(entry)).collect();
        Answer::Small(group, files)
    });
}

/// Has this machine's numbers of accounts looked for.
fn find_accounts(
    users: Vec<Vec<u8>>,
    groups: Vec<Vec<u8>>,
    accounts: &Arc<Accounts>,
    jobs: &Jobs<Answer>,
) {
    let answer = |users, groups| Answer::Fetched(Fetched::Accounts { users, groups });
    // What is not known is kept by number.
    let panicked = answer(vec![None; users.len()], vec![None; groups.len()]);
    let accounts = accounts.clone();
    jobs.perform(panicked, move || {
        answer(
            accounts.numbers(AccountKind::User, &users),
            accounts.numbers(AccountKind::Group, &groups),
        )
    });
}

/// Remembers where something is put.
pub(super) fn note(
    need: &DownloadNeed,
    changed: &mut Changed,
    paths: &mut HashMap<LocalFile, Vec<u8>>,
) {
    let above = |path: &[u8]| {
        let slash = path.iter().rposition(|&octet| octet == b'/');
        path[..slash.unwrap_or(0)].to_vec()
    };
    match need {
        DownloadNeed::Begin { file, path, .. } => drop(paths.insert(*file, above(path))),
        DownloadNeed::Finish { file, .. } => {
            paths
                .remove(file)
                .into_iter()
                .for_each(|path| changed.insert(path));
        }
        DownloadNeed::Link { path, .. } => changed.insert(above(path)),
        DownloadNeed::FinishFolder { path, .. } => changed.remove(path),
        DownloadNeed::Discard { file } => drop(paths.remove(file)),
        _ => {}
    }
}

/// Has done what is needed; returns the answer if it is known at once.
pub(super) fn perform_download(
    need: DownloadNeed,
    folder: &Folder,
    parts: &mut HashMap<LocalFile, Writing>,
    accounts: &Arc<Accounts>,
    jobs: &Jobs<Answer>,
) -> Option<Fetched> {
    let folder = folder.clone();
    let panicked = || PANICKED.to_owned();
    match need {
        DownloadNeed::Folder { id, path } => {
            let answer = move |made| Answer::Fetched(Fetched::Folder { id, made });
            jobs.perform(answer(Err(panicked())), move || {
                answer(folder.make(&path).map_err(|it| folder.told(&path, &it)))
            });
        }
        DownloadNeed::Accounts { users, groups } => find_accounts(users, groups, accounts, jobs),
        DownloadNeed::Compare { file, path, size } => {
            let answer = move |hash| Answer::Fetched(Fetched::Compared { file, hash });
            let stop = jobs.stop();
            jobs.perform(answer(Err(panicked())), move || {
                let hash = folder.hash(&path, size, &stop);
                answer(hash.map_err(|it| folder.told(&path, &it)))
            });
        }
        DownloadNeed::Touch {
            file,
            path,
            owner,
            mode,
            times,
        } => {
            let kept = Kept { owner, mode, times };
            let answer = move |touched| Answer::Fetched(Fetched::Touched { file, touched });
            jobs.perform(answer(Err(panicked())), move || {
                let touched = folder.touch(&path, kept);
                answer(touched.map_err(|it| folder.told(&path, &it)))
            });
        }
        DownloadNeed::Hash { file, size } => {
            let answer = move |hash| Answer::Fetched(Fetched::Hashed { file, hash });
            let Some(part) = parts.get(&file).map(|it| it.part.clone()) else {
                jobs.answer(answer(Err(closed())));
                return None;
            };
            let stop = jobs.stop();
            jobs.perform(answer(Err(panicked())), move || {
                answer(part.hash(size, &stop).map_err(|it| part.told(&it)))
            });
        }
        DownloadNeed::Begin {
            file,
            path,
            like,
            trusts_time,
            mode,
            owner,
            keeps,
            ..
        } => {
            jobs.perform(Answer::Begun(file, Err(panicked())), move || {
                let begun = folder.begin(&path, like, trusts_time, mode);
                let begun = begun.and_then(|part| match part {
                    // What is there is unchanged.
                    None => folder.adjust(&path, owner, keeps).map(|()| None),
                    part => Ok(part),
                });
                let begun = begun.map_err(|it| folder.told(&path, &it));
                Answer::Begun(file, begun.map(|part| part.map(Arc::new)))
            });
        }
        DownloadNeed::Write {
            file,
            channel,
            offset,
            data,
        } => {
            let piece = Piece {
                channel,
                offset,
                data,
            };
            match parts.get_mut(&file) {
                Some(writing) => match writing.write_at_once(file, piece, jobs) {
                    Ok(written) => return Some(written),
                    Err(piece) => writing.push(piece),
                },
                None => jobs.answer(piece.closed(file)),
            }
        }
        DownloadNeed::Finish {
            file,
            size,
            owner,
            mode,
            times,
        } => {
            let kept = Kept { owner, mode, times };
            let answer = move |finished| Answer::Fetched(Fetched::Finished { file, finished });
            let Some(part) = parts.get(&file).map(|it| it.part.clone()) else {
                jobs.answer(answer(Err(closed())));
                return None;
            };
            jobs.perform(answer(Err(panicked())), move || {
                let finished = part.finish(size, kept);
                if finished.is_err() {
                    part.discard();
                }
                answer(finished.map_err(|it| part.told(&it)))
            });
        }
        DownloadNeed::Discard { file } => {
            if let Some(writing) = parts.remove(&file) {
                let part = writing.close(file, jobs);
                jobs.perform(Answer::Discarded, move || {
                    part.discard();
                    Answer::Discarded
                });
            }
        }
        DownloadNeed::Link {
            path,
            target,
            owner,
        } => {
            let panicked = Answer::Fetched(Fetched::Linked {
                path: path.clone(),
                linked: Err(panicked()),
            });
            jobs.perform(panicked, move || {
                let linked = folder.link(&path, &target, owner);
                let linked = linked.map_err(|it| folder.told(&path, &it));
                Answer::Fetched(Fetched::Linked { path, linked })
            });
        }
        DownloadNeed::Delete { surplus } => {
            let panicked = Answer::Fetched(Fetched::Deleted {
                deleted: Vec::new(),
                failed: vec![panicked()],
            });
            let stop = jobs.stop();
            jobs.perform(panicked, move || {
                Answer::Fetched(surplus::delete(&folder, &surplus, &stop))
            });
        }
        DownloadNeed::FinishFolder {
            path,
            owner,
            mode,
            times,
        } => {
            let kept = Kept { owner, mode, times };
            let panicked = Answer::Fetched(Fetched::FolderFinished {
                path: path.clone(),
                finished: Err(panicked()),
            });
            jobs.perform(panicked, move || {
                let finished = folder.finish_folder(&path, kept);
                let finished = finished.map_err(|it| folder.told(&path, &it));
                Answer::Fetched(Fetched::FolderFinished { path, finished })
            });
        }
    }
    None
}
