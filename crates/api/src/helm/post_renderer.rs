//! Post-renderers: changes to the rendered objects before they are released.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Image, Patch};

/// A post-renderer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostRenderer {
    /// Kustomize patches and image replacements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<KustomizePostRenderer>,
}

/// Changes that kustomize makes to the rendered objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizePostRenderer {
    /// Strategic merge patches and JSON patches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,

    /// Container images to replace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// How post-renderers are applied to hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PostRenderStrategy {
    /// Not at all.
    Nohooks,
    /// Together with everything else.
    #[default]
    Combined,
    /// By themselves.
    Separate,
}
