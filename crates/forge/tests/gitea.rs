//! Pull requests at a real Gitea.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::time::Duration;

use forge::check::{self, State as CheckState, Status, Verdict};
use forge::exchange::{Answer, Exchange, Request};
use forge::hosting;
use forge::pull_request::{Draft, Merge, Method, State};
use forge::{Error, Forge, Kind, Login};
use futures::future::BoxFuture;
use git_ssh::identity::Identity;
use serde_json::{Value, json};
use testkit::Gitea;
use testkit::gitea::User;

/// Sends requests as they are.
struct Direct(reqwest::Client);

impl Exchange for Direct {
    fn exchange(&self, request: Request) -> BoxFuture<'_, Result<Answer, Error>> {
        Box::pin(async move {
            let sent = self
                .0
                .request(request.method, request.url)
                .headers(request.headers)
                .body(request.body)
                .send();
            let response = sent.await.map_err(|error| Error::passing(error.to_string()))?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = response
                .bytes()
                .await
                .map_err(|error| Error::passing(error.to_string()))?;
            Ok(Answer {
                status,
                headers,
                body,
                is_cut: false,
            })
        })
    }
}

fn sign_in(gitea: &Gitea, repository: &str, user: &User) -> Forge<'static> {
    let login = Login {
        username: String::new(),
        password: user.token.clone(),
    };
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = format!("{}/{repository}.git", gitea.url());
    Forge::new(Kind::Gitea, &address, &login, Direct(client)).unwrap()
}

async fn add_branch(
    gitea: &Gitea,
    user: &User,
    repository: &str,
    branch: &str,
    files: &[(&str, &str)],
) -> String {
    let body = json!({"new_branch_name": branch, "old_branch_name": "main"});
    let at = format!("repos/{repository}/branches");
    gitea
        .call_as(user, http::Method::POST, &at, Some(body))
        .await
        .unwrap();
    gitea.commit(user, repository, branch, files).await.unwrap()
}

async fn get(gitea: &Gitea, path: &str) -> Value {
    gitea.call(http::Method::GET, path, None).await.unwrap()
}

#[tokio::test]
async fn a_pull_request_goes_from_its_opening_to_its_merge() {
    let gitea = Gitea::start().await.unwrap();
    let bot = gitea.add_user("bot").await.unwrap();
    let ana = gitea.add_user("ana").await.unwrap();
    gitea
        .add_repository(&bot, "shop", &[("app.yaml", "image: a:1\n")])
        .await
        .unwrap();
    let collaborator = json!({"permission": "write"});
    let at = "repos/bot/shop/collaborators/ana";
    gitea
        .call_as(&bot, http::Method::PUT, at, Some(collaborator))
        .await
        .unwrap();
    let commit = add_branch(
        &gitea,
        &bot,
        "bot/shop",
        "updates/app",
        &[("app.yaml", "image: a:2\n")],
    )
    .await;
    let forge = sign_in(&gitea, "bot/shop", &bot);
    assert_eq!(forge.find("updates/app", "main").await.unwrap(), []);
    let main = get(&gitea, "repos/bot/shop/branches/main").await;
    let main = main["commit"]["id"].as_str().unwrap();
    let between = forge.commits(main, &commit).await.unwrap();
    assert_eq!(between.len(), 1);
    assert_eq!(between[0].hash, commit);
    assert!(forge.commits(&commit, main).await.unwrap().is_empty());

    let draft = Draft {
        head: "updates/app",
        base: "main",
        title: "Update a to 2",
        body: "from 1 to 2",
    };
    let opened = forge.open(draft).await.unwrap();
    assert_eq!(opened.state, State::Open);
    assert_eq!(opened.commit, commit);
    assert_eq!(opened.url, format!("{}/bot/shop/pulls/1", gitea.url()));
    assert!(opened.opened.is_some());
    let found = forge.find("updates/app", "main").await.unwrap();
    assert_eq!(found, std::slice::from_ref(&opened));
    let again = forge.open(draft).await.unwrap_err().to_string();
    assert!(again.contains("pull request already exists"), "{again}");

    forge.edit(1, "Update a", "from 1 to 2, again").await.unwrap();
    let labels = ["image".to_owned(), "automatic".to_owned()];
    forge.label(1, &labels).await.unwrap();
    forge.label(1, &labels).await.unwrap();
    forge.request_review(&opened, &["ana".to_owned()]).await.unwrap();
    forge.comment(1, "hello").await.unwrap();
    let seen = get(&gitea, "repos/bot/shop/pulls/1").await;
    assert_eq!(seen["title"], "Update a");
    assert_eq!(seen["body"], "from 1 to 2, again");
    assert_eq!(seen["labels"].as_array().unwrap().len(), 2, "{}", seen["labels"]);
    assert_eq!(seen["requested_reviewers"][0]["login"], "ana");
    let comments = get(&gitea, "repos/bot/shop/issues/1/comments").await;
    assert_eq!(comments[0]["body"], "hello");

    let status = |state| Status {
        commit: &commit,
        name: "ci/build",
        state,
        description: "as it is",
        url: "",
    };
    let verdict = async || check::judge(&forge.checks(&commit).await.unwrap(), &[]);
    assert_eq!(
        verdict().await,
        Verdict::Waiting(vec!["a first check".to_owned()])
    );
    for (state, expected) in [
        (CheckState::Pending, Verdict::Waiting(vec!["ci/build".to_owned()])),
        (CheckState::Failure, Verdict::Failed(vec!["ci/build".to_owned()])),
        (CheckState::Success, Verdict::Passed),
    ] {
        forge.set_status(status(state), "key").await.unwrap();
        assert_eq!(verdict().await, expected);
    }

    let newer = gitea.commit(&ana, "bot/shop", "updates/app", &[("b.yaml", "b\n")]);
    let newer = newer.await.unwrap();
    // Gitea notices a push to the branch in the background.
    let refused = merge_until(
        &forge,
        &commit,
        |merge| matches!(merge, Merge::NotYet(why) if why.contains("head out of date")),
    )
    .await;
    assert!(matches!(refused, Merge::NotYet(_)), "{refused:?}");
    assert_eq!(
        merge_until(&forge, &newer, |merge| *merge == Merge::Done).await,
        Merge::Done
    );
    assert_eq!(
        gitea.file("bot/shop", "main", "app.yaml").await.unwrap(),
        "image: a:2\n"
    );
    let merged = get(&gitea, "repos/bot/shop/pulls/1").await;
    assert_eq!(merged["merged"], true);
}

