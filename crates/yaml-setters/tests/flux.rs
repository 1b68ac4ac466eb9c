//! Flux's own test data: what its image-automation-controller sets, we set, and nothing else. Go downloads the data.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use yaml_setters::{Setters, Update, update};

const DIGEST: &str = "sha256:6745aaad46d795c9836632e1fb62f24b7e7f4c843144da8e47a5465c411a14be";

/// The values of a policy.
fn set(setters: &mut Setters, policy: &str, name: &str, tag: &str, digest: &str) {
    let image = match digest {
        "" => format!("{name}:{tag}"),
        digest => format!("{name}:{tag}@{digest}"),
    };
    setters.insert(policy.to_owned(), image);
    for (part, value) in [("name", name), ("tag", tag), ("digest", digest)] {
        setters.insert(format!("{policy}:{part}"), value.to_owned());
    }
}

fn files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("no folder {}", folder.display()))?;
    let mut files = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, std::fs::read_to_string(entry.path())?);
    }
    Ok(files)
}

fn updated(text: &str, setters: &Setters) -> Result<Update> {
    let update = update(text, "$imagepolicy", setters);
    update.map_err(|error| anyhow::anyhow!("line {}: {}", error.line, error.problem))
}

#[test]
fn the_setters_of_flux_set_the_same_values() -> Result<()> {
    let data = testkit::tools::image_automation_source()?.join("internal/update/testdata/setters");
    let mut setters = Setters::default();
    set(
        &mut setters,
        "automation-ns:policy",
        "index.repo.fake/updated",
        "v1.0.1",
        "",
    );
    set(&mut setters, "automation-ns:unchanged", "image", "v1.0.0", "");
    set(
        &mut setters,
        "automation-ns:policy-with-digest",
        "image",
        "v1.0.0",
        DIGEST,
    );
    let (original, expected) = (files(&data.join("original"))?, files(&data.join("expected"))?);
    let mut changed = 0;
    for (name, text) in &original {
        let update = updated(text, &setters)?;
        changed += update.changes.len();
        // Flux writes only files that change.
        assert_eq!(update.text.as_ref(), expected.get(name), "{name}");
    }
    ensure!(
        original.len() > expected.len() && changed == 7,
        "{changed} changes"
    );
    Ok(())
}

#[test]
fn files_of_applications_are_set_as_by_flux() -> Result<()> {
    let data = testkit::tools::image_automation_source()?.join("internal/policy/testdata");
    for (folder, expected) in [
        ("appconfig", "appconfig-setters-expected"),
        ("pathconfig/yes", "pathconfig-expected/yes"),
    ] {
        let text = std::fs::read_to_string(data.join(folder).join("deploy.yaml"))?;
        let expected = std::fs::read_to_string(data.join(expected).join("deploy.yaml"))?;
        let marker = "SETTER_SITE";
        ensure!(text.contains(marker), "{folder} has no {marker}");
        let marked = |text: &str| text.replace(marker, "{\"$imagepolicy\": \"test-ns:policy1\"}");
        let mut setters = Setters::default();
        set(&mut setters, "test-ns:policy1", "helloworld", "1.0.1", "");
        let update = updated(&marked(&text), &setters)?;
        assert_eq!(update.text.as_deref(), Some(&*marked(&expected)), "{folder}");
    }
    Ok(())
}
