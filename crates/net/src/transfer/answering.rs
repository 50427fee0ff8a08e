//! What an engine makes of jobs that have ended, and what is left to do when all is over.

use sshoal_transfer::{Begun, Fetched, Opened};

use super::disk::Jobs;
use super::engine::{Answer, Engine, Into};
use super::performing::PANICKED;
use super::writing::Writing;

impl Engine {
    /// Brings the folders that something was put into to the disk, gives those their modes back that had others, and removes the
    /// journal if nothing is half done; `false` if there is none of that to do.
    pub(super) fn finish(&mut self, jobs: &Jobs<Answer>, is_cut: bool) -> bool {
        let (changed, keeper) = match self {
            Engine::Put { keeper, .. } => (None, keeper.take()),
            Engine::Get {
                into: Into::Folder {
                    folder, changed, ..
                },
                ..
            } => {
                let changed = std::mem::take(changed);
                let keeper = folder.keeper();
                let has_changed = !changed.is_empty() || !folder.lent().is_empty();
                (has_changed.then(|| (folder.clone(), changed)), keeper)
            }
            Engine::Get { .. } => (None, None),
        };
        let keeper = keeper.filter(|_| !is_cut);
        if changed.is_none() && keeper.is_none() {
            return false;
        }
        jobs.perform(Answer::Synced(Err(PANICKED.to_owned())), move || {
            let settled = changed.map_or(Ok(()), |(folder, changed)| {
                let synced = changed.sync(&folder);
                synced.and(folder.lent().give_back())
            });
            let removed = keeper.map_or(Ok(()), |keeper| keeper.remove());
            Answer::Synced(settled.and(removed).map_err(|error| error.to_string()))
        });
        true
    }

    /// A job has ended. Returns an error that concerns the host's folder as a whole.
    pub(super) fn handle_answer(&mut self, answer: Answer) -> Result<(), String> {
        match (self, answer) {
            (_, Answer::Synced(synced)) => return synced,
            (Engine::Put { upload, open, .. }, answer) => match answer {
                Answer::Opened(entry, opened) => {
                    let opened = opened.map(|(file, proven)| {
                        let opened = Opened {
                            proven,
                            ..file.opened.clone()
                        };
                        open.insert(entry, file);
                        opened
                    });
                    upload.provide_opened(entry, opened);
                }
                Answer::Data(need, data) => upload.provide_data(need, data),
                Answer::Small(group, files) => upload.provide_small(&group, files),
                Answer::Checked(entry, checked) => {
                    open.remove(&entry);
                    let hash = checked.as_ref().ok().and_then(|(_, hash)| *hash);
                    upload.provide_checked(entry, checked.map(|(is_same, _)| is_same), hash);
                }
                Answer::Hashed(entry, hash) => upload.provide_hash(entry, hash),
                Answer::Forgotten(entry, forgotten) => upload.provide_forgotten(entry, forgotten),
                _ => {}
            },
            (Engine::Get { download, into }, answer) => match answer {
                Answer::Begun(file, begun) => {
                    let begun = begun.map(|part| match (part, into) {
                        (Some(part), Into::Folder { parts, .. }) => {
                            let proven = part.proven();
                            parts.insert(file, Writing::new(part));
                            Begun::Ready(proven)
                        }
                        _ => Begun::Unchanged,
                    });
                    download.provide(Fetched::Begun { file, begun });
                }
                Answer::Fetched(fetched) => {
                    if let (Fetched::Finished { file, .. }, Into::Folder { parts, .. }) =
                        (&fetched, into)
                    {
                        parts.remove(file);
                    }
                    download.provide(fetched);
                }
                Answer::FetchedSmall(fetched) => download.provide_small(fetched),
                Answer::Written(file, written) => {
                    if let Into::Folder { parts, .. } = into
                        && let Some(writing) = parts.get_mut(&file)
                    {
                        writing.done();
                    }
                    for fetched in written {
                        download.provide(fetched);
                    }
                }
                _ => {}
            },
        }
        Ok(())
    }
}
