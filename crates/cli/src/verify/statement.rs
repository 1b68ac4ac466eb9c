//! The signed statement about a delivery (ADR 35), held against what the status says.

use delivery_graph::object::{self, list, text};
use delivery_statement::{METADATA, Object, check, lists, open};
use manifest::ObjectId;
use serde_json::Value;
use signature::cosign::PublicKey;

use super::chain::{Link, Verdict};

/// Whether the controller has signed what it says that it delivered.
pub(super) fn link(
    name: &str,
    deliverer: Option<&Value>,
    below: Option<&ObjectId>,
    keys: &[PublicKey],
) -> Link {
    let link = |verdict, message: String| Link::new("statement", name.to_owned(), verdict, message);
    let Some(deliverer) = deliverer else {
        return link(Verdict::Unproven, "it cannot be read".to_owned());
    };
    let newest = list(deliverer, "/status/history").first();
    let statement = newest.and_then(|newest| {
        Some((
            text(newest, "/digest"),
            newest.get("metadata")?.get(METADATA)?.as_str()?,
        ))
    });
    let Some((digest, statement)) = statement else {
        let why = "its newest delivery has no signed statement (flag --delivery-statements-secret of the controller)";
        return link(Verdict::Unproven, why.to_owned());
    };
    match verify(deliverer, (digest, statement), below, keys) {
        Ok(message) => link(Verdict::Good, message),
        Err(problem) => link(
            Verdict::Broken,
            format!("its statement does not count: {problem}"),
        ),
    }
}

fn verify(
    deliverer: &Value,
    (digest, statement): (&str, &str),
    below: Option<&ObjectId>,
    keys: &[PublicKey],
) -> Result<String, String> {
    let predicate = open(statement, digest, keys)?;
    let expected = Object {
        kind: text(deliverer, "/kind"),
        namespace: object::namespace(deliverer),
        name: object::name(deliverer),
        uid: text(deliverer, "/metadata/uid"),
        generation: 0,
    };
    check(
        &predicate,
        &expected,
        text(deliverer, "/status/lastAppliedRevision"),
    )?;
    if predicate["isRemote"] == true {
        return Err("it is about a delivery to another cluster".to_owned());
    }
    let is_listed = below.and_then(|below| lists(&predicate, &below.inventory_id()));
    if let (Some(below), Some(false)) = (below, is_listed) {
        return Err(format!("it does not list {below}"));
    }
    let of = match is_listed {
        None if below.is_some() => ", without a list of objects",
        _ => "",
    };
    let account = text(&predicate, "/account");
    let account = match account.is_empty() {
        true => "itself",
        false => account,
    };
    Ok(format!(
        "{} has signed that it applied {} as {account}, {}{of}",
        text(&predicate, "/controller"),
        text(&predicate, "/revision"),
        text(&predicate, "/ended")
    ))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use delivery_statement::{Contents, Delivery, statement};
    use serde_json::json;
    use signature::cosign::SigningKey;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn key() -> SigningKey {
        let made = Command::new("openssl")
            .args(["genpkey", "-algorithm", "ed25519"])
            .output();
        SigningKey::from_pem(&made.unwrap().stdout).unwrap()
    }

    fn deliverer(signer: &SigningKey, change: impl FnOnce(&mut Delivery<'_>), digest: &str) -> Value {
        let mut delivery = Delivery {
            object: Object {
                kind: "Kustomization",
                namespace: "apps",
                name: "web",
                uid: "u",
                generation: 1,
            },
            controller: "kustomize-controller",
            account: None,
            is_remote: false,
            source: "GitRepository/apps/web",
            revision: "main@sha1:1",
            origin: None,
            artifact: Some(DIGEST),
            succeeded: true,
            reason: "ReconciliationSucceeded",
        };
        change(&mut delivery);
        let object = json!({});
        let contents = Contents::of([(
            "n_web_apps_Deployment".to_owned(),
            object.as_object().unwrap(),
            false,
        )]);
        let times = (jiff::Timestamp::UNIX_EPOCH, jiff::Timestamp::UNIX_EPOCH);
        let envelope = signer
            .attest(&statement(&delivery, DIGEST, Some(&contents), times))
            .unwrap();
        json!({
            "kind": "Kustomization", "metadata": {"namespace": "apps", "name": "web", "uid": "u"},
            "status": {
                "lastAppliedRevision": "main@sha1:1",
                "history": [{"digest": digest, "metadata": {METADATA: envelope}}],
            },
        })
    }

    fn verdict(deliverer: &Value, below: &str, key: &SigningKey) -> (Verdict, String) {
        let below = ObjectId::parse_inventory_id(below).unwrap();
        let link = link("k", Some(deliverer), Some(&below), &[key.public_key()]);
        (link.verdict, link.message)
    }

    #[test]
    fn a_statement_counts_only_for_the_delivery_that_it_is_about() {
        let (ours, theirs) = (key(), key());
        let web = "n_web_apps_Deployment";
        let good = deliverer(&ours, |_| {}, DIGEST);
        let (found, message) = verdict(&good, web, &ours);
        assert_eq!(found, Verdict::Good, "{message}");
        assert!(
            message.starts_with("kustomize-controller has signed that it applied main@sha1:1 as itself"),
            "{message}"
        );

        let broken = [
            (deliverer(&theirs, |_| {}, DIGEST), web),
            (good.clone(), "n_other_apps_Deployment"),
            (
                deliverer(&ours, |delivery| delivery.object.uid = "v", DIGEST),
                web,
            ),
            (
                deliverer(&ours, |delivery| delivery.object.name = "db", DIGEST),
                web,
            ),
            (
                deliverer(&ours, |delivery| delivery.revision = "main@sha1:2", DIGEST),
                web,
            ),
            (
                deliverer(&ours, |delivery| delivery.succeeded = false, DIGEST),
                web,
            ),
            (
                deliverer(&ours, |delivery| delivery.is_remote = true, DIGEST),
                web,
            ),
            (deliverer(&ours, |_| {}, &DIGEST.replace('e', "f")), web),
        ];
        for (number, (deliverer, below)) in broken.iter().enumerate() {
            let (found, message) = verdict(deliverer, below, &ours);
            assert_eq!(found, Verdict::Broken, "{number}: {message}");
        }
        assert_eq!(verdict(&json!({"status": {}}), web, &ours).0, Verdict::Unproven);
    }
}
