//! Applications by clusters.

use std::sync::Arc;

use console_pages::fleet::{MAX_APPS, Matrix, same};
use console_pages::{Shown, View, fleet};

use super::place::Asked;
use super::rows::{APPLICATIONS, query};
use crate::api::objects::wanted;
use crate::caller::Signed;
use crate::problem::Problem;

pub async fn show(signed: &Signed, view: &View, asked: &Asked, skip: usize) -> Result<Shown, Problem> {
    let query = query(APPLICATIONS, asked)?;
    let (_, rows, _room) = wanted(&signed.sight, &query).await?;
    let cutting = signed.sight.in_turn(move || {
        let rows = query.matching(rows)?;
        let apps: Vec<_> = rows.chunk_by(|(_, a), (_, b)| same(a, b)).collect();
        let total = apps.len();
        let page = apps.into_iter().skip(skip).take(MAX_APPS).flatten();
        Ok::<_, Problem>((page.map(|(_, row)| row.clone()).collect::<Vec<Arc<_>>>(), total))
    });
    let (rows, total) = cutting.await??;
    Ok(fleet::show(
        view,
        &Matrix {
            search: &asked.search,
            rows: &rows,
            total,
            skipped: skip,
        },
    ))
}
