//! What a run and a keeper of connections send each other, whatever it is: frames are read in any pieces alike, and what is read
//! at all is written again so that it reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sshoal_warm::{Frames, MAX_FRAME_LEN, News, Order};

fuzz_target!(|octets: &[u8]| {
    let mut frames = Frames::of(octets);
    let mut whole = 0;
    while let Ok(Some(frame)) = frames.next() {
        assert!(!frame.is_empty() && frame.len() <= MAX_FRAME_LEN);
        whole += 4 + frame.len();
        assert_eq!(frames.taken(), whole);
        if let Ok(order) = Order::decode(frame) {
            let mut again = Vec::new();
            order.encode(&mut again);
            assert_eq!(Order::decode(&again[4..]).as_ref(), Ok(&order));
        }
        if let Ok(news) = News::decode(frame) {
            let mut again = Vec::new();
            news.encode(&mut again);
            assert_eq!(News::decode(&again[4..]).as_ref(), Ok(&news));
        }
    }
    assert!(whole <= octets.len());
});
