//! Which sets of inputs a ResourceSet has: those of its spec and of its providers, one after the other or combined. Pure.

use api::flux_operator::{AnyMap, GROUP, InputStrategy, StrategyName, VERSION};
use serde_json::{Value, json};

/// More combinations are refused, as in flux-operator.
pub const MAX_COMBINATIONS: usize = 10_000;

/// Bytes of all sets together, as JSON: a large set that is combined with thousands of small ones is copied thousands of times.
pub const MAX_BYTES: usize = 64 << 20;

/// Sets of inputs of one object: a provider's, or a ResourceSet's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Kind of the object.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Whether the sets are of pull requests.
    pub is_of_requests: bool,
    /// The sets.
    pub sets: Vec<AnyMap>,
}

/// Why there are no sets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There are too many combinations.
    #[error("the providers' inputs make more than {MAX_COMBINATIONS} combinations")]
    TooMany,
    /// They are too large together.
    #[error("the inputs of all providers have more than {MAX_BYTES} bytes together")]
    TooLarge,
    /// Two providers have the same name in templates.
    #[error("'{first}' and '{second}' are both '{name}' in templates: rename one of them")]
    SameName {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// What both are called.
        name: String,
    },
}

/// Returns the sets by which templates are rendered, each with `id` and `provider`.
///
/// # Errors
/// When the sets are too many or too large, or two providers cannot be told apart in combinations.
pub fn combine(strategy: Option<&InputStrategy>, exports: &[Export]) -> Result<Vec<AnyMap>, Error> {
    match strategy.map(|strategy| strategy.name).unwrap_or_default() {
        StrategyName::Flatten => {
            bounded(exports.iter().map(size))?;
            Ok(flattened(exports))
        }
        StrategyName::Permute => {
            let with_empty = strategy.and_then(|strategy| strategy.include_empty_providers);
            permuted(exports, with_empty.unwrap_or_default())
        }
    }
}

/// Bytes of the sets of an object.
fn size(export: &Export) -> usize {
    let sets = export.sets.iter();
    sets.map(|set| serde_json::to_vec(set).map_or(MAX_BYTES, |text| text.len()))
        .fold(0, usize::saturating_add)
}

fn bounded(sizes: impl Iterator<Item = usize>) -> Result<(), Error> {
    match sizes.fold(0, usize::saturating_add) {
        0..=MAX_BYTES => Ok(()),
        _ => Err(Error::TooLarge),
    }
}

fn flattened(exports: &[Export]) -> Vec<AnyMap> {
    exports.iter().flat_map(completed).collect()
}

/// The sets of an object, with what every set has.
fn completed(export: &Export) -> Vec<AnyMap> {
    let provider = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": export.kind,
        "name": export.name,
        "namespace": export.namespace,
    });
    let sets = export.sets.iter().enumerate();
    sets.map(|(index, set)| {
        let mut set = set.clone();
        let Export {
            kind,
            namespace,
            name,
            ..
        } = export;
        set.entry("id")
            .or_insert_with(|| checksum(&format!("{kind}/{namespace}/{name}[{index}]")).into());
        set.insert("provider".to_owned(), provider.clone());
        set
    })
    .collect()
}

fn permuted(exports: &[Export], with_empty: bool) -> Result<Vec<AnyMap>, Error> {
    let mut names: Vec<(String, &Export)> = Vec::new();
    for export in exports {
        if export.sets.is_empty() && !with_empty {
            continue;
        }
        let name = normalized(&export.name);
        if let Some((_, other)) = names.iter().find(|(known, _)| *known == name) {
            return Err(Error::SameName {
                first: other.name.clone(),
                second: export.name.clone(),
                name,
            });
        }
        names.push((name, export));
    }
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut counts = names.iter().map(|(_, export)| export.sets.len());
    let total = counts.try_fold(1_usize, usize::checked_mul);
    let total = total.filter(|total| *total <= MAX_COMBINATIONS);
    let mut combinations = vec![(AnyMap::new(), String::new())];
    let total = total.ok_or(Error::TooMany)?;
    if total == 0 {
        return Ok(Vec::new());
    }
    // Each set is in as many combinations as the other providers make.
    let sizes = names.iter();
    bounded(sizes.map(|(_, export)| size(export).saturating_mul(total / export.sets.len())))?;
    for (name, export) in &names {
        let sets = completed(export);
        combinations = combinations
            .iter()
            .flat_map(|(before, ids)| {
                sets.iter().map(move |set| {
                    let mut combination = before.clone();
                    let id = set.get("id").map(text).unwrap_or_default();
                    combination.insert(name.clone(), Value::Object(set.clone()));
                    (combination, format!("{ids}/{id}"))
                })
            })
            .collect();
    }
    let with_id = combinations.into_iter().map(|(mut combination, ids)| {
        combination.insert("id".to_owned(), checksum(&ids).into());
        combination
    });
    Ok(with_id.collect())
}

