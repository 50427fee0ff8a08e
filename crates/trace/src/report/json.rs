//! A traced login as JSON. The schema is docs/json.md's, section `why`.

use serde_json::{Map, Value, json};

use crate::path::{Kind, Piece};
use crate::sums::Traced;
use crate::tree::{Process, ProcessId};

/// Files that are named.
const MAX_FILES: usize = 200;

/// The object. Times are in microseconds from the birth of the connection's process. Foreign text in it is as it came.
pub fn json(traced: &Traced) -> Value {
    let since = |at: u64| at.saturating_sub(traced.login.begin) / 1000;
    let process = |(id, process): (ProcessId, &Process)| {
        let parent = process.parent.map(|parent| traced.tree.process(parent).pid);
        json!({
            "pid": process.pid,
            "parent": parent,
            "name": process.title(),
            "programs": process.programs.iter().map(|it| json!({
                "file": it.file,
                "arguments": it.arguments,
                "start_us": since(it.since),
            })).collect::<Vec<_>>(),
            "start_us": since(process.born),
            "end_us": process.ended.map(since),
            "path_us": traced.tells_time().then(|| traced.with_children(id) / 1000),
            "opened": process.opened,
            "block_octets": process.block_octets,
            "connections": process.connections.iter().map(|peer| {
                format!("{} port {}", peer.address, peer.port)
            }).collect::<Vec<_>>(),
        })
    };
    let piece = |piece: &Piece| {
        json!({
            "start_us": since(piece.from),
            "end_us": since(piece.to),
            "pid": traced.tree.process(piece.process).pid,
            "name": traced.tree.process(piece.process).title_at(piece.from),
            "waits_for": traced.name(piece),
            "program": match piece.kind {
                Kind::Outside(number) => traced.names.get(&number),
                _ => None,
            },
        })
    };
    let shares: Map<String, Value> = traced
        .shares()
        .iter()
        .map(|share| (share.name.to_owned(), json!(share.time / 1000)))
        .collect();
    json!({
        "by": traced.means.by,
        "refused": traced.means.refused.iter().map(|(by, reason)| json!({
            "by": by,
            "reason": reason,
        })).collect::<Vec<_>>(),
        "lacks": traced.means.lacks,
        "notes": traced.means.notes(),
        "matched": traced.login.is_matched,
        "wall_us": traced.login.wall() / 1000,
        "shares_us": shares,
        "processes": traced.processes().map(process).collect::<Vec<_>>(),
        "path": traced.pieces.iter().map(piece).collect::<Vec<_>>(),
        "calls": traced.calls.iter().map(|call| json!({
            "module": call.probe.module,
            "function": call.probe.function,
            "about": call.about,
            "pid": traced.tree.process(call.process).pid,
            "start_us": since(call.from),
            "end_us": since(call.to),
        })).collect::<Vec<_>>(),
        "files": traced.files().iter().take(MAX_FILES).map(|file| json!({
            "path": file.path,
            "times": file.times,
            "failed": file.failed,
            "time_us": file.time / 1000,
            "slowest_us": file.slowest / 1000,
        })).collect::<Vec<_>>(),
        "host_us": traced.samples,
        "lost": traced.lost,
    })
}
