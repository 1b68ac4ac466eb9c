//! Recorded real repositories: what is set differs, and no other byte. Skipped where they are not there.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use yaml_setters::{Image, Outcome, Setters, Unmarked, Update, update, update_with};

const MARKER: &str = r##" # {"$imagepolicy": "ns:app"}"##;
const NEW_TAG: &str = "9.9.9-new";

/// The texts of all YAML files, by case and path.
fn texts() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/kustomize/cases");
    let mut texts = BTreeMap::new();
    for case in std::fs::read_dir(folder).into_iter().flatten() {
        let case = case.unwrap().path();
        let Ok(input) = std::fs::File::open(case.join("input.tgz")) else {
            continue;
        };
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(input));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            let is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
            if is_yaml && entry.read_to_string(&mut text).is_ok() {
                texts.insert(format!("{}/{path}", case.file_name().unwrap().display()), text);
            }
        }
    }
    texts
}

/// The image in a line such as `- image: "app:1"`, if it is written plainly.
fn image(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    let value = value.strip_prefix(' ')?.trim();
    let inner = value.trim_matches(['"', '\'']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./:@_-".contains(c);
    let is_image = key.trim_start_matches(['-', ' ']) == "image" && !inner.is_empty();
    (is_image && inner.chars().all(is_plain) && inner.contains(|c: char| c.is_ascii_alphanumeric()))
        .then_some(inner)
}

/// Checks that exactly the changes differ, each in its line.
fn check(name: &str, before: &str, updated: &Update) {
    let Some(after) = &updated.text else {
        assert!(updated.changes.is_empty(), "{name}");
        return;
    };
    let mut expected: Vec<String> = before.split('\n').map(str::to_owned).collect();
    for change in &updated.changes {
        let line = &mut expected[change.line as usize - 1];
        let at = line
            .rfind(&change.old)
            .unwrap_or_else(|| panic!("{name}:{}: {line}", change.line));
        // In a comment behind the value, it may stand once more.
        let at = line[..at]
            .rfind(&change.old)
            .filter(|_| line[..at].contains('#'))
            .unwrap_or(at);
        line.replace_range(at..at + change.old.len(), &change.new);
    }
    for (number, (expected, actual)) in expected.iter().zip(after.split('\n')).enumerate() {
        assert_eq!(actual, expected, "{name}:{}", number + 1);
    }
    assert_eq!(after.split('\n').count(), expected.len(), "{name}");
}

#[test]
fn marked_images_of_real_repositories_are_set_and_nothing_else() {
    let setters: Setters = [("ns:app".to_owned(), format!("registry.example/app:{NEW_TAG}"))].into();
    let (mut files, mut changed, mut marked) = (0, 0, 0);
    let texts = texts();
    for (name, text) in &texts {
        let lines = text.split('\n').map(|line| match image(line) {
            Some(_) => {
                marked += 1;
                let end = line.trim_end();
                format!("{end}{MARKER}{}", &line[end.len()..])
            }
            None => line.to_owned(),
        });
        let with_markers = lines.collect::<Vec<_>>().join("\n");
        if let Ok(updated) = update(&with_markers, "$imagepolicy", &setters) {
            check(name, &with_markers, &updated);
            changed += updated.changes.len();
            files += usize::from(updated.text.is_some());
        }
    }
    println!(
        "{} texts, {files} changed, {changed} of {marked} values",
        texts.len()
    );
    // Some stand in templates that are no YAML, or in the text of a block.
    assert!(
        texts.is_empty() || changed > 300 && changed * 10 > marked * 9,
        "{changed} of {marked}"
    );
}

#[test]
fn unmarked_images_of_real_repositories_are_set_and_nothing_else() {
    let (mut files, mut changed) = (0, 0);
    let texts = texts();
    for (name, text) in &texts {
        let names: BTreeSet<&str> = text
            .split('\n')
            .filter_map(image)
            .map(|image| image.split('@').next().unwrap_or(image))
            .filter_map(|image| image.rsplit_once(':'))
            .map(|(name, _)| name)
            .collect();
        let images = names.iter().map(|name| Image {
            setter: (*name).to_owned(),
            name: (*name).to_owned(),
            tag: NEW_TAG.to_owned(),
            digest: format!("sha256:{}", "0".repeat(64)),
        });
        let unmarked = Unmarked {
            containers: true,
            kustomizations: true,
            values: true,
            images: images.collect(),
            ..Unmarked::default()
        };
        let Ok(updated) = update_with(text, "$imagepolicy", &Setters::new(), &unmarked) else {
            continue;
        };
        check(name, text, &updated);
        changed += updated.changes.len();
        files += usize::from(updated.text.is_some());
        let again = updated
            .text
            .as_deref()
            .map(|text| update_with(text, "$imagepolicy", &Setters::new(), &unmarked));
        if let Some(again) = again {
            assert!(
                again.unwrap().changes.is_empty(),
                "{name}: a second run changes more"
            );
        }
        assert!(
            updated
                .markers
                .iter()
                .all(|marker| marker.outcome != Outcome::UnknownSetter),
            "{name}"
        );
    }
    println!("{} texts, {files} changed, {changed} values", texts.len());
    assert!(texts.is_empty() || changed > 300, "{changed}");
}
