//! Why a chart was not built: the step, which decides what follows, and the words of Flux and Helm.

use std::error::Error as StdError;

/// The step that failed. Each is a reason of Flux's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// There is no chart where one was looked for.
    Reference,
    /// The chart could not be taken as it is.
    Pull,
    /// The version could not get its metadata.
    Metadata,
    /// The files with values could not be merged.
    Values,
    /// A chart that is missing could not be added.
    Dependencies,
    /// The chart could not be read or written.
    Package,
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Self::Reference => "invalid chart reference",
            Self::Pull => "chart pull error",
            Self::Metadata => "chart metadata patch error",
            Self::Values => "values files merge error",
            Self::Dependencies => "dependency build error",
            Self::Package => "chart package error",
        }
    }
}

/// A chart that could not be built.
#[derive(Debug, thiserror::Error)]
#[error("{}", .step.words())]
pub struct Error {
    /// Step that failed.
    pub step: Step,
    /// Why.
    #[source]
    pub source: Box<dyn StdError + Send + Sync>,
}

impl Error {
    pub(crate) fn new(step: Step, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self {
            step,
            source: source.into(),
        }
    }
}

/// Sorts an error into a step.
pub(crate) fn during<E: Into<Box<dyn StdError + Send + Sync>>>(step: Step) -> impl Fn(E) -> Error {
    move |error| Error::new(step, error)
}

/// An error that is just its words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Words(pub(crate) String);
