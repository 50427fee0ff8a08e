use proptest::prelude::*;

use super::*;

fn standing(links: &Links, line: &Line) -> Vec<u32> {
    let next = |host: &u32| Some(links.0[*host as usize].next).filter(|next| *next != NONE);
    std::iter::successors(line.first(), next).collect()
}

proptest! {
    /// Hosts join one of two lines and leave from any place in it; vectors tell what must be left.
    #[test]
    fn behaves_like_vectors(steps in prop::collection::vec((0u32..12, 0usize..2), 0..200)) {
        let mut links = Links::new(12);
        let mut lines = [Line::new(), Line::new()];
        let mut naive = [Vec::new(), Vec::new()];
        for (host, to) in steps {
            match naive.iter().position(|line| line.contains(&host)) {
                Some(from) => {
                    links.leave(&mut lines[from], host);
                    naive[from].retain(|other| *other != host);
                }
                None => {
                    links.join(&mut lines[to], host);
                    naive[to].push(host);
                }
            }
            for (line, expected) in lines.iter().zip(&naive) {
                prop_assert_eq!(&standing(&links, line), expected);
                prop_assert_eq!(line.last, expected.last().copied().unwrap_or(NONE));
            }
        }
    }
}
