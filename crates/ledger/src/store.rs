//! The rows, in SQLite or PostgreSQL: the same statements for both.

mod actions;
mod announcements;
mod migrations;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, AnyRow};
use sqlx::{Any, AnyPool, AssertSqlSafe, ConnectOptions as _, Row as _, Transaction};

use crate::delivery::{Delivery, Outcome, Trigger};
use crate::fold::{Change, fold};
use crate::read::{Revision, Subject};

/// Rows of an object that its history is folded into.
const RECENT: i64 = 20;
/// New rows of an object in an hour: whoever may write its status decides how many there would be.
const MOST_PER_HOUR: i64 = 120;
/// The same of a namespace: objects can be made anew, too.
const MOST_OF_SCOPE: i64 = 5000;
/// Revisions of a source whose commits are kept.
const MOST_REVISIONS: i64 = 10_000;
/// Rows of a page.
const MAX_PAGE: usize = 500;
/// Rows that figures are made of.
pub const MAX_ROWS: usize = 200_000;
const CONNECTIONS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(10);

/// The ledger. Clones are handles to the same.
#[derive(Debug, Clone)]
pub struct Ledger {
    pool: AnyPool,
    kind: Store,
    /// Whether what is to be told to others is kept.
    announces: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Sqlite,
    Postgres,
}

/// A ledger that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is for none of the stores.
    #[error("the URL of the ledger must begin with sqlite: or postgres:")]
    Url,
    /// It was written by a newer program.
    #[error("the ledger has schema {found}, and this program knows up to {known}: use the newer program")]
    Newer {
        /// That of the store.
        found: i64,
        /// The newest of ours.
        known: i64,
    },
    /// The store did not do it.
    #[error("failed to {action} the ledger")]
    Store {
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        source: sqlx::Error,
    },
}

/// Where rows are, for rights: a kind in a namespace of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    id: i64,
    /// Cluster.
    pub cluster: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
}

/// What is asked for. All that is given must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Names of objects.
    pub name: Option<String>,
    /// How it went.
    pub outcome: Option<Outcome>,
    /// Beginning of the revision, or of its commit, digest or version; of a commit behind an artifact, of that.
    pub revision: Option<String>,
    /// From this time on, by `ended`.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// The end of the page before.
    pub after: Option<(Timestamp, String)>,
    /// Rows.
    pub limit: usize,
}

impl Error {
    /// Returns whether the store refused what it was given, rather than being away: others may be taken.
    pub fn is_refusal(&self) -> bool {
        let Self::Store { source, .. } = self else {
            return false;
        };
        matches!(source, sqlx::Error::Database(_))
    }
}

fn failed(action: &'static str) -> impl Fn(sqlx::Error) -> Error {
    move |source| Error::Store { action, source }
}

impl Ledger {
    /// Opens a ledger, `sqlite:PATH` or `postgres://…`, and brings its schema up to date.
    ///
    /// # Errors
    /// When it cannot be reached, or is newer than this program.
    pub async fn open(url: &str) -> Result<Self, Error> {
        sqlx::any::install_default_drivers();
        let kind = match url.split_once(':') {
            Some(("sqlite", _)) => Store::Sqlite,
            Some(("postgres" | "postgresql", _)) => Store::Postgres,
            _ => return Err(Error::Url),
        };
        // A file that is not there is made.
        let url = match kind {
            Store::Sqlite if !url.contains('?') => format!("{url}?mode=rwc"),
            _ => url.to_owned(),
        };
        let pool = AnyPoolOptions::new().max_connections(CONNECTIONS);
        Self::connect(kind, &url, pool).await
    }

