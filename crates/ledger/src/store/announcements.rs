//! What is to be told to others of deliveries, kept until it was.

use jiff::{SignedDuration, Timestamp};
use sqlx::{AssertSqlSafe, Row as _};

use super::{Error, Ledger, SELECT, delivery, failed};
use crate::cdevent::Type;
use crate::delivery::Delivery;

/// What happened longer ago is not told any more: nobody acts on it.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(24);
/// Those that are read at a time.
const AT_ONCE: i64 = 100;

impl Ledger {
    /// Keeps what is to be told of each delivery that comes from now on.
    #[must_use]
    pub fn with_announcements(mut self) -> Self {
        self.announces = true;
        self
    }

    /// Notes what there is to tell of a new row, in the transaction that has it.
    pub(super) async fn announce(
        connection: &mut sqlx::AnyConnection,
        row: &Delivery,
        before: &[Delivery],
        now: Timestamp,
    ) -> sqlx::Result<()> {
        if row.ended < now - MAX_AGE {
            return Ok(());
        }
        for kind in Type::of(row, before) {
            sqlx::query(
                "INSERT INTO announcements (delivery, type, ended) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            )
            .bind(&row.id)
            .bind(kind.word())
            .bind(row.ended.as_millisecond())
            .execute(&mut *connection)
            .await?;
        }
        Ok(())
    }

    /// What is to be told, oldest first; a hundred at most. What is too old is dropped.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn announcements(&self, now: Timestamp) -> Result<Vec<(Delivery, Type)>, Error> {
        let reading = self.read_announcements(now).await;
        reading.map_err(failed("read"))
    }

    async fn read_announcements(&self, now: Timestamp) -> sqlx::Result<Vec<(Delivery, Type)>> {
        sqlx::query("DELETE FROM announcements WHERE ended < $1")
            .bind((now - MAX_AGE).as_millisecond())
            .execute(&self.pool)
            .await?;
        let fields = SELECT.replacen(" FROM", ", a.type AS announced FROM", 1);
        let statement = format!(
            "{fields} JOIN announcements a ON a.delivery = d.id ORDER BY a.ended, a.delivery, a.type LIMIT {AT_ONCE}"
        );
        let rows = sqlx::query(AssertSqlSafe(statement))
            .fetch_all(&self.pool)
            .await?;
        let mut told = Vec::new();
        for row in &rows {
            let kind: String = row.try_get("announced")?;
            if let Some(kind) = Type::parse(&kind) {
                told.push((delivery(row)?, kind));
            }
        }
        Ok(told)
    }

    /// Notes that something was told.
    ///
    /// # Errors
    /// When the store does not take it: then it is told again.
    pub async fn announced(&self, delivery: &str, kind: Type) -> Result<(), Error> {
        let done = sqlx::query("DELETE FROM announcements WHERE delivery = $1 AND type = $2")
            .bind(delivery)
            .bind(kind.word())
            .execute(&self.pool)
            .await;
        done.map(drop).map_err(failed("write to"))
    }
}
