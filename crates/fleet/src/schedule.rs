//! A priority queue with at most one key for each index.

/// Marks an index without a key.
const ABSENT: u32 = u32::MAX;

/// The smallest of many keys, each belonging to an index from 0 to `len`; equal keys in the order of their
/// indices. Changing or removing a key takes O(log n) and leaves nothing behind, so that the memory is
/// bounded by the number of indices however often keys change.
#[derive(Debug)]
pub(crate) struct Schedule<K> {
    /// A binary heap: no entry is smaller than its parent at `(position - 1) / 2`.
    heap: Vec<(K, u32)>,
    /// For each index, its place in `heap`.
    positions: Vec<u32>,
}

impl<K: Copy + Ord> Schedule<K> {
    pub(crate) fn new(len: usize) -> Schedule<K> {
        Schedule {
            heap: Vec::new(),
            positions: vec![ABSENT; len],
        }
    }

    /// The smallest key and its index.
    pub(crate) fn first(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// Gives `index` the key, in place of an earlier one.
    pub(crate) fn set(&mut self, index: u32, key: K) {
        let position = match self.positions[index as usize] {
            ABSENT => {
                self.heap.push((key, index));
                self.heap.len() - 1
            }
            position => {
                self.heap[position as usize].0 = key;
                position as usize
            }
        };
        self.restore(position);
    }

    /// Takes the key of `index` away, if it has one.
    pub(crate) fn remove(&mut self, index: u32) {
        let position = std::mem::replace(&mut self.positions[index as usize], ABSENT);
        if position == ABSENT {
            return;
        }
        let position = position as usize;
        self.heap.swap_remove(position);
        if position < self.heap.len() {
            self.restore(position);
        }
    }

    /// Moves the entry at `position`, the only one possibly out of order, to where it belongs.
    fn restore(&mut self, mut position: usize) {
        while position > 0 && self.heap[position] < self.heap[(position - 1) / 2] {
            position = self.swap(position, (position - 1) / 2);
        }
        while let Some(child) = self.smaller_child(position)
            && self.heap[child] < self.heap[position]
        {
            position = self.swap(position, child);
        }
        self.positions[self.heap[position].1 as usize] = position as u32;
    }

    fn smaller_child(&self, position: usize) -> Option<usize> {
        let left = 2 * position + 1;
        let right = left + 1;
        if right < self.heap.len() && self.heap[right] < self.heap[left] {
            Some(right)
        } else {
            (left < self.heap.len()).then_some(left)
        }
    }

    /// Swaps the entry being moved with another, and returns its new position.
    fn swap(&mut self, moving: usize, other: usize) -> usize {
        self.heap.swap(moving, other);
        self.positions[self.heap[moving].1 as usize] = moving as u32;
        other
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