    /// Opens a ledger that ends with the process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub async fn in_memory() -> Result<Self, Error> {
        sqlx::any::install_default_drivers();
        // Each connection has a memory of its own, so there is one, for ever.
        let pool = AnyPoolOptions::new().min_connections(1).max_connections(1);
        let pool = pool.idle_timeout(None).max_lifetime(None);
        Self::connect(Store::Sqlite, "sqlite::memory:", pool).await
    }

    async fn connect(kind: Store, url: &str, pool: AnyPoolOptions) -> Result<Self, Error> {
        let options: AnyConnectOptions = url.parse().map_err(failed("read the URL of"))?;
        let options = options.disable_statement_logging();
        let pool = pool
            .acquire_timeout(PATIENCE)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if kind == Store::Sqlite {
                        // Readers do not wait for the writer, and a kill loses no row that was there.
                        for pragma in ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL"] {
                            sqlx::query(pragma).execute(&mut *connection).await?;
                        }
                    }
                    Ok(())
                })
            })
            .connect_with(options)
            .await
            .map_err(failed("open"))?;
        let ledger = Self {
            pool,
            kind,
            announces: false,
        };
        ledger.migrate().await?;
        Ok(ledger)
    }

    /// Folds what an object tells into its rows. Returns how many were added.
    ///
    /// # Errors
    /// When the store does not take them; nothing of the object is written then.
    pub async fn record(&self, subject: &Subject, now: Timestamp) -> Result<usize, Error> {
        let object = number(&[
            &subject.cluster,
            &subject.kind,
            &subject.namespace,
            &subject.name,
            &subject.uid,
        ]);
        // Most objects tell nothing new: that needs no lock.
        let mut reading = self.pool.acquire().await.map_err(failed("read"))?;
        let known = recent(&mut reading, object).await.map_err(failed("read"))?;
        drop(reading);
        if fold(&known, subject).is_empty() {
            return Ok(0);
        }
        let writing = self.write(subject, object, now).await;
        writing.map_err(failed("write to"))
    }

    async fn write(&self, subject: &Subject, object: i64, now: Timestamp) -> sqlx::Result<usize> {
        let mut transaction = self.begin(object).await?;
        let known = recent(&mut transaction, object).await?;
        let hour_ago = (now - SignedDuration::from_hours(1)).as_millisecond();
        let scope = number(&[&subject.cluster, &subject.kind, &subject.namespace]);
        let mut room = i64::MAX;
        for (statement, whose, most) in [
            (
                "SELECT COUNT(*) FROM deliveries WHERE object = $1 AND recorded > $2",
                object,
                MOST_PER_HOUR,
            ),
            (
                "SELECT COUNT(*) FROM deliveries WHERE scope = $1 AND recorded > $2",
                scope,
                MOST_OF_SCOPE,
            ),
        ] {
            let counting = sqlx::query(statement).bind(whose).bind(hour_ago);
            let count: i64 = counting.fetch_one(&mut *transaction).await?.try_get(0)?;
            room = room.min(most - count);
        }
        let mut added = 0;
        let mut before = known.clone();
        for change in fold(&known, subject) {
            match change {
                Change::Insert(row) if room > 0 => {
                    room -= 1;
                    added += 1;
                    let is_new = insert(&mut transaction, &row, (object, scope), now).await?;
                    // A row that was there has been announced.
                    if self.announces && is_new {
                        Self::announce(&mut transaction, &row, &before, now).await?;
                        before.insert(0, *row);
                    }
                }
                Change::Insert(_) => break,
                Change::Move(row) => set(&mut transaction, &row).await?,
            }
        }
        if added > 0 {
            remember_scope(
                &mut transaction,
                [&subject.cluster, &subject.kind, &subject.namespace],
            )
            .await?;
        }
        transaction.commit().await?;
        Ok(added)
    }

    /// Notes a revision that a source has, for the deliveries that come of it. Of one source only so many are kept.
    ///
    /// # Errors
    /// When the store does not take it.
    pub async fn note(&self, revision: &Revision, now: Timestamp) -> Result<(), Error> {
        let noting = self.note_unless_full(revision, now).await;
        noting.map_err(failed("write to"))
    }

    async fn note_unless_full(&self, revision: &Revision, now: Timestamp) -> sqlx::Result<()> {
        let known: i64 = sqlx::query("SELECT COUNT(*) FROM revisions WHERE cluster = $1 AND source = $2")
            .bind(&revision.cluster)
            .bind(&revision.source)
            .fetch_one(&self.pool)
            .await?
            .try_get(0)?;
        if known >= MOST_REVISIONS {
            return Ok(());
        }
        // A time that is ahead would keep it longer than others.
        let seen = revision.seen.min(now);
        sqlx::query(
            "INSERT INTO revisions (cluster, source, revision, committed, seen, author, subject)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        )
        .bind(&revision.cluster)
        .bind(&revision.source)
        .bind(&revision.revision)
        .bind(revision.committed.map(Timestamp::as_millisecond))
        .bind(seen.as_millisecond())
        .bind(&revision.author)
        .bind(&revision.subject)
        .execute(&self.pool)
        .await
        .map(drop)
    }

    /// All scopes that there are rows of.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn scopes(&self) -> Result<Vec<Scope>, Error> {
        let read = |row: &AnyRow| {
            Ok(Scope {
                id: row.try_get(0)?,
                cluster: row.try_get(1)?,
                kind: row.try_get(2)?,
                namespace: row.try_get(3)?,
            })
        };
        let rows =
            sqlx::query("SELECT id, cluster, kind, namespace FROM scopes ORDER BY cluster, kind, namespace");
        let rows = rows.fetch_all(&self.pool).await.map_err(failed("read"))?;
        let scopes: sqlx::Result<Vec<Scope>> = rows.iter().map(read).collect();
        scopes.map_err(failed("read"))
    }

    /// The rows of these scopes that were asked for, newest first; at most 500.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn deliveries(&self, scopes: &[Scope], filter: &Filter) -> Result<Vec<Delivery>, Error> {
        let limit = filter.limit.clamp(1, MAX_PAGE);
        self.select(scopes, filter, limit).await
    }

    /// The rows of these scopes that figures are made of; at most [`MAX_ROWS`].
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn all(&self, scopes: &[Scope], filter: &Filter) -> Result<Vec<Delivery>, Error> {
        self.select(scopes, filter, MAX_ROWS).await
    }

    async fn select(&self, scopes: &[Scope], filter: &Filter, limit: usize) -> Result<Vec<Delivery>, Error> {
        if scopes.is_empty() {
            return Ok(Vec::new());
        }
        let mut question = Question::new(SELECT, scopes);
        if let Some(name) = &filter.name {
            question.text("d.name = $?", name);
        }
        if let Some(outcome) = filter.outcome {
            question.text("d.outcome = $?", outcome.word());
        }
        match filter.revision.as_deref() {
            None => {}
            Some(revision) if revision.contains([':', '@']) => {
                let beginning = format!("{}%", escape(revision));
                question.text(r"d.revision LIKE $? ESCAPE '\'", &beginning);
            }
            // A range, so that an index finds it.
            Some(commit) => {
                question.text("d.commit_name >= $?", commit);
                question.text("d.commit_name < $?", &format!("{commit}\u{10ffff}"));
            }
        }
        question.times("d.ended", filter.since, filter.until);
        let rows = question.page(&self.pool, "d.ended", filter.after.as_ref(), limit);
        let rows = rows.await.map_err(failed("read"))?;
        let rows: sqlx::Result<Vec<Delivery>> = rows.iter().map(delivery).collect();
        rows.map_err(failed("read"))
    }

    /// Takes out what ended before a time. Returns how many rows that were.
    ///
    /// # Errors
    /// When the store does not do it.
    pub async fn prune(&self, before: Timestamp) -> Result<u64, Error> {
        let before = before.as_millisecond();
        let mut gone = 0;
        for statement in [
            "DELETE FROM deliveries WHERE last < $1",
            "DELETE FROM revisions WHERE seen < $1",
            "DELETE FROM actions WHERE began < $1",
            "DELETE FROM announcements WHERE ended < $1",
        ] {
            let done = sqlx::query(statement).bind(before).execute(&self.pool).await;
            gone += done.map_err(failed("prune"))?.rows_affected();
        }
        Ok(gone)
    }

    /// A transaction in which nobody else writes rows of this object.
    async fn begin(&self, object: i64) -> sqlx::Result<Transaction<'static, Any>> {
        match self.kind {
            Store::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await,
            Store::Postgres => {
                let mut transaction = self.pool.begin().await?;
                let locking =
                    sqlx::query("SELECT 1 FROM (SELECT pg_advisory_xact_lock($1)) AS locked").bind(object);
                locking.execute(&mut *transaction).await?;
                Ok(transaction)
            }
        }
    }
}

