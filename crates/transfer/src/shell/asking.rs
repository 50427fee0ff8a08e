//! What is asked of the host: a call of a function of `host.sh` for each request, or for several that follow each other.

use std::collections::VecDeque;

use sshoal_wire::Put;

use super::replies::{FAILURE, OK, OP_UNSUPPORTED};
use super::requests::Wanted;
use super::words::{BLOCK, Call};
use super::{Asked, PATHS, ShellServer, TOGETHER, answers};
use crate::sftp::Attributes;

impl ShellServer {
    /// Asks the host for something, or answers at once what needs no host.
    pub(super) fn begin(&mut self, id: u32, wanted: Wanted) {
        let asked = match self.ask(id, wanted) {
            Ok(asked) => asked,
            Err(code) => return self.replies.status(id, code, ""),
        };
        if let Some(asked) = asked {
            self.moving += usize::from(asked.moves());
            self.answers.expect(match &asked {
                Asked::Looked(ids) => answers::Expected::Lines(ids.len()),
                Asked::Listed(..) => answers::Expected::Names,
                Asked::Read { .. } => answers::Expected::Contents,
                Asked::Written { .. } => answers::Expected::Written,
                Asked::Path(_) => answers::Expected::Path,
                _ => answers::Expected::Lines(1),
            });
            self.asked.push_back(asked);
        }
    }

