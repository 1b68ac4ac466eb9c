//! What people did, beside the deliveries.

use jiff::{SignedDuration, Timestamp};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{Error, Filter, Ledger, MAX_PAGE, Question, Scope, failed, number, remember_scope};
use crate::action::{Action, End};

/// Actions of one user in an hour.
const MOST_PER_HOUR: i64 = 3000;

const SELECT: &str = "SELECT d.id, d.cluster, d.kind, d.namespace, d.name, d.verb, d.username, d.member_of, d.reason, d.began, \
     d.outcome, d.message FROM actions d";

impl Ledger {
    /// Notes that someone is about to do something. Returns false if they did so much in the last hour that it must not be done.
    ///
    /// # Errors
    /// When the store does not take it: then it must not be done either.
    pub async fn begin_action(&self, action: &Action) -> Result<bool, Error> {
        self.try_begin(action).await.map_err(failed("write to"))
    }

    async fn try_begin(&self, action: &Action) -> sqlx::Result<bool> {
        let mut transaction = self.begin(number(&["actions", &action.username])).await?;
        let hour_ago = (action.began - SignedDuration::from_hours(1)).as_millisecond();
        let counting = sqlx::query("SELECT COUNT(*) FROM actions WHERE username = $1 AND began > $2")
            .bind(&action.username)
            .bind(hour_ago);
        let count: i64 = counting.fetch_one(&mut *transaction).await?.try_get(0)?;
        if count >= MOST_PER_HOUR {
            return Ok(false);
        }
        let names = [&action.cluster, &action.kind, &action.namespace].map(String::as_str);
        sqlx::query(
            "INSERT INTO actions (id, scope, cluster, kind, namespace, name, verb, username, member_of, reason, began, outcome, \
             message) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        )
        .bind(&action.id)
        .bind(number(&names))
        .bind(&action.cluster)
        .bind(&action.kind)
        .bind(&action.namespace)
        .bind(&action.name)
        .bind(&action.verb)
        .bind(&action.username)
        .bind(serde_json::to_string(&action.groups).unwrap_or_default())
        .bind(&action.reason)
        .bind(action.began.as_millisecond())
        .bind(action.end.word())
        .bind(&action.message)
        .execute(&mut *transaction)
        .await?;
        remember_scope(&mut transaction, names).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Notes how an action went.
    ///
    /// # Errors
    /// When the store does not take it; the action stays one of unknown end.
    pub async fn end_action(&self, id: &str, end: End, message: &str) -> Result<(), Error> {
        let done = sqlx::query("UPDATE actions SET outcome = $2, message = $3 WHERE id = $1")
            .bind(id)
            .bind(end.word())
            .bind(message)
            .execute(&self.pool)
            .await;
        done.map(drop).map_err(failed("write to"))
    }

    /// What was done to objects of these scopes, newest first; at most 500. The filter's outcome and revision do not count.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn actions(
        &self,
        scopes: &[Scope],
        filter: &Filter,
        username: Option<&str>,
    ) -> Result<Vec<Action>, Error> {
        if scopes.is_empty() {
            return Ok(Vec::new());
        }
        let mut question = Question::new(SELECT, scopes);
        if let Some(name) = &filter.name {
            question.text("d.name = $?", name);
        }
        if let Some(username) = username {
            question.text("d.username = $?", username);
        }
        question.times("d.began", filter.since, filter.until);
        let limit = filter.limit.clamp(1, MAX_PAGE);
        let rows = question.page(&self.pool, "d.began", filter.after.as_ref(), limit);
        let rows = rows.await.map_err(failed("read"))?;
        let rows: sqlx::Result<Vec<Action>> = rows.iter().map(action).collect();
        rows.map_err(failed("read"))
    }
}

fn action(row: &AnyRow) -> sqlx::Result<Action> {
    let text = |index: usize| row.try_get::<String, _>(index);
    let began = Timestamp::from_millisecond(row.try_get(9)?);
    Ok(Action {
        id: text(0)?,
        cluster: text(1)?,
        kind: text(2)?,
        namespace: text(3)?,
        name: text(4)?,
        verb: text(5)?,
        username: text(6)?,
        groups: serde_json::from_str(&text(7)?).unwrap_or_default(),
        reason: text(8)?,
        began: began.map_err(|error| sqlx::Error::Decode(error.into()))?,
        end: End::parse(&text(10)?).unwrap_or(End::Unknown),
        message: text(11)?,
    })
}