/// A question for rows of some scopes, and the texts in it.
struct Question {
    statement: String,
    texts: Vec<String>,
}

impl Question {
    /// Of a table that is called `d`.
    fn new(select: &str, scopes: &[Scope]) -> Self {
        // Numbers are ours, and need no place of their own.
        let scopes: Vec<String> = scopes.iter().map(|scope| scope.id.to_string()).collect();
        Self {
            statement: format!("{select} WHERE d.scope IN ({})", scopes.join(", ")),
            texts: Vec::new(),
        }
    }

    /// A condition with a text in the place of `$?`.
    fn text(&mut self, condition: &str, value: &str) {
        self.texts.push(value.to_owned());
        let place = format!("${}", self.texts.len());
        self.statement.push_str(" AND ");
        self.statement.push_str(&condition.replace("$?", &place));
    }

    /// Bounds of a column with a time.
    fn times(&mut self, column: &str, since: Option<Timestamp>, until: Option<Timestamp>) {
        for (sign, time) in [(">=", since), ("<", until)] {
            if let Some(time) = time {
                let milliseconds = time.as_millisecond();
                self.statement
                    .push_str(&format!(" AND {column} {sign} {milliseconds}"));
            }
        }
    }

    /// The newest rows by a column with a time, after the end of the page before.
    async fn page(
        mut self,
        pool: &AnyPool,
        column: &str,
        after: Option<&(Timestamp, String)>,
        limit: usize,
    ) -> sqlx::Result<Vec<AnyRow>> {
        if let Some((time, id)) = after {
            let time = time.as_millisecond();
            self.text(
                &format!("({column} < {time} OR ({column} = {time} AND d.id < $?))"),
                id,
            );
        }
        self.statement
            .push_str(&format!(" ORDER BY {column} DESC, d.id DESC LIMIT {limit}"));
        let mut query = sqlx::query(AssertSqlSafe(self.statement));
        for text in self.texts {
            query = query.bind(text);
        }
        query.fetch_all(pool).await
    }
}

