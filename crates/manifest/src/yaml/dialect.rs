//! Which of Go's two YAML libraries a text is read as.

/// A Go library, with its rules and its words.
///
/// Both are the same scanner and parser in origin; they differ in how far they look ahead, in the lines that their
/// errors name, and in what they make of plain scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// go.yaml.in/yaml/v2, under sigs.k8s.io/yaml: kubectl, Helm, Flux, `kustomization.yaml`, JSON patches.
    Sigs,
    /// go.yaml.in/yaml/v3, under kyaml: kustomize's resources and strategic merge patches.
    Kyaml,
}
