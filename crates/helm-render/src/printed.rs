//! What `helm template` prints: CRDs, manifests, then hooks, each with the file that it came from.

use crate::Rendered;
use crate::manifest::Hook;

/// What is printed besides manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The files of crds/.
    pub crds: bool,
    /// Hooks.
    pub hooks: bool,
    /// Those hooks that are tests.
    pub tests: bool,
}

impl Rendered {
    /// Prints as `helm template` does.
    pub fn printed(&self, shown: Shown) -> String {
        let mut text = String::new();
        if shown.crds {
            for crd in &self.crds {
                add_document(&mut text, &crd.path, &crd.content);
            }
        }
        for manifest in &self.manifests {
            add_document(&mut text, &manifest.path, &manifest.content);
        }
        let mut text = format!("{}\n", text.trim());
        for hook in self.shown_hooks(shown) {
            add_document(&mut text, &hook.path, &hook.content);
        }
        text
    }

    /// Returns the hooks that are printed.
    pub fn shown_hooks(&self, shown: Shown) -> impl Iterator<Item = &Hook> {
        let hooks = self.hooks.iter();
        hooks.filter(move |hook| shown.hooks && (shown.tests || !hook.is_test()))
    }
}

/// Adds a document below the name of its file.
pub fn add_document(text: &mut String, path: &str, content: &str) {
    text.reserve(path.len() + content.len() + 16);
    text.push_str("---\n# Source: ");
    text.push_str(path);
    text.push('\n');
    text.push_str(content);
    text.push('\n');
}
