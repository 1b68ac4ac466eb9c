//! Many automations and a person at one branch.

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::git::Change;

use crate::world::play;

#[test]
fn nothing_is_lost_and_nothing_forced_when_many_push_to_one_branch() {
    const AUTOMATIONS: usize = 20;
    const PERSON: usize = 10;
    play("races", async |scene| {
        let path = |number: usize| format!("apps/{number}/app.yaml");
        let text = |number: usize, tag: &str| {
            let image = scene.image("web");
            format!(
                "number: {number}\nimage: {image}:{tag} # {{\"$imagepolicy\": \"{}:web\"}}\n",
                scene.namespace
            )
        };
        let files: Vec<_> = (0..AUTOMATIONS)
            .map(|number| (path(number), text(number, "0")))
            .collect();
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let repository = scene.git(&files).await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        for number in 0..AUTOMATIONS {
            let spec = json!({"update": {"path": format!("./apps/{number}")}});
            scene.automate(&format!("auto-{number}"), json!({}), spec).await?;
        }
        // A person pushes in between, with what Git itself takes for a fast-forward.
        let person = repository.clone();
        let pushing = tokio::task::spawn_blocking(move || -> Result<()> {
            for number in 0..PERSON {
                let change = Change::write(&format!("person/{number}"), "x");
                while person
                    .commit("main", &format!("person {number}"), std::slice::from_ref(&change))
                    .is_err()
                {}
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            Ok(())
        });
        for number in 0..AUTOMATIONS {
            scene.pushed(&format!("auto-{number}"), "").await?;
        }
        pushing.await??;
        let log = repository.git(&["log", "--format=%s", "main"])?;
        for number in 0..PERSON {
            let subject = format!("person {number}");
            ensure!(
                log.lines().filter(|line| *line == subject).count() == 1,
                "{subject} in {log}"
            );
        }
        // Each automation made one commit, and the first one, and the person's.
        assert_eq!(log.lines().count(), 1 + AUTOMATIONS + PERSON, "{log}");
        for number in 0..AUTOMATIONS {
            let found = repository.git(&["show", &format!("main:{}", path(number))])?;
            assert_eq!(found.trim_end(), text(number, "1.0.0").trim_end());
        }
        Ok(())
    });
}
