//! Why a Kustomization cannot be built.

use kustomize_build::FsError;
use manifest::substitute as engine;

/// Why a Kustomization cannot be built. Each tells the file, where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tree could not be read.
    #[error("failed to read {path}")]
    Read {
        /// Which file or folder.
        path: String,
        /// Why.
        #[source]
        source: FsError,
    },
    /// The folder's own kustomization is no YAML.
    #[error(transparent)]
    Parse(#[from] manifest::yaml::Error),
    /// The folder's own kustomization is YAML but no mapping, or a field has another shape than kustomize's.
    #[error("{path}: {what}")]
    Malformed {
        /// Which file.
        path: String,
        /// The problem.
        what: String,
    },
    /// `spec.components` names something that is not in the artifact. Flux's words.
    #[error("component path '{0}' must be local and relative")]
    ComponentPath(String),
    /// Folders nested without end.
    #[error("{0}: folders are nested too deep")]
    TooDeep(String),
    /// kustomize refused.
    #[error("kustomize build failed")]
    Kustomize(#[from] kustomize_build::Error),
    /// Several manifests of a folder cannot be read; each with its file and line.
    #[error("{}", .0.join("\n"))]
    Manifests(Vec<String>),
    /// An object without the fields that every object has.
    #[error("{origin}: object has no {field}")]
    Incomplete {
        /// File and line.
        origin: String,
        /// Which field.
        field: &'static str,
    },
    /// An encrypted Secret would be applied as it is.
    #[error(
        "{object} in {origin} is SOPS encrypted, configuring decryption is required for this secret to be reconciled"
    )]
    Encrypted {
        /// Which object.
        object: String,
        /// File and line.
        origin: String,
    },
    /// Variables cannot be substituted.
    #[error("post build failed for '{object}'{at}")]
    PostBuild {
        /// Which object, as kustomize names it.
        object: String,
        /// File, line and expression, in brackets, if it is an expression that is wrong.
        at: String,
        /// Why.
        #[source]
        source: SubstituteError,
    },
    /// Two objects got one name when variables were substituted.
    #[error("post build failed: {0} is there twice")]
    Duplicate(String),
}

/// Why the variables of an object cannot be substituted. Flux's words, which hold no values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubstituteError {
    /// A ConfigMap or Secret is not there, and not optional.
    #[error("substitute from '{kind}/{name}' error: {}s \"{name}\" not found", kind.to_lowercase())]
    Missing {
        /// ConfigMap or Secret.
        kind: String,
        /// Which.
        name: String,
    },
    /// An expression is wrong, or has no value.
    #[error("envsubst error: variable substitution failed")]
    Expand(#[source] engine::Error),
    /// The name of a variable is none.
    #[error("envsubst error")]
    Name(#[source] engine::Error),
    /// The result of the substitution is no object.
    #[error("envsubst error: YAMLToJSON: {0}")]
    Read(String),
}