async fn merge_until(forge: &Forge<'_>, commit: &str, is_there: impl Fn(&Merge) -> bool) -> Merge {
    let wait = async {
        loop {
            let merge = forge.merge(1, Method::Merge, commit).await.unwrap();
            if is_there(&merge) || merge == Merge::Done {
                return merge;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap()
}

#[tokio::test]
async fn a_closed_one_is_found_and_a_foreign_one_is_not() {
    let gitea = Gitea::start().await.unwrap();
    let bot = gitea.add_user("bot").await.unwrap();
    let eve = gitea.add_user("eve").await.unwrap();
    gitea.add_repository(&bot, "shop", &[("a", "1\n")]).await.unwrap();
    let forge = sign_in(&gitea, "bot/shop", &bot);
    let draft = Draft {
        head: "updates",
        base: "main",
        title: "t",
        body: "b",
    };

    // Who may read a public repository may propose a branch of their fork, under any name.
    gitea
        .call_as(&eve, http::Method::POST, "repos/bot/shop/forks", Some(json!({})))
        .await
        .unwrap();
    add_branch(&gitea, &eve, "eve/shop", "updates", &[("a", "evil\n")]).await;
    let theirs = json!({"head": "eve:updates", "base": "main", "title": "t", "body": "b"});
    gitea
        .call_as(&eve, http::Method::POST, "repos/bot/shop/pulls", Some(theirs))
        .await
        .unwrap();
    assert_eq!(forge.find("updates", "main").await.unwrap(), []);

    add_branch(&gitea, &bot, "bot/shop", "updates", &[("a", "2\n")]).await;
    let opened = forge.open(draft).await.unwrap();
    forge.close(opened.number).await.unwrap();
    let found = forge.find("updates", "main").await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].number, found[0].state), (opened.number, State::Closed));
}

#[tokio::test]
async fn a_wrong_token_and_a_missing_repository_are_named() {
    let gitea = Gitea::start().await.unwrap();
    let bot = gitea.add_user("bot").await.unwrap();
    let stranger = User {
        name: "bot".to_owned(),
        token: "not-a-token".to_owned(),
    };
    let missing = sign_in(&gitea, "bot/none", &bot).find("a", "main").await;
    let missing = missing.unwrap_err().to_string();
    assert!(
        missing.starts_with("failed to list pull requests: GET http://127.0.0.1:"),
        "{missing}"
    );
    assert!(missing.contains("answered 404"), "{missing}");
    let refused = sign_in(&gitea, "bot/none", &stranger).find("a", "main").await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("answered 401") && !refused.contains("not-a-token"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_repository_is_made_and_gets_a_deploy_key() {
    let gitea = Gitea::start().await.unwrap();
    let bot = gitea.add_user("bot").await.unwrap();
    let forge = sign_in(&gitea, "bot/fleet", &bot);
    assert_eq!(forge.hosted().await.unwrap(), None);
    let draft = hosting::Draft {
        description: "clusters",
        private: true,
        personal: true,
        default_branch: "main",
    };
    let made = forge.make(draft).await.unwrap();
    assert_eq!(made.default_branch, "", "there is no commit yet");
    assert_eq!(forge.hosted().await.unwrap(), Some(made));
    let again = forge.make(draft).await.unwrap_err().to_string();
    assert!(again.starts_with("failed to make the repository: "), "{again}");

    let key = Identity::generate().unwrap().public().unwrap();
    forge.add_deploy_key("cluster", &key, true).await.unwrap();
    let keys = forge.deploy_keys().await.unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(
        (keys[0].title.as_str(), keys[0].key.as_str(), keys[0].read_only),
        ("cluster", key.as_str(), true)
    );
    forge.remove_deploy_key(&keys[0].id).await.unwrap();
    assert_eq!(forge.deploy_keys().await.unwrap(), []);
    forge.remove_deploy_key(&keys[0].id).await.unwrap();
}
