//! In which pieces an image goes onto a device: whole physical blocks as long as there are any, then whole logical blocks,
//! which may be written past the kernel's memory, too (open(2), O_DIRECT). What is left is less than the least that can be written:
//! there, and only there, the kernel reads that one block and keeps what the image does not cover.

/// Octets of blocks that are large enough for any disk.
const LARGE: u64 = 1024 * 1024;
/// Octets of one segment at most: what is confirmed at a time.
const MOST: u64 = 64 * 1024 * 1024;
/// What is taken for a physical block where nothing sensible is told: a page, which covers one of 512 as well.
const USUAL: u64 = 4096;
/// The least logical block of any device.
const LEAST: u64 = 512;

/// Sizes of a device's blocks, octets, powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    physical: u64,
    logical: u64,
}

/// Octets that are written by one call of dd(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Octets of each write.
    pub(crate) block: u64,
    /// How many writes.
    pub(crate) count: u64,
    /// Blocks of the device before the first one.
    pub(crate) seek: u64,
    /// Whether it may go past the kernel's memory.
    pub(crate) is_direct: bool,
}

impl Segment {
    /// Octets.
    pub(crate) fn len(&self) -> u64 {
        self.block * self.count
    }

    /// From where.
    pub(crate) fn at(&self) -> u64 {
        self.block * self.seek
    }
}

impl Geometry {
    /// What is made of what a host tells.
    pub(crate) fn of(physical: Option<u64>, logical: Option<u64>) -> Geometry {
        let sensible = |told: &u64| told.is_power_of_two() && (LEAST..=MOST).contains(told);
        let physical = physical.filter(sensible).unwrap_or(USUAL);
        let logical = logical.filter(sensible).unwrap_or(physical);
        Geometry {
            physical,
            logical: logical.min(physical),
        }
    }

    /// What the medium writes at once.
    pub(crate) fn physical(&self) -> u64 {
        self.physical
    }

    /// Octets of the blocks that all goes in but for the rest.
    pub(crate) fn large(&self) -> u64 {
        LARGE.max(self.physical)
    }

    /// The next piece of what goes from `at`, a multiple of [`large`](Self::large) or what earlier pieces have led to, up
    /// to `end`. `None` at the end.
    pub(crate) fn next(&self, at: u64, end: u64) -> Option<Segment> {
        let left = end.saturating_sub(at);
        let whole = |block: u64| {
            let count = left.min(MOST) / block;
            (count > 0 && at.is_multiple_of(block)).then(|| Segment {
                block,
                count,
                seek: at / block,
                is_direct: true,
            })
        };
        let aligned = whole(self.large())
            .or_else(|| whole(self.physical))
            .or_else(|| whole(self.logical));
        // By single octets dd can begin anywhere, and needs no seek_bytes for it.
        let rest = Segment {
            block: 1,
            count: left,
            seek: at,
            is_direct: false,
        };
        aligned.or((left > 0).then_some(rest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every octet is written once, in order; all is whole and aligned but for less than a logical block at the end.
        #[test]
        fn pieces_are_whole_blocks_as_long_as_there_are_any(
            image in 0u64..300_000_000, physical in 9u32..17, logical in 9u32..17,
        ) {
            let (physical, logical) = (1 << physical, 1 << logical);
            let geometry = Geometry::of(Some(physical), Some(logical));
            let mut at = 0;
            while let Some(segment) = geometry.next(at, image) {
                prop_assert_eq!(segment.at(), at);
                prop_assert!(segment.len() > 0 && segment.len() <= MOST.max(physical));
                let end = at + segment.len();
                if segment.is_direct {
                    prop_assert!(segment.block.is_multiple_of(logical.min(physical)));
                    prop_assert!(segment.block >= physical || image - end < physical);
                } else {
                    prop_assert!(image - at < logical && end == image);
                }
                at = end;
            }
            prop_assert_eq!(at, image);
        }
    }

    #[test]
    fn an_image_of_whole_physical_blocks_needs_nothing_less() {
        let geometry = Geometry::of(Some(4096), Some(512));
        let (mut at, mut least) = (0, u64::MAX);
        let image = 3 * LARGE + 5 * 4096;
        while let Some(segment) = geometry.next(at, image) {
            (at, least) = (at + segment.len(), least.min(segment.block));
        }
        assert_eq!(least, 4096);
    }

    #[test]
    fn nonsense_is_not_believed() {
        let usual = Geometry::of(None, None);
        for told in [0, 1, 3, 1000, 1 << 40] {
            assert_eq!(Geometry::of(Some(told), Some(told)), usual);
        }
        assert_eq!(usual.physical(), 4096);
        assert_eq!(Geometry::of(Some(512), Some(4096)).logical, 512);
    }
}
