//! A page of the kernel's ring buffer, taken apart into records with their times (kernel/trace/ring_buffer.c,
//! include/linux/ring_buffer.h): little-endian, which both processors are.

/// Where the records begin, unless the host says otherwise: behind a time and a count of eight octets each.
pub(crate) const USUAL_DATA: usize = 16;
/// The low bits of the count are octets.
const USED: u64 = (1 << 20) - 1;
/// Records of this page's processor were lost before it (RB_MISSED_EVENTS).
const MISSED: u64 = 1 << 31;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that stand in a record's first word.
const DELTA_BITS: u32 = 27;
/// The bits of a time that an absolute stamp does not have.
const STAMP_LACKS: u64 = 0xf8 << 56;

/// Where the records begin, of `events/header_page`.
pub(crate) fn data_offset(header: &str) -> usize {
    let line = header.lines().find(|line| line.contains("char data;"));
    let offset = line.and_then(|line| {
        line.split(';')
            .find_map(|part| part.trim().strip_prefix("offset:"))
    });
    let offset = offset.and_then(|offset| offset.parse().ok());
    // No kernel has less than a time, nor more than a few words.
    offset
        .filter(|offset| (12..=64).contains(offset))
        .unwrap_or(USUAL_DATA)
}

/// One page.
pub(crate) struct Page<'p> {
    rest: &'p [u8],
    time: u64,
    base: u64,
    /// Whether records were lost before it.
    pub(crate) has_gap: bool,
    /// It ends in the middle of something.
    pub(crate) is_broken: bool,
}

impl<'p> Page<'p> {
    /// `None` if it is too short to have a header.
    pub(crate) fn new(page: &'p [u8], data: usize) -> Option<Page<'p>> {
        let time = u64::from_le_bytes(*page.first_chunk()?);
        let count = page.get(8..data.min(16))?;
        let mut whole = [0; 8];
        whole[..count.len()].copy_from_slice(count);
        let count = u64::from_le_bytes(whole);
        let rest = page.get(data..)?;
        let used = usize::try_from(count & USED).ok()?;
        Some(Page {
            rest: &rest[..used.min(rest.len())],
            time,
            base: time,
            has_gap: count & MISSED != 0,
            is_broken: used > rest.len(),
        })
    }

    /// Takes so many octets off; nothing more if there are fewer.
    fn octets(&mut self, length: usize) -> Option<&'p [u8]> {
        let Some((octets, rest)) = self.rest.split_at_checked(length) else {
            self.is_broken = true;
            self.rest = &[];
            return None;
        };
        self.rest = rest;
        Some(octets)
    }

    fn word(&mut self) -> Option<u32> {
        let octets = self.octets(4)?;
        Some(u32::from_le_bytes(*octets.first_chunk()?))
    }
}