/// Columns in the order in which [`delivery`] reads them. The commit is that of the revision, wherever it was noted first.
const SELECT: &str = "SELECT d.id, d.cluster, d.kind, d.namespace, d.name, d.outcome, d.reason, d.message, d.trigger_word, \
     d.source, d.revision, d.origin, d.digest, d.began, d.ended, d.last, d.attempts, d.changes, d.causes, d.labels, \
     r.committed, r.seen, r.author, r.subject, d.built, d.applied, d.attestation \
     FROM deliveries d LEFT JOIN revisions r \
     ON r.cluster = d.cluster AND r.source = d.source AND r.revision = d.revision";

fn delivery(row: &AnyRow) -> sqlx::Result<Delivery> {
    let text = |index: usize| row.try_get::<String, _>(index);
    let time = |index: usize| {
        let milliseconds: i64 = row.try_get(index)?;
        Timestamp::from_millisecond(milliseconds).map_err(|error| sqlx::Error::Decode(error.into()))
    };
    let time_if_any = |index: usize| {
        let milliseconds: Option<i64> = row.try_get(index)?;
        Ok::<_, sqlx::Error>(milliseconds.and_then(|time| Timestamp::from_millisecond(time).ok()))
    };
    let text_if_any =
        |index: usize| Ok::<_, sqlx::Error>(row.try_get::<Option<String>, _>(index)?.unwrap_or_default());
    Ok(Delivery {
        id: text(0)?,
        cluster: text(1)?,
        kind: text(2)?,
        namespace: text(3)?,
        name: text(4)?,
        outcome: Outcome::parse(&text(5)?).unwrap_or(Outcome::Gap),
        reason: text(6)?,
        message: text(7)?,
        trigger: Trigger::parse(&text(8)?).unwrap_or(Trigger::Retry),
        source: text(9)?,
        revision: text(10)?,
        origin: text(11)?,
        digest: text(12)?,
        began: time(13)?,
        ended: time(14)?,
        last: time(15)?,
        attempts: row.try_get(16)?,
        changes: text(17)?,
        causes: text(18)?,
        labels: serde_json::from_str(&text(19)?).unwrap_or_default(),
        committed: time_if_any(20)?,
        seen: time_if_any(21)?,
        author: text_if_any(22)?,
        subject: text_if_any(23)?,
        built: time_if_any(24)?,
        applied: time_if_any(25)?,
        attestation: text_if_any(26)?,
    })
}

