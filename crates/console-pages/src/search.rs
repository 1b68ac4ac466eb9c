//! What is typed into the search field: words, and `ns:shop`, `kind:ks`, `status:failed` and so on.

use fleet::query::Parameters;

/// A search, and further parameters of a list.
#[derive(Debug, Default)]
pub struct Search {
    /// As it was typed.
    pub typed: String,
    /// What it asks for, with the other parameters.
    pub parameters: Parameters,
}

/// Bytes of a search that are looked at.
const MAX_TYPED: usize = 500;

impl Search {
    /// Reads what was typed into a list's parameters.
    pub fn read(typed: &str, mut parameters: Parameters) -> Self {
        let mut end = typed.len().min(MAX_TYPED);
        while !typed.is_char_boundary(end) {
            end -= 1;
        }
        let typed = &typed[..end];
        let mut words = Vec::new();
        for word in typed.split_whitespace() {
            let known = word.split_once(':').filter(|(_, value)| !value.is_empty());
            let Some((field, value)) =
                known.and_then(|(key, value)| Some((field(&mut parameters, key)?, value)))
            else {
                words.push(word);
                continue;
            };
            if !field.is_empty() {
                field.push(',');
            }
            field.push_str(value);
        }
        if !words.is_empty() {
            parameters.text = words.join(" ");
        }
        if let Some(status) = status(&parameters.status) {
            parameters.status = status;
        }
        Self {
            typed: typed.to_owned(),
            parameters,
        }
    }
}

fn field<'p>(parameters: &'p mut Parameters, key: &str) -> Option<&'p mut String> {
    Some(match key {
        "ns" | "namespace" => &mut parameters.namespace,
        "kind" => &mut parameters.kind,
        "cluster" => &mut parameters.cluster,
        "status" => &mut parameters.status,
        "label" => &mut parameters.label,
        "commit" | "revision" => &mut parameters.revision,
        "image" => &mut parameters.image,
        "chart" => &mut parameters.chart,
        "version" => &mut parameters.version,
        "source" => &mut parameters.source,
        "repo" | "repository" => &mut parameters.repository,
        _ => return None,
    })
}

/// Statuses in any case of letters.
fn status(text: &str) -> Option<String> {
    let known = ["Ready", "Failed", "InProgress", "Suspended", "Unknown"];
    let words: Option<Vec<&str>> = text
        .split(',')
        .filter(|word| !word.is_empty())
        .map(|word| known.into_iter().find(|known| known.eq_ignore_ascii_case(word)))
        .collect();
    words.map(|words| words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_from_words() {
        let search = Search::read(
            "web  ns:shop ns:bank status:failed kind: http://x api",
            Parameters::default(),
        );
        let Parameters {
            namespace,
            status,
            text,
            kind,
            ..
        } = search.parameters;
        assert_eq!(
            (&*namespace, &*status, &*text, &*kind),
            ("shop,bank", "Failed", "web kind: http://x api", "")
        );
        let long = Search::read(&"é".repeat(400), Parameters::default());
        assert_eq!(long.typed.len(), 500);
    }
}