    /// Has the host do something; `None` if that needs no host. An error is a status' code.
    fn ask(&mut self, id: u32, wanted: Wanted) -> Result<Option<Asked>, u32> {
        let mut call = Call::new(&self.word, &mut self.out);
        Ok(Some(match wanted {
            Wanted::Look { follow, path } => {
                let mut ids = VecDeque::from([id]);
                let mut paths = vec![path];
                while let Some((id, path)) = self.requests.pop_look(follow, paths.len() < PATHS) {
                    ids.push_back(id);
                    paths.push(path);
                }
                call.name("st").raw(if follow { "-L" } else { "''" });
                for path in &paths {
                    call.path(path);
                }
                call.end();
                Asked::Looked(ids)
            }
            Wanted::LookOpen(handle) => {
                let (path, identity) = self.handles.opened(handle).ok_or(FAILURE)?;
                call.of(identity, "lo").path(path);
                call.end();
                Asked::Looked(VecDeque::from([id]))
            }
            Wanted::OpenRead(path) => {
                call.name("rd").path(&path);
                call.end();
                Asked::Opened(id, path)
            }
            Wanted::OpenWrite(path) => {
                call.name("wr").path(&path);
                call.end();
                Asked::Opened(id, path)
            }
            Wanted::OpenNew(path, mode) => {
                call.name("nw").path(&path).mode(mode & !self.umask);
                call.end();
                Asked::Opened(id, path)
            }
            Wanted::OpenFolder(path) => {
                call.name("li").path(&path);
                call.end();
                Asked::Listed(id, path, None)
            }
            Wanted::Names(handle) => {
                let listing = self.handles.listing(handle).ok_or(FAILURE)?;
                listing.asked.push_back(id);
                self.tell_names(handle);
                return Ok(None);
            }
            Wanted::Close(handle) => {
                let code = if self.handles.close(handle) {
                    OK
                } else {
                    FAILURE
                };
                return Err(code);
            }
            Wanted::Limits => {
                self.replies.limits(id);
                return Ok(None);
            }
            Wanted::Read {
                handle,
                offset,
                len,
            } => {
                let (path, identity) = self.handles.file(handle).ok_or(FAILURE)?;
                let mut parts = vec![(id, len)];
                let mut all = u64::from(len);
                while all < TOGETHER
                    && let Some(part) = self.requests.pop_read(handle, offset + all)
                {
                    all += u64::from(part.1);
                    parts.push(part);
                }
                call.name("ge").path(path).raw(identity).number(offset);
                call.number(all / BLOCK).number(all % BLOCK);
                call.number(all);
                call.end();
                Asked::Read {
                    handle,
                    offset,
                    parts,
                }
            }
            Wanted::Write {
                handle,
                offset,
                data,
            } => {
                let (path, identity) = self.handles.file(handle).ok_or(FAILURE)?;
                let (mut ids, mut all) = (vec![id], data.len() as u64);
                let mut parts = vec![data];
                while all < TOGETHER
                    && let Some((id, data)) = self.requests.pop_write(handle, offset + all)
                {
                    all += data.len() as u64;
                    ids.push(id);
                    parts.push(data);
                }
                call.name("pu").path(path).raw(identity).number(offset);
                call.number(all / BLOCK).number(all % BLOCK);
                call.end();
                parts.iter().for_each(|data| self.out.put_bytes(data));
                Asked::Written { ids, octets: all }
            }
            Wanted::Set {
                path,
                attributes,
                is_link,
            } => {
                call.name("se").path(&path);
                set(call, attributes, is_link)?;
                Asked::Status(id)
            }
            Wanted::SetOpen(handle, attributes) => {
                let (path, identity) = self.handles.opened(handle).ok_or(FAILURE)?;
                call.of(identity, "se").path(path);
                set(call, attributes, false)?;
                Asked::Status(id)
            }
            Wanted::Sync(handle) => {
                let (path, identity) = self.handles.opened(handle).ok_or(FAILURE)?;
                call.of(identity, "sy").path(path);
                call.end();
                Asked::Status(id)
            }
            Wanted::Remove(path) => {
                call.name("rm_").path(&path);
                call.end();
                Asked::Status(id)
            }
            Wanted::MakeFolder(path, mode) => {
                call.name("md").path(&path).mode(mode & !self.umask);
                call.end();
                Asked::Status(id)
            }
            Wanted::RemoveFolder(path) => {
                call.name("is rmdir").path(&path);
                call.end();
                Asked::Status(id)
            }
            Wanted::Rename { from, to, replaces } => {
                call.name(if replaces { "mv_" } else { "rn" });
                call.path(&from).path(&to);
                call.end();
                Asked::Status(id)
            }
            Wanted::Symlink { target, link } => {
                call.name("ln_ -s").words(&target).path(&link);
                call.end();
                Asked::Status(id)
            }
            Wanted::Hardlink { from, to } => {
                call.name("ln_ ''").path(&from).path(&to);
                call.end();
                Asked::Status(id)
            }
            Wanted::LinkTarget(path) => {
                call.name("rl").path(&path);
                call.end();
                Asked::Path(id)
            }
            Wanted::WholePath(path) => {
                call.name("rp").path(&path);
                call.end();
                Asked::Path(id)
            }
            Wanted::Filesystem(path) => {
                call.name("vf").path(&path);
                call.end();
                Asked::Filesystem(id)
            }
            Wanted::Nothing => return Err(OP_UNSUPPORTED),
        }))
    }
}

/// What is set of a path that the call has already.
fn set(mut call: Call<'_>, attributes: Attributes, is_link: bool) -> Result<(), u32> {
    let Attributes {
        size,
        owner,
        mode,
        times,
    } = attributes;
    // Neither can be set of a link on Linux.
    if is_link && (mode.is_some() || size.is_some()) {
        return Err(OP_UNSUPPORTED);
    }
    let number = |number: Option<u64>| number.map_or("''".to_owned(), |it| it.to_string());
    call.raw(if is_link { "-h" } else { "''" });
    call.raw(&owner.map_or("''".to_owned(), |(user, group)| format!("{user}:{group}")));
    match mode {
        Some(mode) => call.mode(mode & 0o7777),
        None => call.raw("''"),
    };
    call.raw(&number(times.map(|(_, modified)| modified.into())));
    call.raw(&number(times.map(|(accessed, _)| accessed.into())));
    call.raw(&number(size));
    call.end();
    Ok(())
}
