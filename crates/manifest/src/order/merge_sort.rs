//! A sort for orders that are none.
//!
//! kustomize's legacy order can run in a circle: a Namespace of the core group precedes one of another group whatever
//! their text, and the text may put a third kind between them. The standard library may panic on such a comparison;
//! Go's sort leaves some order. Up to [`BLOCK`] elements it sorts by insertion, and this one then leaves the same.

/// Below and at this length Go's `sort.Sort` is an insertion sort.
const BLOCK: usize = 12;

/// Returns the positions of a list's elements in sorted order; elements that are equal keep theirs.
pub(super) fn sorted_positions(length: usize, is_less: &dyn Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..length).collect();
    for block in positions.chunks_mut(BLOCK) {
        insert_each(block, is_less);
    }
    let mut width = BLOCK;
    while width < length {
        let mut merged = Vec::with_capacity(length);
        for pair in positions.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, is_less, &mut merged);
        }
        positions = merged;
        width *= 2;
    }
    positions
}

fn insert_each(block: &mut [usize], is_less: &dyn Fn(usize, usize) -> bool) {
    for end in 1..block.len() {
        let mut at = end;
        while at > 0 && is_less(block[at], block[at - 1]) {
            block.swap(at, at - 1);
            at -= 1;
        }
    }
}

fn merge(
    mut left: &[usize],
    mut right: &[usize],
    is_less: &dyn Fn(usize, usize) -> bool,
    into: &mut Vec<usize>,
) {
    while let ([first_left, rest_left @ ..], [first_right, rest_right @ ..]) = (left, right) {
        if is_less(*first_right, *first_left) {
            into.push(*first_right);
            right = rest_right;
        } else {
            into.push(*first_left);
            left = rest_left;
        }
    }
    into.extend_from_slice(left);
    into.extend_from_slice(right);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_any_length_are_sorted_and_equal_elements_keep_their_order() {
        for length in 0..100 {
            let keys: Vec<usize> = (0..length).map(|n| n * 37 % 11).collect();
            let mut expected: Vec<usize> = (0..length).collect();
            expected.sort_by_key(|at| keys[*at]);
            assert_eq!(sorted_positions(length, &|a, b| keys[a] < keys[b]), expected);
        }
    }

    #[test]
    fn an_order_in_a_circle_is_borne() {
        let beats = |a: usize, b: usize| (a + 1) % 3 == b % 3;
        let mut positions = sorted_positions(1000, &beats);
        positions.sort_unstable();
        assert_eq!(positions, (0..1000).collect::<Vec<_>>());
    }
}
