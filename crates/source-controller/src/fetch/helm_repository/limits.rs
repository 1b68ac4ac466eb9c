//! Size limits of Helm repositories.

/// Size limits: `--helm-index-max-size` and `--helm-chart-max-size`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) index: u64,
    pub(crate) chart: u64,
}

impl Default for Limits {
    /// Flux's.
    fn default() -> Self {
        Self {
            index: 50 << 20,
            chart: 10 << 20,
        }
    }
}