/// The name of a provider in templates, where it must be a word.
#[must_use]
pub fn normalized(name: &str) -> String {
    let is_of_words = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let characters = name.to_lowercase();
    let characters = characters.chars();
    characters
        .map(|character| if is_of_words(character) { character } else { '_' })
        .collect()
}

/// Adler-32 in decimals: the identity of what has no number.
#[must_use]
pub fn checksum(text: &str) -> String {
    adler2::adler32_slice(text.as_bytes()).to_string()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str, sets: &[Value]) -> Export {
        Export {
            kind: "ResourceSetInputProvider",
            name: name.to_owned(),
            namespace: "apps".to_owned(),
            is_of_requests: false,
            sets: sets.iter().map(|set| set.as_object().unwrap().clone()).collect(),
        }
    }

    fn permute(exports: &[Export], with_empty: Option<bool>) -> Result<Vec<AnyMap>, Error> {
        let strategy = InputStrategy {
            name: StrategyName::Permute,
            include_empty_providers: with_empty,
        };
        combine(Some(&strategy), exports)
    }

    #[test]
    fn flattened_sets_follow_each_other_and_know_their_provider() {
        let sets = combine(
            None,
            &[
                export("a", &[json!({"id": "1", "x": 1}), json!({"x": 2})]),
                export("b", &[json!({"y": 3})]),
            ],
        )
        .unwrap();
        let seen: Vec<_> = sets
            .iter()
            .map(|set| {
                (
                    set["provider"]["name"].clone(),
                    set.get("x").cloned(),
                    set["id"].is_string(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (json!("a"), Some(json!(1)), true),
                (json!("a"), Some(json!(2)), true),
                (json!("b"), None, true)
            ]
        );
        assert_eq!(sets[0]["id"], "1");
        assert_ne!(sets[1]["id"], sets[2]["id"]);
        assert_eq!(sets[0]["provider"]["apiVersion"], "fluxcd.controlplane.io/v1");
    }

    #[test]
    fn permuted_sets_are_all_combinations_by_the_names_of_providers() {
        let two = export("my-apps", &[json!({"x": 1}), json!({"x": 2})]);
        let three = export("Clusters", &[json!({"y": 1}), json!({"y": 2}), json!({"y": 3})]);
        let sets = permute(&[two.clone(), three], None).unwrap();
        assert_eq!(sets.len(), 6);
        assert_eq!(sets[0]["my_apps"]["x"], 1);
        assert_eq!(sets[5]["clusters"]["y"], 3);
        let ids: std::collections::BTreeSet<_> = sets.iter().map(|set| set["id"].to_string()).collect();
        assert_eq!(ids.len(), 6);
        let empty = export("none", &[]);
        assert_eq!(permute(&[two.clone(), empty.clone()], None).unwrap().len(), 2);
        assert_eq!(permute(&[two.clone(), empty], Some(true)).unwrap().len(), 0);
        assert_eq!(permute(&[], None).unwrap().len(), 0);
        let error = permute(&[two, export("my_apps", &[json!({})])], None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "'my-apps' and 'my_apps' are both 'my_apps' in templates: rename one of them"
        );
    }

    #[test]
    fn too_many_combinations_are_refused_before_they_are_made() {
        let many: Vec<Value> = (0..101).map(|x| json!({"x": x})).collect();
        assert_eq!(
            permute(&[export("a", &many), export("b", &many)], None),
            Err(Error::TooMany)
        );
    }

    #[test]
    fn a_large_set_is_not_copied_into_thousands_of_combinations() {
        let large = export("large", &[json!({"text": "x".repeat(100_000)})]);
        let many: Vec<Value> = (0..1000).map(|x| json!({"x": x})).collect();
        let many = export("many", &many);
        assert_eq!(
            permute(&[large.clone(), many.clone()], None),
            Err(Error::TooLarge)
        );
        assert_eq!(combine(None, &[large, many]).unwrap().len(), 1001);
        let huge = export("huge", &vec![json!({"text": "x".repeat(100_000)}); 700]);
        assert_eq!(combine(None, &[huge]), Err(Error::TooLarge));
    }

    #[test]
    fn the_checksum_is_adler_32() {
        assert_eq!(checksum("Wikipedia"), 0x11E6_0398_u32.to_string());
    }
}
