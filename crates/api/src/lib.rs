//! CRD types of every group, from which the shipped CRDs are generated.
