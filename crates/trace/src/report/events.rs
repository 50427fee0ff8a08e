//! A traced login in the Trace Event Format, which Perfetto and speedscope read: its critical path on the first line, then a line
//! for each process with the functions that were probed in it.

use serde_json::{Value, json};

use crate::path::Kind;
use crate::sums::Traced;
use crate::tree::ProcessId;

/// The line of the critical path; that of a process is behind it by its place.
const PATH: usize = 1;

/// Events of a process with that number, in microseconds from the birth of the connection's process. Foreign text is as it came.
pub fn events(traced: &Traced, number: usize) -> Vec<Value> {
    let mut events = Vec::new();
    let name = format!("the host, by {}", traced.means.title());
    events.push(named("process_name", number, 0, &name));
    events.push(named("thread_name", number, PATH, "critical path"));
    let since = |at: u64| at.saturating_sub(traced.login.begin) / 1000;
    let stretch = |line: usize, category: &str, name: &str, from: u64, to: u64, about: Value| {
        json!({
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": number,
            "tid": line,
            "ts": since(from),
            "dur": since(to) - since(from),
            "args": about,
        })
    };
    for piece in &traced.pieces {
        let process = traced.tree.process(piece.process);
        let outside = match piece.kind {
            Kind::Outside(number) => traced.names.get(&number),
            _ => None,
        };
        let about = json!({
            "process": process.title_at(piece.from),
            "pid": process.pid,
            "program": outside,
        });
        let (from, to) = (piece.from, piece.to);
        events.push(stretch(PATH, "path", traced.name(piece), from, to, about));
    }
    let line = |id: ProcessId| PATH + 1 + id.0;
    for (id, process) in traced.processes() {
        let name = format!("{} {}", process.title(), process.pid);
        events.push(named("thread_name", number, line(id), &name));
        let about = json!({
            "pid": process.pid,
            "parent": process.parent.map(|parent| traced.tree.process(parent).pid),
            "path_us": traced.with_children(id) / 1000,
            "opened": process.opened,
            "arguments": process.programs.last().map(|program| &program.arguments),
        });
        let end = process.ended.unwrap_or(traced.tree.end).max(process.born);
        let (title, born) = (process.title(), process.born);
        events.push(stretch(line(id), "process", title, born, end, about));
    }
    for call in &traced.calls {
        let name = format!("{} {}", call.probe.module, call.probe.function);
        let (from, to) = (call.from, call.to);
        events.push(stretch(
            line(call.process),
            "call",
            &name,
            from,
            to,
            json!({"about": call.about}),
        ));
    }
    events
}

fn named(kind: &str, process: usize, thread: usize, name: &str) -> Value {
    json!({"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}})
}
