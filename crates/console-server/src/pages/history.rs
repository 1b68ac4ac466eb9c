//! Deliveries, actions, and the figures of DORA.

use console_pages::history::{self, History};
use console_pages::{Shown, View, state};
use ledger::dora::{self, By};

use crate::api::deliveries::{self, Parameters, seen};
use crate::caller::Signed;
use crate::problem::Problem;

/// Days of the chart.
const DAYS: i64 = 30;
/// Actions that the page shows.
const MAX_ACTIONS: usize = 10;

/// How it was at a time.
pub async fn state(signed: &Signed, view: &View, typed: &str) -> Result<Shown, Problem> {
    let sight = &signed.sight;
    let ledger = deliveries::ledger(&sight.console)?;
    let typed = if typed.is_empty() { "1d" } else { typed };
    let at = deliveries::time("at", typed, view.now)?.unwrap_or(view.now);
    let parameters = Parameters::before(at);
    let reading = deliveries::of_window(sight, ledger, &parameters, view.now, |rows, _| state::after(rows));
    Ok(state::show(view, at, typed, &reading.await?))
}

pub async fn show(signed: &Signed, view: &View, parameters: Box<Parameters>) -> Result<Shown, Problem> {
    let sight = &signed.sight;
    let ledger = deliveries::ledger(&sight.console)?;
    let (wanted, filter) = parameters.filter(view.now)?;
    let scopes = seen(sight, ledger, &wanted).await?;
    let rows = ledger.deliveries(&scopes, &filter).await?;
    let last = rows.last().filter(|_| rows.len() == filter.limit);
    let next = last.map(|row| format!("{}/{}", row.ended, row.id));
    let mut of_actions = filter.clone();
    of_actions.limit = MAX_ACTIONS;
    let actions = ledger
        .actions(&scopes, &of_actions, parameters.username())
        .await?;
    // A window with too much in it has a list, and no figures.
    let now = view.now;
    let computing = deliveries::of_window(sight, ledger, &parameters, now, move |rows, window| {
        let figures = dora::figures(rows, window, &By::All).into_values().next();
        (figures, history::days(rows, now, DAYS))
    });
    let (figures, days) = computing.await.unwrap_or_default();
    Ok(history::show(
        view,
        &History {
            given: parameters.given(),
            deliveries: &rows,
            next,
            actions: &actions,
            figures: figures.as_ref(),
            days: &days,
        },
    ))
}
