//! The little of XML that token services speak: the text of elements, wherever they stand.

use quick_xml::Reader;
use quick_xml::events::Event;

/// The text of the first element of each of these names; None when one is missing or the document is none.
pub(crate) fn texts<const N: usize>(document: &[u8], names: [&str; N]) -> Option<[String; N]> {
    let mut found: [Option<String>; N] = [const { None }; N];
    let mut reader = Reader::from_reader(document);
    let mut buffer = Vec::new();
    let mut wanted = None;
    loop {
        match reader.read_event_into(&mut buffer).ok()? {
            Event::Start(element) => {
                let name = element.local_name();
                let is_new = |index: &usize| found[*index].is_none();
                wanted = names
                    .iter()
                    .position(|wanted| *wanted == name.as_ref())
                    .filter(is_new);
                if let Some(index) = wanted {
                    found[index] = Some(String::new());
                }
            }
            Event::Text(text) => {
                if let Some(index) = wanted {
                    let text = text.xml10_content();
                    found[index].get_or_insert_default().push_str(&text);
                }
            }
            Event::GeneralRef(reference) => {
                if let Some(index) = wanted {
                    found[index].get_or_insert_default().push(character(&reference)?);
                }
            }
            Event::End(_) => wanted = None,
            Event::Eof => break,
            _ => {}
        }
        buffer.clear();
    }
    let mut texts = [const { String::new() }; N];
    for (text, found) in texts.iter_mut().zip(found) {
        *text = found?;
    }
    Some(texts)
}

/// The character of `&amp;` or `&#38;`.
fn character(reference: &quick_xml::events::BytesRef<'_>) -> Option<char> {
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
    use super::texts;

    #[test]
    fn elements_are_found_wherever_they_stand() {
        let document =
            br#"<?xml version="1.0"?><R xmlns="urn:x"><C><Id>a&amp;b&#x21;</Id><S>s</S></C><Id>no</Id></R>"#;
        assert_eq!(
            texts(document, ["Id", "S"]),
            Some(["a&b!".to_owned(), "s".to_owned()])
        );
        assert_eq!(texts(document, ["Missing"]), None);
        assert_eq!(texts(b"<a", ["a"]), None);
        assert_eq!(texts(b"{}", ["a"]), None);
    }
}
