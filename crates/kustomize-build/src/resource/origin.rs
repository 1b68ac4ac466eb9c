//! Where a resource comes from, in the form of `buildMetadata`'s annotations.

/// A file, or the generator or transformer that a file configures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildOrigin {
    pub(crate) path: String,
    pub(crate) configured_in: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl BuildOrigin {
    /// Returns the origin of something below this path.
    pub(crate) fn append(&self, path: &str) -> Self {
        let joined = crate::path::join_for_message(&self.path, path);
        Self {
            path: if joined == "." { String::new() } else { joined },
            ..self.clone()
        }
    }

    /// Returns the origin of what a kustomization file itself configures.
    pub(crate) fn of_field(&self, file_name: &str, kind: &str) -> Self {
        Self {
            configured_in: self.append(file_name).path,
            api_version: "builtin".to_owned(),
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    fn fields(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                lines.push(format!("{name}: {value}"));
            }
        };
        field("path", &self.path);
        field("configuredIn", &self.configured_in);
        let by = [
            ("apiVersion", &self.api_version),
            ("kind", &self.kind),
            ("name", &self.name),
            ("namespace", &self.namespace),
        ];
        if by.iter().any(|(_, value)| !value.is_empty()) {
            lines.push("configuredBy:".to_owned());
            let by = by.iter().filter(|(_, value)| !value.is_empty());
            lines.extend(by.map(|(name, value)| format!("  {name}: {value}")));
        }
        lines
    }

    /// Writes the origin annotation's value.
    pub(crate) fn to_annotation(&self) -> String {
        let fields = self.fields();
        if fields.is_empty() {
            "{}\n".to_owned()
        } else {
            fields.join("\n") + "\n"
        }
    }

    /// Writes the transformations annotation's value.
    pub(crate) fn list_to_annotation(list: &[Self]) -> String {
        let mut text = String::new();
        for origin in list {
            for (index, line) in origin.fields().iter().enumerate() {
                text.push_str(if index == 0 { "- " } else { "  " });
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}
