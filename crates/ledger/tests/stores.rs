//! The same of both stores: SQLite, and Debian's PostgreSQL.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use ledger::action::{Action, End};
use ledger::delivery::{Delivery, Outcome};
use ledger::read::{Revision, Subject, Told};
use ledger::store::{Error, Filter, Ledger};
use testkit::Postgres;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 60 * minute).expect("a time")
}

fn told(revision: &str, outcome: Outcome, minute: i64) -> Told {
    Told {
        digest: format!("sha256:{revision}"),
        outcome,
        reason: match outcome {
            Outcome::Succeeded => "ReconciliationSucceeded".to_owned(),
            _ => "HealthCheckFailed".to_owned(),
        },
        message: "it's \"so\"\\".to_owned(),
        revision: format!("main@sha1:{revision}"),
        origin: String::new(),
        first: at(minute),
        last: at(minute),
        took: SignedDuration::from_secs(30),
        built: Some(at(minute) - SignedDuration::from_millis(2500)),
        applied: Some(at(minute) - SignedDuration::from_millis(500)),
        total: 1,
        changes: String::new(),
        causes: "[]".to_owned(),
        attestation: format!("{{\"payload\": \"{revision}\"}}"),
    }
}

fn subject(namespace: &str, name: &str, told: Vec<Told>) -> Subject {
    Subject {
        cluster: "here".to_owned(),
        kind: "Kustomization".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        source: "GitRepository/shop/repo".to_owned(),
        labels: BTreeMap::from([("team".to_owned(), "shop".to_owned())]),
        told,
        is_cut: false,
    }
}

fn page(limit: usize) -> Filter {
    Filter {
        limit,
        ..Filter::default()
    }
}

fn shown(rows: &[Delivery]) -> Vec<(&str, &str)> {
    let rows = rows.iter();
    rows.map(|row| (row.name.as_str(), row.revision.trim_start_matches("main@sha1:")))
        .collect()
}

