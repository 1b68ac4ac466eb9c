//! Classes of characters by name, with the names that Go has.
//!
//! The tables are those of the engine's crate; Go's are of Unicode 15.0, so that characters which are younger may differ.

use std::cmp::Ordering;
use std::sync::OnceLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// `\d`, `\s` and `\w`, which are ASCII only.
pub(crate) fn perl_class(letter: u8) -> Option<ClassUnicode> {
    Some(match letter {
        b'd' => ascii(&[('0', '9')]),
        b's' => ascii(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
        b'w' => ascii(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        _ => return None,
    })
}

/// The class of `[:name:]`.
pub(crate) fn posix_class(name: &[u8]) -> Option<ClassUnicode> {
    Some(ascii(match name {
        b"alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        b"alpha" => &[('A', 'Z'), ('a', 'z')],
        b"ascii" => &[('\0', '\x7f')],
        b"blank" => &[('\t', '\t'), (' ', ' ')],
        b"cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        b"digit" => &[('0', '9')],
        b"graph" => &[('!', '~')],
        b"lower" => &[('a', 'z')],
        b"print" => &[(' ', '~')],
        b"punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        b"space" => &[('\t', '\r'), (' ', ' ')],
        b"upper" => &[('A', 'Z')],
        b"word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        b"xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    }))
}

/// The class of `\p{name}`: a general category, one of their long names, or a script.
pub(crate) fn named_class(name: &[u8]) -> Option<ClassUnicode> {
    let name = canonical_name(str::from_utf8(name).ok()?);
    match name.as_str() {
        "Any" => return Some(range(0, char::MAX.into())),
        "Ascii" => return posix_class(b"ascii"),
        "Assigned" => {
            let mut class = property("Cn")?;
            class.negate();
            return Some(class);
        }
        // No text has surrogates.
        "Cs" | "Surrogate" => return Some(ClassUnicode::empty()),
        _ => {}
    }
    let is_known = CATEGORIES.contains(&name.as_str()) || SCRIPTS.binary_search(&name.as_str()).is_ok();
    if is_known { property(&name) } else { None }
}

/// The characters from one code to another; surrogates among them are left out.
pub(crate) fn range(low: u32, high: u32) -> ClassUnicode {
    let below = (low, high.min(0xD7FF));
    let above = (low.max(0xE000), high);
    let ranges = [below, above].into_iter().filter(|(low, high)| low <= high);
    let ranges = ranges.filter_map(|(low, high)| Some((char::from_u32(low)?, char::from_u32(high)?)));
    ClassUnicode::new(ranges.map(|(low, high)| ClassUnicodeRange::new(low, high)))
}

/// Adds what differs from the characters of the class only in case.
pub(crate) fn fold_case(class: &mut ClassUnicode) {
    class
        .try_case_fold_simple()
        .expect("the feature unicode-case is enabled");
}

/// Go's unicode.IsLetter and unicode.IsDigit.
pub(crate) fn is_letter_or_digit(c: char) -> bool {
    static CLASS: OnceLock<ClassUnicode> = OnceLock::new();
    let class = CLASS.get_or_init(|| {
        let mut class = property("L").unwrap_or_else(ClassUnicode::empty);
        class.union(&property("Nd").unwrap_or_else(ClassUnicode::empty));
        class
    });
    let order = |range: &ClassUnicodeRange| match (range.start() > c, range.end() < c) {
        (true, _) => Ordering::Greater,
        (_, true) => Ordering::Less,
        _ => Ordering::Equal,
    };
    class.ranges().binary_search_by(order).is_ok()
}

fn ascii(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(
        ranges
            .iter()
            .map(|&(low, high)| ClassUnicodeRange::new(low, high)),
    )
}

fn property(name: &str) -> Option<ClassUnicode> {
    let hir = regex_syntax::parse(&format!(r"\p{{{name}}}")).ok()?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        // A class of one character, such as Zl, comes as that.
        HirKind::Literal(literal) => {
            let c = u32::from(str::from_utf8(&literal.0).ok()?.chars().next()?);
            Some(range(c, c))
        }
        _ => None,
    }
}

/// First letter large, others small, nothing between: in this form Go looks names up, even those of scripts, whose
/// own names have underscores. So `\p{Old_Italic}` is refused, as there is no script of the name `Olditalic`.
fn canonical_name(name: &str) -> String {
    let mut letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first
        .into_iter()
        .chain(letters.map(|c| c.to_ascii_lowercase()))
        .collect()
}

const CATEGORIES: &[&str] = &[
    "C",
    "Cc",
    "Cf",
    "Cn",
    "Co",
    "L",
    "Lc",
    "Ll",
    "Lm",
    "Lo",
    "Lt",
    "Lu",
    "M",
    "Mc",
    "Me",
    "Mn",
    "N",
    "Nd",
    "Nl",
    "No",
    "P",
    "Pc",
    "Pd",
    "Pe",
    "Pf",
    "Pi",
    "Po",
    "Ps",
    "S",
    "Sc",
    "Sk",
    "Sm",
    "So",
    "Z",
    "Zl",
    "Zp",
    "Zs",
    "Casedletter",
    "Closepunctuation",
    "Cntrl",
    "Combiningmark",
    "Connectorpunctuation",
    "Control",
    "Currencysymbol",
    "Dashpunctuation",
    "Decimalnumber",
    "Digit",
    "Enclosingmark",
    "Finalpunctuation",
    "Format",
    "Initialpunctuation",
    "Letter",
    "Letternumber",
    "Lineseparator",
    "Lowercaseletter",
    "Mark",
    "Mathsymbol",
    "Modifierletter",
    "Modifiersymbol",
    "Nonspacingmark",
    "Number",
    "Openpunctuation",
    "Other",
    "Otherletter",
    "Othernumber",
    "Otherpunctuation",
    "Othersymbol",
    "Paragraphseparator",
    "Privateuse",
    "Punct",
    "Punctuation",
    "Separator",
    "Spaceseparator",
    "Spacingmark",
    "Symbol",
    "Titlecaseletter",
    "Unassigned",
    "Uppercaseletter",
];

/// Those of Go's scripts that have no underscore and no inner capital, sorted.
const SCRIPTS: &[&str] = &[
    "Adlam",
    "Ahom",
    "Arabic",
    "Armenian",
    "Avestan",
    "Balinese",
    "Bamum",
    "Batak",
    "Bengali",
    "Bhaiksuki",
    "Bopomofo",
    "Brahmi",
    "Braille",
    "Buginese",
    "Buhid",
    "Carian",
    "Chakma",
    "Cham",
    "Cherokee",
    "Chorasmian",
    "Common",
    "Coptic",
    "Cuneiform",
    "Cypriot",
    "Cyrillic",
    "Deseret",
    "Devanagari",
    "Dogra",
    "Duployan",
    "Elbasan",
    "Elymaic",
    "Ethiopic",
    "Georgian",
    "Glagolitic",
    "Gothic",
    "Grantha",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Han",
    "Hangul",
    "Hanunoo",
    "Hatran",
    "Hebrew",
    "Hiragana",
    "Inherited",
    "Javanese",
    "Kaithi",
    "Kannada",
    "Katakana",
    "Kawi",
    "Kharoshthi",
    "Khmer",
    "Khojki",
    "Khudawadi",
    "Lao",
    "Latin",
    "Lepcha",
    "Limbu",
    "Lisu",
    "Lycian",
    "Lydian",
    "Mahajani",
    "Makasar",
    "Malayalam",
    "Mandaic",
    "Manichaean",
    "Marchen",
    "Medefaidrin",
    "Miao",
    "Modi",
    "Mongolian",
    "Mro",
    "Multani",
    "Myanmar",
    "Nabataean",
    "Nandinagari",
    "Newa",
    "Nko",
    "Nushu",
    "Ogham",
    "Oriya",
    "Osage",
    "Osmanya",
    "Palmyrene",
    "Phoenician",
    "Rejang",
    "Runic",
    "Samaritan",
    "Saurashtra",
    "Sharada",
    "Shavian",
    "Siddham",
    "Sinhala",
    "Sogdian",
    "Soyombo",
    "Sundanese",
    "Syriac",
    "Tagalog",
    "Tagbanwa",
    "Takri",
    "Tamil",
    "Tangsa",
    "Tangut",
    "Telugu",
    "Thaana",
    "Thai",
    "Tibetan",
    "Tifinagh",
    "Tirhuta",
    "Toto",
    "Ugaritic",
    "Vai",
    "Vithkuqi",
    "Wancho",
    "Yezidi",
    "Yi",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_go_knows_is_known_to_the_engine() {
        assert!(SCRIPTS.is_sorted());
        for name in CATEGORIES.iter().chain(SCRIPTS) {
            assert!(named_class(name.as_bytes()).is_some(), "{name}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for name in [
            "Han",
            "han",
            "HAN",
            "Lu",
            "lu",
            "LC",
            "Uppercase_Letter",
            "uppercase letter",
            "ANY",
            "Ascii",
        ] {
            assert!(named_class(name.as_bytes()).is_some(), "{name}");
        }
        for name in [
            "",
            "Old_Italic",
            "Olditalic",
            "SignWriting",
            "Latn",
            "Greek2",
            "Alphabetic",
            "\u{130}",
        ] {
            assert!(named_class(name.as_bytes()).is_none(), "{name}");
        }
    }
}
