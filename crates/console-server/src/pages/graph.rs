//! The graph of what someone may get, as far as they filter it.

use std::sync::Arc;

use console_pages::{Shown, View, graph};
use fleet::row::Row;

use super::place::Asked;
use super::rows::{DELIVERY, query};
use crate::api::objects::wanted;
use crate::caller::Signed;
use crate::problem::Problem;

pub async fn show(signed: &Signed, view: &View, asked: Box<Asked>) -> Result<Shown, Problem> {
    let query = query(DELIVERY, &asked)?;
    let (_, rows, _room) = wanted(&signed.sight, &query).await?;
    let view = view.clone();
    // It takes processor time, and a library that tenants' objects had fail would end this request alone.
    let drawing = signed.sight.in_turn(move || {
        let rows = query.matching(rows)?;
        let rows: Vec<Arc<Row>> = rows.into_iter().map(|(_, row)| row).collect();
        Ok(graph::show(&view, &asked.search, &rows))
    });
    drawing.await?
}
