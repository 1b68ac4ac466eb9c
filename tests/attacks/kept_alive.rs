//! A tenant wants something that left Git to stay.
//!
//! They hold: Kustomizations in a namespace of their own, one of them suspended, and (here) the right to write its status. They say
//! there that they have the platform's object. The platform must get rid of it, and be told.

use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use testkit::git::Change;
use testkit::objects;
use testkit::{wait_for, wait_until_gone};

use crate::scene::{KUSTOMIZE, PATIENCE, SOURCE, play};

#[test]
fn an_inventory_that_somebody_writes_does_not_keep_an_object_for_good() {
    play("kept-alive", |scene| async move {
        let repository = scene.world.git.create_repository(&scene.victim)?;
        let map = |name: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": scene.victim}}).to_string()
        };
        let files = [
            Change::write("deploy/stays.yaml", map("stays")),
            Change::write("deploy/goes.yaml", map("goes")),
        ];
        repository.commit("main", "both", &files)?;
        scene
            .apply(&objects::git_repository(
                &scene.victim,
                "app",
                repository.url(),
                "main",
            ))
            .await?;
        let platform = objects::kustomization(&scene.victim, "app", ("GitRepository", "app"), "./deploy");
        scene.apply(&platform).await?;
        let platforms = scene.api(KUSTOMIZE, "Kustomization", &scene.victim);
        wait_for(&platforms, "app", objects::is_ready, PATIENCE).await?;

        // Suspended, and with the platform's object in its inventory.
        let mut claim = scene.kustomization("claim", ("GitRepository", "none"));
        claim["spec"]["suspend"] = json!(true);
        scene.apply(&claim).await?;
        let claims = scene.api(KUSTOMIZE, "Kustomization", &scene.attacker);
        let entry = json!({"id": format!("{}_goes__ConfigMap", scene.victim), "v": "v1"});
        let status = json!({"inventory": {"entries": [entry]}, "observedGeneration": 1,
            "lastAppliedRevision": "main@sha1:1"});
        scene.write_status(&claims, "claim", status).await?;

        repository.commit("main", "goes", &[Change::delete("deploy/goes.yaml")])?;
        objects::poke(&scene.api(SOURCE, "GitRepository", &scene.victim), "app").await?;
        let maps = scene.api("v1", "ConfigMap", &scene.victim);
        // Patience is five minutes; this controller has less (see the scene).
        wait_until_gone(&maps, "goes", PATIENCE).await?;
        maps.get("stays").await?;
        Ok(())
    });
}

#[test]
fn labels_of_a_kustomization_that_may_not_have_an_object_do_not_keep_it() {
    play("labelled", |scene| async move {
        let repository = scene.world.git.create_repository(&scene.victim)?;
        let map = |name: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": scene.victim}}).to_string()
        };
        let files = [
            Change::write("deploy/stays.yaml", map("stays")),
            Change::write("deploy/goes.yaml", map("goes")),
            Change::write("deploy/moves.yaml", map("moves")),
        ];
        repository.commit("main", "all", &files)?;
        let source = objects::git_repository(&scene.victim, "app", repository.url(), "main");
        scene.apply(&source).await?;
        let kustomization = |name: &str, path: &str| {
            objects::kustomization(&scene.victim, name, ("GitRepository", "app"), path)
        };
        scene.apply(&kustomization("app", "./deploy")).await?;
        let platforms = scene.api(KUSTOMIZE, "Kustomization", &scene.victim);
        wait_for(&platforms, "app", objects::is_ready, PATIENCE).await?;

        // Two other Kustomizations, by whose labels both objects are theirs. The tenant's account may not change them, and the
        // platform's may.
        let mut claim = scene.kustomization("claim", ("GitRepository", "none"));
        claim["spec"]["suspend"] = json!(true);
        scene.apply(&claim).await?;
        let mut heir = kustomization("heir", "./elsewhere");
        heir["spec"]["suspend"] = json!(true);
        scene.apply(&heir).await?;
        let mut app = kustomization("app", "./deploy");
        app["spec"]["suspend"] = json!(true);
        scene.apply(&app).await?;
        let maps = scene.api("v1", "ConfigMap", &scene.victim);
        for (name, owner, namespace) in [
            ("goes", "claim", &scene.attacker),
            ("moves", "heir", &scene.victim),
        ] {
            let labels = json!({"metadata": {"labels": {
                "kustomize.toolkit.fluxcd.io/name": owner, "kustomize.toolkit.fluxcd.io/namespace": namespace}}});
            maps.patch(name, &PatchParams::default(), &Patch::Merge(labels))
                .await?;
        }

        let changes = [
            Change::delete("deploy/goes.yaml"),
            Change::delete("deploy/moves.yaml"),
        ];
        let removed = repository.commit("main", "neither", &changes)?;
        let sources = scene.api(SOURCE, "GitRepository", &scene.victim);
        objects::poke(&sources, "app").await?;
        let is_fetched =
            |object: &DynamicObject| objects::text(object, "/status/artifact/revision").ends_with(&removed);
        wait_for(&sources, "app", is_fetched, PATIENCE).await?;
        app["spec"]["suspend"] = json!(false);
        scene.apply(&app).await?;
        wait_until_gone(&maps, "goes", PATIENCE).await?;
        maps.get("stays").await?;
        maps.get("moves").await?;
        Ok(())
    });
}
