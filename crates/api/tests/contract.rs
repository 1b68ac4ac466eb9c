//! What the crate promises to others: the CRDs that are shipped are those of the types, they are those of Flux,
//! and real manifests survive being read and written.

#[cfg(test)]
mod contract {
    mod manifests;
    mod reference;
    mod shipped;
    mod trees;
}
