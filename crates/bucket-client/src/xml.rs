//! Listings in XML, of S3 and of Azure: records with some fields, and fields beside them.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

/// Elements in elements deeper than this are nonsense.
const MAX_DEPTH: usize = 16;

/// Texts by the name of their element.
pub(super) type Fields = BTreeMap<&'static str, String>;

/// Wanted fields of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) records: Vec<Fields>,
    /// Fields outside of records.
    pub(super) fields: Fields,
}

/// Reads the fields of these names, of elements named `record` and outside of them. None if it is no XML.
pub(super) fn read(document: &[u8], record: &str, names: &[&'static str]) -> Option<Document> {
    let mut found = Document::default();
    let mut current: Option<Fields> = None;
    let mut text: Option<(&'static str, String)> = None;
    let mut depth = 0_usize;
    let mut reader = Reader::from_reader(document);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return None;
                }
                let name = element.local_name();
                if name.as_ref() == record {
                    current = Some(Fields::new());
                }
                let wanted = names.iter().find(|wanted| **wanted == name.as_ref());
                text = wanted.map(|name| (*name, String::new()));
            }
            // Azure ends its last page with `<NextMarker />`.
            Event::Empty(element) => {
                let name = element.local_name();
                if let Some(name) = names.iter().find(|wanted| **wanted == name.as_ref()) {
                    let fields = current.as_mut().unwrap_or(&mut found.fields);
                    fields.entry(*name).or_default();
                }
            }
            Event::Text(piece) => push(&mut text, &piece.xml10_content()),
            Event::CData(piece) => push(&mut text, &piece.xml10_content()),
            Event::GeneralRef(reference) => push(&mut text, &character(&reference)?.to_string()),
            Event::End(element) => {
                depth = depth.checked_sub(1)?;
                if let Some((name, text)) = text.take() {
                    // The first counts: those below may be of something else.
                    let fields = current.as_mut().unwrap_or(&mut found.fields);
                    fields.entry(name).or_insert(text);
                }
                if element.local_name().as_ref() == record {
                    found.records.extend(current.take());
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    (depth == 0 && (!found.records.is_empty() || !found.fields.is_empty())).then_some(found)
}

fn push(text: &mut Option<(&'static str, String)>, piece: &str) {
    if let Some((_, text)) = text {
        text.push_str(piece);
    }
}

/// The character of `&amp;` or `&#38;`.
fn character(reference: &BytesRef<'_>) -> Option<char> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character);
    }
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_what_stands_beside_them_are_read() {
        let text = br#"<?xml version="1.0"?><R xmlns="urn:x"><Name>bucket</Name>
            <Contents><Key>a&amp;b &#x21;</Key><ETag>&quot;1&quot;</ETag><Owner><ID>x</ID></Owner></Contents>
            <Contents><Key>c</Key><ETag><![CDATA["2"]]></ETag></Contents><IsTruncated>true</IsTruncated></R>"#;
        let found = read(text, "Contents", &["Key", "ETag", "IsTruncated"]).unwrap();
        let record =
            |key: &str, etag: &str| Fields::from([("Key", key.to_owned()), ("ETag", etag.to_owned())]);
        assert_eq!(found.records, [record("a&b !", "\"1\""), record("c", "\"2\"")]);
        assert_eq!(found.fields, Fields::from([("IsTruncated", "true".to_owned())]));
    }

    #[test]
    fn what_is_no_listing_is_refused() {
        let empty = read(b"<R><Next /></R>", "Contents", &["Next"]).unwrap();
        assert_eq!(empty.fields, Fields::from([("Next", String::new())]));
        let deep = "<a>".repeat(100);
        for text in [
            "",
            "{}",
            "<a>",
            "<a></b>",
            "<a>&nbsp;</a>",
            &deep,
            "<html><p>x</p></html>",
        ] {
            assert_eq!(read(text.as_bytes(), "Contents", &["Key"]), None, "{text}");
        }
    }
}
