//! kustomize build over a file-system trait.
