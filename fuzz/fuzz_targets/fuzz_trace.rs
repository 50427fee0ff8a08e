//! Whatever a tracer writes, and in whatever pieces: it is refused or it is a trace, and of a login that is in it the parts add
//! up to the whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_trace::{Frames, Recording, TextOptions, Traced, Wanted, events, json, text};

fuzz_target!(|input: (&[u8], u8, Option<(u16, u16)>, Option<u64>)| {
    let (octets, step, ports, until) = input;
    let mut frames = Frames::default();
    let mut recording = Recording::default();
    for part in octets.chunks(usize::from(step).max(1)) {
        if frames.handle_input(part).is_err() {
            return;
        }
        loop {
            match frames.poll_frame() {
                Ok(Some(frame)) => {
                    if recording.take(frame).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let Ok(traced) = Traced::of(recording, Wanted { ports, until, ..Wanted::default() }) else {
        return;
    };
    let sum: u64 = traced.shares().iter().map(|share| share.time).sum();
    assert_eq!(sum, traced.login.wall());
    let options = TextOptions {
        width: 80,
        unicode: true,
    };
    assert!(!text(&traced, options).is_empty());
    let _ = (json(&traced), events(&traced, 1));
});
