//! Result of one kustomization.

use std::sync::Arc;

use crate::field_spec::TransformerConfig;
use crate::resource_map::ResourceMap;
use crate::variable::Variables;

/// Objects and settings that one kustomization hands to the one that includes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accumulated {
    pub(crate) map: ResourceMap,
    pub(crate) config: Arc<TransformerConfig>,
    pub(crate) variables: Variables,
}
