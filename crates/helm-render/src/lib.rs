//! Helm charts: from a folder or an archive and values to manifests, hooks and notes, byte for byte as Helm.
