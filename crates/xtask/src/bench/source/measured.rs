//! Figures of one contestant.

/// Figures of one contestant.
pub(super) struct Measured {
    pub(super) name: &'static str,
    /// Peak of memory of a controller that is ready and has nothing to do, in bytes.
    pub(super) idle: u64,
    pub(super) many: super::many::Measured,
    /// The smaller repository first.
    pub(super) git: Vec<super::large::Measured>,
    /// The smaller index first.
    pub(super) index: Vec<super::large::Measured>,
}
