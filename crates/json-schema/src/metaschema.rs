//! The metaschemas of all drafts, published by json-schema.org; titles, comments and defaults are left out.

/// The text of a metaschema by its URL.
pub(super) fn text(url: &str) -> Option<&'static str> {
    let name = url
        .strip_prefix("http://json-schema.org/")
        .or_else(|| url.strip_prefix("https://json-schema.org/"))?;
    Some(match name {
        "draft-04/schema" => include_str!("metaschema/draft-04.json"),
        "draft-06/schema" => include_str!("metaschema/draft-06.json"),
        "draft-07/schema" => include_str!("metaschema/draft-07.json"),
        "draft/2019-09/schema" => include_str!("metaschema/2019-09.json"),
        "draft/2019-09/meta/applicator" => include_str!("metaschema/2019-09/applicator.json"),
        "draft/2019-09/meta/content" => include_str!("metaschema/2019-09/content.json"),
        "draft/2019-09/meta/core" => include_str!("metaschema/2019-09/core.json"),
        "draft/2019-09/meta/format" => include_str!("metaschema/2019-09/format.json"),
        "draft/2019-09/meta/meta-data" => include_str!("metaschema/2019-09/meta-data.json"),
        "draft/2019-09/meta/validation" => include_str!("metaschema/2019-09/validation.json"),
        "schema" | "draft/2020-12/schema" => include_str!("metaschema/2020-12.json"),
        "draft/2020-12/meta/applicator" => include_str!("metaschema/2020-12/applicator.json"),
        "draft/2020-12/meta/content" => include_str!("metaschema/2020-12/content.json"),
        "draft/2020-12/meta/core" => include_str!("metaschema/2020-12/core.json"),
        "draft/2020-12/meta/format-annotation" => include_str!("metaschema/2020-12/format-annotation.json"),
        "draft/2020-12/meta/format-assertion" => include_str!("metaschema/2020-12/format-assertion.json"),
        "draft/2020-12/meta/meta-data" => include_str!("metaschema/2020-12/meta-data.json"),
        "draft/2020-12/meta/unevaluated" => include_str!("metaschema/2020-12/unevaluated.json"),
        "draft/2020-12/meta/validation" => include_str!("metaschema/2020-12/validation.json"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::draft::Draft;
    use super::*;

    #[test]
    fn every_draft_has_a_metaschema_that_fits_itself() {
        for draft in [Draft::D4, Draft::D6, Draft::D7, Draft::D2019, Draft::D2020] {
            let text = text(draft.url()).expect("known");
            assert!(super::super::Compiled::new(text.as_bytes()).is_ok(), "{draft:?}");
        }
    }
}
