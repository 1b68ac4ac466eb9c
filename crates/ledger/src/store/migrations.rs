//! The schema, as steps that only ever grow in number.

use sqlx::{AssertSqlSafe, Row as _};

use super::{Error, Ledger, Store, failed};

/// Each step is done once, in a transaction.
const STEPS: [&[&str]; 5] = [DELIVERIES, ACTIONS, ANNOUNCEMENTS, HOPS, ATTESTATIONS];

const DELIVERIES: &[&str] = &[
    "CREATE TABLE scopes (
        id BIGINT PRIMARY KEY, cluster TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL
    )",
    "CREATE TABLE revisions (
        cluster TEXT NOT NULL, source TEXT NOT NULL, revision TEXT NOT NULL, committed BIGINT, seen BIGINT NOT NULL,
        author TEXT NOT NULL, subject TEXT NOT NULL, PRIMARY KEY (cluster, source, revision)
    )",
    "CREATE TABLE deliveries (
        id TEXT PRIMARY KEY, object BIGINT NOT NULL, scope BIGINT NOT NULL, recorded BIGINT NOT NULL,
        cluster TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        outcome TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL, trigger_word TEXT NOT NULL,
        source TEXT NOT NULL, revision TEXT NOT NULL, origin TEXT NOT NULL, digest TEXT NOT NULL,
        began BIGINT NOT NULL, ended BIGINT NOT NULL, last BIGINT NOT NULL, attempts BIGINT NOT NULL,
        changes TEXT NOT NULL, causes TEXT NOT NULL, labels TEXT NOT NULL, commit_name TEXT NOT NULL
    )",
    "CREATE INDEX deliveries_by_object ON deliveries (object, last)",
    "CREATE INDEX deliveries_by_scope ON deliveries (scope, recorded)",
    "CREATE INDEX deliveries_by_time ON deliveries (ended, id)",
    "CREATE INDEX deliveries_by_name ON deliveries (name, ended)",
    "CREATE INDEX deliveries_by_commit ON deliveries (commit_name)",
    "CREATE INDEX deliveries_by_last ON deliveries (last)",
];

const ACTIONS: &[&str] = &[
    "CREATE TABLE actions (
        id TEXT PRIMARY KEY, scope BIGINT NOT NULL,
        cluster TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        verb TEXT NOT NULL, username TEXT NOT NULL, member_of TEXT NOT NULL, reason TEXT NOT NULL,
        began BIGINT NOT NULL, outcome TEXT NOT NULL, message TEXT NOT NULL
    )",
    "CREATE INDEX actions_by_time ON actions (began, id)",
    "CREATE INDEX actions_by_name ON actions (name, began)",
    "CREATE INDEX actions_by_user ON actions (username, began)",
];

/// What is to be told to others, until it was.
const ANNOUNCEMENTS: &[&str] = &["CREATE TABLE announcements (
        delivery TEXT NOT NULL, type TEXT NOT NULL, ended BIGINT NOT NULL, PRIMARY KEY (delivery, type)
    )"];

/// Times of the steps of a delivery.
const HOPS: &[&str] = &[
    "ALTER TABLE deliveries ADD COLUMN built BIGINT",
    "ALTER TABLE deliveries ADD COLUMN applied BIGINT",
];

/// Signed statements about promotions.
const ATTESTATIONS: &[&str] = &["ALTER TABLE deliveries ADD COLUMN attestation TEXT"];

/// What replicas that begin at once wait for in PostgreSQL; any number that nothing else uses.
const LOCK: i64 = 0x0077_696e_646c_6173;

impl Ledger {
    /// Does the steps that were not done yet.
    pub(super) async fn migrate(&self) -> Result<(), Error> {
        let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
        let found = self.steps().await.map_err(failed("migrate"))?;
        if found > known {
            return Err(Error::Newer { found, known });
        }
        Ok(())
    }

    /// Returns how many steps were done before.
    async fn steps(&self) -> sqlx::Result<i64> {
        let mut transaction = self.begin(LOCK).await?;
        sqlx::query("CREATE TABLE IF NOT EXISTS schema_steps (step BIGINT PRIMARY KEY)")
            .execute(&mut *transaction)
            .await?;
        let row = sqlx::query("SELECT COUNT(*) FROM schema_steps")
            .fetch_one(&mut *transaction)
            .await?;
        let done: i64 = row.try_get(0)?;
        for (step, statements) in (0_i64..).zip(STEPS).filter(|(step, _)| *step >= done) {
            for statement in statements {
                let statement = match self.kind {
                    // Numbers of a row are found by the name of the row alone.
                    Store::Sqlite if statement.starts_with("CREATE TABLE") => format!("{statement} STRICT"),
                    _ => (*statement).to_owned(),
                };
                // SQLite's strict tables know one word for whole numbers.
                let statement = match self.kind {
                    Store::Sqlite => statement.replace("BIGINT", "INTEGER"),
                    // Compared by its bytes, as SQLite does: ranges are beginnings.
                    Store::Postgres => {
                        statement.replace("commit_name TEXT", "commit_name TEXT COLLATE \"C\"")
                    }
                };
                sqlx::query(AssertSqlSafe(statement))
                    .execute(&mut *transaction)
                    .await?;
            }
            sqlx::query("INSERT INTO schema_steps (step) VALUES ($1)")
                .bind(step)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(done)
    }
}