/// The last rows of an object, newest first.
async fn recent(connection: &mut sqlx::AnyConnection, object: i64) -> sqlx::Result<Vec<Delivery>> {
    let statement =
        format!("{SELECT} WHERE d.object = $1 ORDER BY d.last DESC, d.ended DESC, d.id DESC LIMIT {RECENT}");
    let rows = sqlx::query(AssertSqlSafe(statement)).bind(object);
    rows.fetch_all(connection).await?.iter().map(delivery).collect()
}

/// Adds a row. Returns whether it was not there.
async fn insert(
    connection: &mut sqlx::AnyConnection,
    row: &Delivery,
    (object, scope): (i64, i64),
    now: Timestamp,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "INSERT INTO deliveries (id, object, scope, recorded, cluster, kind, namespace, name, outcome, reason, message, \
         trigger_word, source, revision, origin, digest, began, ended, last, attempts, changes, causes, labels, \
         commit_name, built, applied, attestation) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, \
         $25, $26, $27) \
         ON CONFLICT DO NOTHING",
    )
    .bind(&row.id)
    .bind(object)
    .bind(scope)
    .bind(now.as_millisecond())
    .bind(&row.cluster)
    .bind(&row.kind)
    .bind(&row.namespace)
    .bind(&row.name)
    .bind(row.outcome.word())
    .bind(&row.reason)
    .bind(&row.message)
    .bind(row.trigger.word())
    .bind(&row.source)
    .bind(&row.revision)
    .bind(&row.origin)
    .bind(&row.digest)
    .bind(row.began.as_millisecond())
    .bind(row.ended.as_millisecond())
    .bind(row.last.as_millisecond())
    .bind(row.attempts)
    .bind(&row.changes)
    .bind(&row.causes)
    .bind(serde_json::to_string(&row.labels).unwrap_or_default())
    .bind(commit_name(row))
    .bind(row.built.map(Timestamp::as_millisecond))
    .bind(row.applied.map(Timestamp::as_millisecond))
    .bind(&row.attestation)
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Notes that there are rows of a scope: cluster, kind and namespace.
async fn remember_scope(connection: &mut sqlx::AnyConnection, names: [&str; 3]) -> sqlx::Result<()> {
    let statement =
        "INSERT INTO scopes (id, cluster, kind, namespace) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let [cluster, kind, namespace] = names;
    let query = sqlx::query(statement).bind(number(&names));
    let query = query.bind(cluster).bind(kind).bind(namespace);
    query.execute(connection).await.map(drop)
}

async fn set(connection: &mut sqlx::AnyConnection, row: &Delivery) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE deliveries SET outcome = $2, reason = $3, message = $4, last = $5, attempts = $6, changes = $7, causes = $8, \
         digest = $9, attestation = $10 WHERE id = $1",
    )
    .bind(&row.id)
    .bind(row.outcome.word())
    .bind(&row.reason)
    .bind(&row.message)
    .bind(row.last.as_millisecond())
    .bind(row.attempts)
    .bind(&row.changes)
    .bind(&row.causes)
    .bind(&row.digest)
    .bind(&row.attestation)
    .execute(connection)
    .await
    .map(drop)
}

/// What people call a revision by: its commit, its digest, or the version of a chart.
fn commit_name(row: &Delivery) -> &str {
    let whole = if row.origin.is_empty() {
        &row.revision
    } else {
        &row.origin
    };
    let last = whole.rsplit_once([':', '@']);
    last.map_or(whole.as_str(), |(_, last)| last)
}

/// A number for a name, the same in all stores and processes.
fn number(parts: &[&str]) -> i64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let hash = hash.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(bytes)
}

/// A text that LIKE takes as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