/// Runs a story on each store. Each opens its own, which is empty.
async fn on_each<F>(story: impl Fn(String) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let folder = tempfile::tempdir()?;
    story(format!("sqlite:{}", folder.path().join("ledger.db").display())).await?;
    let postgres = Postgres::start().await?;
    story(postgres.url()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_delivered_is_kept_and_found() -> Result<()> {
    on_each(async |url| {
        let ledger = Ledger::open(&url).await?;
        assert!(ledger.scopes().await?.is_empty());
        let web = subject(
            "shop",
            "web",
            vec![told("aa", Outcome::Succeeded, 0), told("bb", Outcome::Failed, 10)],
        );
        let api = subject("bank", "api", vec![told("cc", Outcome::Succeeded, 5)]);
        assert_eq!(ledger.record(&web, at(11)).await?, 2);
        assert_eq!(ledger.record(&web, at(11)).await?, 0, "the same again");
        assert_eq!(ledger.record(&api, at(11)).await?, 1);
        let revision = Revision {
            cluster: "here".to_owned(),
            source: "GitRepository/shop/repo".to_owned(),
            revision: "main@sha1:bb".to_owned(),
            committed: Some(at(7)),
            seen: at(8),
            author: "Ana".to_owned(),
            subject: "Raise the price".to_owned(),
        };
        ledger.note(&revision, at(11)).await?;
        let again = Revision {
            seen: at(9),
            ..revision
        };
        ledger.note(&again, at(11)).await?;
        drop(ledger);

        // Another process.
        let ledger = Ledger::open(&url).await?;
        let scopes = ledger.scopes().await?;
        let namespaces: Vec<&str> = scopes.iter().map(|scope| scope.namespace.as_str()).collect();
        assert_eq!(namespaces, ["bank", "shop"]);
        let all = ledger.deliveries(&scopes, &page(10)).await?;
        assert_eq!(shown(&all), [("web", "bb"), ("api", "cc"), ("web", "aa")]);
        let failed = &all[0];
        assert_eq!((failed.outcome, &*failed.author), (Outcome::Failed, "Ana"));
        assert_eq!(
            (failed.committed, failed.seen),
            (Some(at(7)), Some(at(8))),
            "the first time counts"
        );
        assert_eq!(
            (&*failed.message, &*failed.labels["team"]),
            ("it's \"so\"\\", "shop")
        );
        assert_eq!(failed.began, failed.ended - SignedDuration::from_secs(30));
        let before = |milliseconds: i64| Some(failed.ended - SignedDuration::from_millis(milliseconds));
        assert_eq!((failed.built, failed.applied), (before(2500), before(500)));
        assert!(
            failed.attestation.starts_with("{\"payload\""),
            "{}",
            failed.attestation
        );

        let shop = ledger.deliveries(&scopes[1..], &page(10)).await?;
        assert_eq!(shown(&shop), [("web", "bb"), ("web", "aa")], "no other scope");
        assert!(ledger.deliveries(&[], &page(10)).await?.is_empty());
        let find = async |filter: Filter| {
            let found = ledger.deliveries(&scopes, &filter).await;
            found.map(|rows| {
                shown(&rows)
                    .into_iter()
                    .map(|row| row.1.to_owned())
                    .collect::<Vec<_>>()
            })
        };
        let any = || page(10);
        let outcome = Some(Outcome::Failed);
        assert_eq!(find(Filter { outcome, ..any() }).await?, ["bb"]);
        let name = Some("api".to_owned());
        assert_eq!(find(Filter { name, ..any() }).await?, ["cc"]);
        for (revision, expected) in [
            ("main@", 3),
            ("c", 1),
            ("b", 1),
            ("main@sha1:b", 1),
            ("%", 0),
            ("_", 0),
            ("' OR 1=1 --", 0),
        ] {
            let revision = Some(revision.to_owned());
            assert_eq!(find(Filter { revision, ..any() }).await?.len(), expected);
        }
        let (since, until) = (Some(at(5)), Some(at(10)));
        assert_eq!(
            find(Filter {
                since,
                until,
                ..any()
            })
            .await?,
            ["cc"],
            "from the first time on, before the second"
        );
        let after = Some((all[0].ended, all[0].id.clone()));
        assert_eq!(find(Filter { after, ..page(1) }).await?, ["cc"]);

        assert_eq!(ledger.prune(at(6)).await?, 2);
        assert_eq!(find(any()).await?, ["bb"]);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_fold_into_the_same_rows() -> Result<()> {
    on_each(async |url| {
        let ledgers = [Ledger::open(&url).await?, Ledger::open(&url).await?];
        let mut tasks = Vec::new();
        for number in 0..40 {
            let ledger = ledgers[number % 2].clone();
            tasks.push(tokio::spawn(async move {
                let both = [told("aa", Outcome::Succeeded, 0), told("bb", Outcome::Failed, 10)];
                let told = both[..1 + number / 2 % 2].to_vec();
                ledger.record(&subject("shop", "web", told), at(11)).await
            }));
        }
        let mut added = 0;
        for task in tasks {
            added += task.await??;
        }
        let rows = ledgers[0]
            .deliveries(&ledgers[0].scopes().await?, &page(10))
            .await?;
        assert_eq!((added, shown(&rows)), (2, vec![("web", "bb"), ("web", "aa")]));
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_never_rests_fills_nothing() -> Result<()> {
    on_each(async |url| {
        let ledger = Ledger::open(&url).await?;
        for number in 0..300 {
            let told = told(&number.to_string(), Outcome::Failed, number);
            let now = at(300) + SignedDuration::from_secs(number);
            ledger.record(&subject("shop", "web", vec![told]), now).await?;
        }
        let count = async || {
            ledger
                .all(&ledger.scopes().await?, &page(1))
                .await
                .map(|rows| rows.len())
        };
        assert_eq!(count().await?, 120);
        let later = told("later", Outcome::Succeeded, 400);
        assert_eq!(
            ledger
                .record(&subject("shop", "web", vec![later]), at(400))
                .await?,
            1
        );
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_left_alone_and_another_url_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
    drop(Ledger::open(&url).await?);
    sqlx::any::install_default_drivers();
    let pool = sqlx::AnyPool::connect(&url).await?;
    for step in 50..60_i64 {
        let adding = sqlx::query("INSERT INTO schema_steps (step) VALUES ($1)").bind(step);
        adding.execute(&pool).await?;
    }
    let newer = Ledger::open(&url).await.map(drop);
    assert!(matches!(newer, Err(Error::Newer { .. })), "{newer:?}");
    assert!(matches!(
        Ledger::open("mysql://root@localhost/x").await,
        Err(Error::Url)
    ));
    let away = Ledger::open("postgres://nobody@127.0.0.1:1/x").await.map(drop);
    assert!(matches!(away, Err(Error::Store { .. })), "{away:?}");
    Ok(())
}

/// Not a test of time: prints how long what pages ask takes with many rows (`make bench-ledger`).
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a benchmark"]
async fn bench_queries_over_a_hundred_thousand_deliveries() -> Result<()> {
    on_each(async |url| {
        let ledger = Ledger::open(&url).await?;
        let began = Instant::now();
        for object in 0..1000 {
            let (namespace, name) = (format!("team-{}", object % 50), format!("app-{object}"));
            for batch in 0..10 {
                let entries = (0..10).map(|number| {
                    let minute = 1000 * (10 * batch + number) + object;
                    told(&minute.to_string(), Outcome::Succeeded, minute)
                });
                let subject = subject(&namespace, &name, entries.collect());
                // Our own clock moves on, so that no object adds too much.
                ledger.record(&subject, at(1000 * (10 * batch + 10))).await?;
            }
        }
        let store = url.split(':').next().unwrap_or_default();
        println!("{store}: written in {:.1} s", began.elapsed().as_secs_f64());
        let scopes = ledger.scopes().await?;
        let questions = [
            ("newest 50", page(50)),
            (
                "one app",
                Filter {
                    name: Some("app-500".to_owned()),
                    ..page(50)
                },
            ),
            (
                "a week",
                Filter {
                    since: Some(at(50_000)),
                    until: Some(at(60_000)),
                    ..page(500)
                },
            ),
            (
                "a commit",
                Filter {
                    revision: Some("50500".to_owned()),
                    ..page(50)
                },
            ),
        ];
        for (name, filter) in questions {
            let mut times = Vec::new();
            for _ in 0..20 {
                let began = Instant::now();
                let rows = ledger.deliveries(&scopes, &filter).await?;
                assert!(!rows.is_empty(), "{name}");
                times.push(began.elapsed());
            }
            times.sort();
            println!("{store}: {name}: median {:?}, most {:?}", times[10], times[19]);
        }
        Ok(())
    })
    .await
}

fn action(number: i64, username: &str, name: &str) -> Action {
    Action {
        id: format!("{number:08}"),
        cluster: "here".to_owned(),
        kind: "Kustomization".to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        verb: "suspend".to_owned(),
        username: username.to_owned(),
        groups: vec!["web".to_owned()],
        reason: "it's \"so\"\\".to_owned(),
        began: at(number),
        end: End::Unknown,
        message: String::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_are_kept_before_they_happen_and_after() -> Result<()> {
    on_each(async |url| {
        let ledger = Ledger::open(&url).await?;
        for (number, (username, name)) in (0..).zip([("ana", "web"), ("ana", "api"), ("bob", "web")]) {
            assert!(ledger.begin_action(&action(number, username, name)).await?);
        }
        ledger.end_action("00000000", End::Done, "").await?;
        ledger
            .end_action("00000001", End::Failed, "it is not there")
            .await?;
        let scopes = ledger.scopes().await?;
        assert_eq!(scopes.len(), 1);
        let all = ledger.actions(&scopes, &page(10), None).await?;
        let mut expected = [
            action(2, "bob", "web"),
            action(1, "ana", "api"),
            action(0, "ana", "web"),
        ];
        expected[2].end = End::Done;
        (expected[1].end, expected[1].message) = (End::Failed, "it is not there".to_owned());
        assert_eq!(all, expected);
        let first = ledger.actions(&scopes, &page(1), None).await?;
        let next = Filter {
            after: Some((first[0].began, first[0].id.clone())),
            name: Some("web".to_owned()),
            ..page(10)
        };
        assert_eq!(ledger.actions(&scopes, &next, None).await?, [expected[2].clone()]);
        assert_eq!(ledger.actions(&scopes, &page(10), Some("bob")).await?.len(), 1);
        assert!(ledger.actions(&[], &page(10), None).await?.is_empty());
        assert!(ledger.deliveries(&scopes, &page(10)).await?.is_empty());
        ledger.prune(at(1)).await?;
        assert_eq!(ledger.actions(&scopes, &page(10), None).await?.len(), 2);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_fills_the_ledger_with_actions() -> Result<()> {
    let ledger = Ledger::in_memory().await?;
    let at_once = |number: i64, username: &str| Action {
        began: at(0),
        ..action(number, username, "web")
    };
    let mut taken = 0;
    while ledger.begin_action(&at_once(taken, "eve")).await? {
        taken += 1;
        anyhow::ensure!(taken < 10_000, "there is no bound");
    }
    assert_eq!(taken, 3000);
    assert!(
        ledger.begin_action(&at_once(taken, "ana")).await?,
        "others are not held up"
    );
    let later = Action {
        began: at(61),
        ..at_once(taken + 1, "eve")
    };
    assert!(ledger.begin_action(&later).await?);
    Ok(())
}
