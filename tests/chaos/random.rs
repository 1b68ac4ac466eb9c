//! Choices that a seed repeats.

/// A small generator.
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        // splitmix64, so that neighbouring seeds have nothing in common; xorshift must not start at 0.
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self((state ^ (state >> 27)) | 1)
    }

    /// A number below the limit, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// One of several; None of none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below((items.len() as u64).max(1))).unwrap_or_default();
        items.get(index)
    }
}
