//! The data of ConfigMaps and Secrets: text as it is, bytes in base64 of lines of 70 characters.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use manifest::yaml::{Kind, Node, NodeId};

use crate::error::Result;
use crate::lookup;
use crate::nodes::Nodes;

/// Sets `data`, and `binaryData` for what is no text.
pub(crate) fn set_config_map_data(
    nodes: &mut Nodes,
    object: NodeId,
    values: &BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    for (key, value) in values {
        match std::str::from_utf8(value) {
            Ok(text) => set(nodes, object, "data", key, text.to_owned())?,
            Err(_) => set(nodes, object, "binaryData", key, encode(value))?,
        }
    }
    Ok(())
}

/// Sets a Secret's `data`, also when there is none.
pub(crate) fn set_secret_data(
    nodes: &mut Nodes,
    object: NodeId,
    values: &BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    lookup::get_or_create(nodes, object, "data", Kind::Mapping)?;
    values
        .iter()
        .try_for_each(|(key, value)| set(nodes, object, "data", key, encode(value)))
}

/// Sets one entry as a string.
pub(crate) fn set(nodes: &mut Nodes, object: NodeId, field: &str, key: &str, value: String) -> Result<()> {
    let map = lookup::get_or_create(nodes, object, field, Kind::Mapping)?;
    let value = nodes.add(Node::string(value));
    lookup::set_field(nodes, map, key, value)
}

/// Encodes bytes as kyaml does: in lines, each with its break, unless one line is enough.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const LINE: usize = 70;
    let text = STANDARD.encode(bytes);
    if text.len() < LINE {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / LINE + 1);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(LINE));
        lines.push_str(line);
        lines.push('\n');
        rest = behind;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn long_values_are_broken_into_lines() {
        assert_eq!(encode(b"abc"), "YWJj");
        let long = encode(&[0; 60]);
        assert_eq!(long, format!("{}\n{}\n", "A".repeat(70), "A".repeat(10)));
    }
}
