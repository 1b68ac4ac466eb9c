//! Nobody sees what they could not `get`: no object, name, count or facet.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{Api, PostParams};
use reqwest::StatusCode;
use serde_json::Value;
use testkit::objects::{self, apply};

use crate::world::{May, Scene, play};

const KUSTOMIZATIONS: &str = "kustomize.toolkit.fluxcd.io/kustomizations";
const REPOSITORIES: &str = "source.toolkit.fluxcd.io/gitrepositories";

/// What the API server says of a user and an object.
async fn can_get(scene: &Scene, user: &str, resource: &str, namespace: &str, name: &str) -> Result<bool> {
    let (group, plural) = resource.split_once('/').unwrap_or_default();
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(format!("system:serviceaccount:{}:{user}", scene.namespace)),
            resource_attributes: Some(ResourceAttributes {
                verb: Some("get".to_owned()),
                group: Some(group.to_owned()),
                resource: Some(plural.to_owned()),
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(scene.client.clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

fn rows(page: &Value) -> BTreeSet<(String, String, String)> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let items = page["items"].as_array().into_iter().flatten();
    items
        .map(|row| (text(row, "kind"), text(row, "namespace"), text(row, "name")))
        .collect()
}

#[test]
fn each_user_sees_what_the_api_server_lets_them_get() {
    play("matrix", async |scene| {
        let (shop, bank) = (
            scene.namespace("matrix-shop").await?,
            scene.namespace("matrix-bank").await?,
        );
        let mut all = Vec::new();
        for namespace in [&shop, &bank] {
            let source = objects::git_repository(namespace, "repo", "https://example.com/r", "main");
            apply(&scene.client, &source).await?;
            all.push(("GitRepository", REPOSITORIES, namespace, "repo"));
            for name in ["web", "api"] {
                scene.kustomization(namespace, name, "True", &[]).await?;
                all.push(("Kustomization", KUSTOMIZATIONS, namespace, name));
            }
        }
        let users: [(&str, May<'_>); 5] = [
            ("everything", &[("*", &[KUSTOMIZATIONS, REPOSITORIES])]),
            ("shop", &[(&shop, &[KUSTOMIZATIONS, REPOSITORIES])]),
            ("kinds", &[("*", &[REPOSITORIES])]),
            ("both", &[(&shop, &[REPOSITORIES]), (&bank, &[KUSTOMIZATIONS])]),
            ("nothing", &[]),
        ];
        let query = format!("objects?namespace={shop},{bank}&limit=500");
        let mut tokens = Vec::new();
        for (user, may) in users {
            tokens.push((user, scene.user(user, may).await?));
        }
        scene
            .until(&tokens[0].1, &query, |page| page["total"] == all.len())
            .await?;
        for (user, token) in &tokens {
            let page = scene.get(token, &query).await?;
            let found = rows(&page);
            let mut expected = 0;
            for (kind, resource, namespace, name) in &all {
                let may = can_get(&scene, user, resource, namespace, name).await?;
                expected += usize::from(may);
                let key = ((*kind).to_owned(), (*namespace).clone(), (*name).to_owned());
                ensure!(
                    found.contains(&key) == may,
                    "{user}: {key:?} is {}",
                    found.contains(&key)
                );
                for rest in ["", "/tree", "/why"] {
                    let path = format!("objects/local/{kind}/{namespace}/{name}{rest}");
                    let (status, answer) = scene.ask(token, &path).await?;
                    let wanted = if may {
                        StatusCode::OK
                    } else {
                        StatusCode::FORBIDDEN
                    };
                    ensure!(status == wanted, "{user}: {path}: {status} {answer}");
                }
            }
            assert_eq!(page["total"], expected, "{user}");
            let counted: u64 = ["Kustomization", "GitRepository"]
                .iter()
                .filter_map(|kind| page["facets"]["kind"][kind].as_u64())
                .sum();
            assert_eq!(usize::try_from(counted)?, expected, "{user}");
            let text = page.to_string();
            if *user == "shop" || *user == "nothing" {
                ensure!(!text.contains(&bank), "{user}: {text}");
            }
        }
        // A refusal is the same whether the object is there or not, and a way ends where one may not look.
        let shop_user = &tokens[1].1;
        let mut told = Vec::new();
        for name in ["web", "none"] {
            let path = format!("objects/local/Kustomization/{bank}/{name}");
            let (status, answer) = scene.ask(shop_user, &path).await?;
            told.push((status, answer));
        }
        assert_eq!(told[0], told[1]);
        let kinds_user = &tokens[3].1;
        let path = format!("objects/local/Kustomization/{bank}/web/why");
        let why = scene.get(kinds_user, &path).await?;
        assert_eq!(why["because"][0]["state"], "Unreadable", "{why:#}");
        Ok(())
    });
}

#[test]
fn nobody_is_let_in_without_a_good_token() {
    play("nobody", async |scene| {
        let url = format!("{}/objects", scene.world.console.api_url());
        let http = &scene.world.http;
        for request in [
            http.get(&url),
            http.get(&url).bearer_auth("a.b.c"),
            http.get(&url).bearer_auth("x".repeat(20_000)),
            http.get(&url).basic_auth("admin", Some("admin")),
        ] {
            let answer = request.send().await?;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
            assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        }
        Ok(())
    });
}

#[test]
fn filters_that_work_for_hours_hold_up_no_one() {
    play("filters", async |scene| {
        let namespace = &scene.namespace;
        for number in 0..100 {
            scene
                .kustomization(namespace, &format!("app-{number}"), "True", &[])
                .await?;
        }
        let eve = scene.user("eve", &[(namespace, &[KUSTOMIZATIONS])]).await?;
        let ana = scene.user("ana", &[(namespace, &[KUSTOMIZATIONS])]).await?;
        let all = format!("objects?namespace={namespace}");
        scene.until(&ana, &all, |page| page["total"] == 100).await?;
        // Long for all objects together, and not for one, on a slow machine, too.
        let numbers: Vec<String> = (0..26).map(|number| number.to_string()).collect();
        let list = format!("[{}]", numbers.join(","));
        let filter = format!("{list}.all(a, {list}.all(b, {list}.all(c, a %2B b %2B c >= 0)))");
        let heavy = format!("{all}&filter={filter}");
        let heavy = (0..12).map(|_| scene.ask(&eve, &heavy));
        let heavy = async {
            let answers = futures::future::join_all(heavy).await;
            (answers, Instant::now())
        };
        let others = async {
            for _ in 0..20 {
                ensure!(scene.cluster("local").await?["complete"] == true);
                scene
                    .get(&ana, &format!("objects/local/ks/{namespace}/app-1/why"))
                    .await?;
            }
            anyhow::Ok(Instant::now())
        };
        let ((answers, end), others) = tokio::join!(heavy, others);
        ensure!(others? < end, "others waited for the filters");
        for answer in answers {
            let (status, problem) = answer?;
            let told = problem["message"].as_str().unwrap_or_default();
            ensure!(
                status == StatusCode::BAD_REQUEST && told.contains("takes longer than 2s"),
                "{status} {problem}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_flood_of_wrong_tokens_keeps_no_one_out() {
    play("flood", async |scene| {
        let namespace = &scene.namespace;
        scene.kustomization(namespace, "web", "True", &[]).await?;
        let ana = scene.user("ana", &[(namespace, &[KUSTOMIZATIONS])]).await?;
        let all = format!("objects?namespace={namespace}");
        scene.until(&ana, &all, |page| page["total"] == 1).await?;
        let url = format!("{}/objects", scene.world.console.api_url());
        let flood = (0..400).map(|number| {
            scene
                .world
                .http
                .get(&url)
                .bearer_auth(format!("wrong-{number}"))
                .send()
        });
        let flood = futures::future::join_all(flood);
        let asking = async {
            let mut answered = 0;
            for _ in 0..20 {
                // An address that asks too much at once is told so; its callers ask again.
                let (status, answer) = scene.ask(&ana, &all).await?;
                ensure!(matches!(status.as_u16(), 200 | 429), "{status} {answer}");
                answered += u32::from(status == StatusCode::OK);
                tokio::time::sleep(std::time::Duration::from_millis(10)).await; // between two questions
            }
            anyhow::Ok(answered)
        };
        let (answers, answered) = tokio::join!(flood, asking);
        let mut refused = (0, 0);
        for answer in answers {
            match answer?.status().as_u16() {
                401 => refused.0 += 1,
                429 => refused.1 += 1,
                other => anyhow::bail!("a wrong token is answered {other}"),
            }
        }
        ensure!(
            refused.1 > 0,
            "{refused:?}: each wrong token cost the API server a question at once"
        );
        ensure!(answered? > 0, "nobody else was answered");
        let page = scene.get(&ana, &all).await?;
        assert_eq!(page["total"], 1);
        Ok(())
    });
}