impl<'p> Iterator for Page<'p> {
    /// A time in nanoseconds, and a record.
    type Item = (u64, &'p [u8]);

    fn next(&mut self) -> Option<(u64, &'p [u8])> {
        while !self.rest.is_empty() {
            let head = self.word()?;
            let (kind, delta) = (head & 0x1f, u64::from(head >> 5));
            match kind {
                PADDING if delta == 0 => self.rest = &[],
                PADDING => {
                    let length = self.word()? as usize;
                    // It counts itself.
                    self.octets(length.saturating_sub(4))?;
                    self.time = self.time.wrapping_add(delta);
                }
                TIME_EXTEND => {
                    let more = u64::from(self.word()?) << DELTA_BITS;
                    self.time = self.time.wrapping_add(more + delta);
                }
                TIME_STAMP => {
                    let more = u64::from(self.word()?) << DELTA_BITS;
                    self.time = (more + delta) | (self.base & STAMP_LACKS);
                }
                0 => {
                    self.time = self.time.wrapping_add(delta);
                    let length = self.word()? as usize;
                    let record = self.octets(length.saturating_sub(4).next_multiple_of(4))?;
                    return Some((self.time, record));
                }
                words => {
                    self.time = self.time.wrapping_add(delta);
                    let record = self.octets(words as usize * 4)?;
                    return Some((self.time, record));
                }
            }
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    /// Writes pages as the kernel does.
    pub(crate) fn page(begin: u64, records: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut data = Vec::new();
        let mut now = begin;
        for (at, record) in records {
            let mut delta = at - now;
            if delta >= 1 << DELTA_BITS {
                let low = (delta & ((1 << DELTA_BITS) - 1)) as u32;
                data.extend((low << 5 | TIME_EXTEND).to_le_bytes());
                data.extend(((delta >> DELTA_BITS) as u32).to_le_bytes());
                delta = 0;
            }
            now = *at;
            let mut record = record.clone();
            record.resize(record.len().next_multiple_of(4), 0);
            let delta = (delta as u32) << 5;
            if record.len() <= 28 * 4 && !record.is_empty() {
                data.extend((delta | (record.len() / 4) as u32).to_le_bytes());
            } else {
                data.extend(delta.to_le_bytes());
                data.extend((record.len() as u32 + 4).to_le_bytes());
            }
            data.extend(record);
        }
        let mut page = begin.to_le_bytes().to_vec();
        page.extend((data.len() as u64).to_le_bytes());
        page.extend(data);
        page
    }

    #[test]
    fn the_header_says_where_records_begin() {
        let header = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        assert_eq!(data_offset(header), 16);
        assert_eq!(
            data_offset("\tfield: char data;\toffset:12;\tsize:4084;"),
            12
        );
        assert_eq!(data_offset("\tfield: char data;\toffset:4000000000;"), 16);
        assert_eq!(data_offset(""), 16);
    }

    #[test]
    fn absolute_stamps_and_padding_move_the_time() {
        let mut data = Vec::new();
        data.extend((5_u32 << 5 | TIME_STAMP).to_le_bytes());
        data.extend(2_u32.to_le_bytes());
        data.extend((3_u32 << 5 | PADDING).to_le_bytes());
        data.extend(8_u32.to_le_bytes());
        data.extend([9; 4]);
        data.extend((1_u32 << 5 | 1).to_le_bytes());
        data.extend([7; 4]);
        data.extend(PADDING.to_le_bytes());
        data.extend([0xff; 6]);
        let mut octets = (1_u64 << 59).to_le_bytes().to_vec();
        octets.extend((data.len() as u64 | MISSED).to_le_bytes());
        octets.extend(data);
        let mut page = Page::new(&octets, 16).unwrap();
        assert!(page.has_gap);
        let time = (1 << 59) | ((2 << DELTA_BITS) + 5 + 3 + 1);
        assert_eq!(page.next(), Some((time, &[7; 4][..])));
        assert_eq!(page.next(), None);
        assert!(!page.is_broken);
    }

    #[test]
    fn a_page_that_is_cut_off_ends_there() {
        let whole = page(100, &[(100, vec![1; 8]), (200, vec![2; 300])]);
        let mut cut = Page::new(&whole[..whole.len() - 1], 16).unwrap();
        assert_eq!(cut.next(), Some((100, &[1; 8][..])));
        assert_eq!(cut.next(), None);
        assert!(cut.is_broken);
        assert!(Page::new(&whole[..15], 16).is_none());
    }

    proptest! {
        #[test]
        fn what_the_kernel_writes_is_read_back(
            begin in 0_u64..1 << 50,
            steps in prop::collection::vec((0_u64..1 << 40, 1_usize..200, any::<u8>()), 0..20),
        ) {
            let mut now = begin;
            let records: Vec<(u64, Vec<u8>)> = steps
                .into_iter()
                .map(|(step, words, octet)| {
                    now += step;
                    (now, vec![octet; words * 4])
                })
                .collect();
            let octets = page(begin, &records);
            let read: Vec<(u64, Vec<u8>)> = Page::new(&octets, 16)
                .unwrap()
                .map(|(at, record)| (at, record.to_vec()))
                .collect();
            prop_assert_eq!(read, records);
        }

        #[test]
        fn no_page_is_too_much(octets: Vec<u8>, data in 12_usize..64) {
            if let Some(page) = Page::new(&octets, data) {
                prop_assert!(page.count() <= octets.len());
            }
        }
    }
}
