//! Checks of the crate's promises: the shipped CRDs match the types and Flux's CRDs, and real manifests
//! survive being read and written.

#[cfg(test)]
mod contract {
    mod manifests;
    mod reference;
    mod shipped;
    mod trees;
}
