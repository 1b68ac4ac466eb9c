//! The graph of delivery: sources, what is made of them, and what they applied, as a picture with links.
//!
//! It is laid out here, so browsers get positions and no library: it can be read, printed, and followed without scripts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ::fleet::row::{Row, Status};
use maud::{Markup, html};
use rust_sugiyama::configure::Config;
use rust_sugiyama::from_vertices_and_edges;

use crate::search::Search;
use crate::{Shown, View, element, link, list};

/// Objects of a picture; a larger one cannot be read.
pub const MAX_OBJECTS: usize = 200;

/// A node's size and the space around it, in the picture's units; edges go to the right.
const WIDTH: f64 = 190.0;
const HEIGHT: f64 = 40.0;
const GAP: f64 = 50.0;
const ROW_GAP: f64 = 12.0;
/// Characters of a name, and of where it is.
const MAX_NAME: usize = 20;
const MAX_PLACE: usize = 27;

/// Shows it. For more rows than [`MAX_OBJECTS`], it asks for a filter instead.
pub fn show(view: &View, search: &Search, rows: &[Arc<Row>]) -> Shown {
    let texts = view.texts;
    let content = html! {
        div #graph.wide tabindex="0" {
            @match rows.len() {
                0 => p { (texts.no_rows) },
                1..=MAX_OBJECTS => (picture(view, rows)),
                more => p { (more) " " (texts.of_total) ": " (texts.too_many) },
            }
        }
    };
    let count = |status: Status| rows.iter().filter(|row| row.status == status).count();
    Shown {
        title: texts.graph.to_owned(),
        mood: list::mood(count(Status::Failed), count(Status::InProgress)),
        main: html! {
            h1 { (texts.graph) }
            form.filter action="/graph" role="search" {
                input #q type="search" name="q" value=(search.typed) placeholder=(texts.search_hint) aria-label=(texts.search);
                button { (texts.search) }
            }
            (content)
        },
        parts: vec![("graph".to_owned(), content)],
        frame: None,
    }
}

/// Where the middle of a node is.
type Place = (f64, f64);

fn picture(view: &View, rows: &[Arc<Row>]) -> Markup {
    let edges = edges(rows);
    let (places, width, height) = layout(rows.len(), &edges);
    let viewbox = format!("0 0 {width:.0} {height:.0}");
    html! {
        svg.graph viewBox=(viewbox) width=(format!("{width:.0}")) height=(format!("{height:.0}")) role="group" aria-label=(view.texts.graph) {
            @for (from, to) in &edges {
                @if let (Some(from), Some(to)) = (places.get(from), places.get(to)) { path d=(curve(*from, *to)) {} }
            }
            @for (number, row) in (0..).zip(rows) {
                @if let Some(place) = places.get(&number) { (node(view, row, *place)) }
            }
        }
    }
}

/// From what something is made of, and from what applied it. In one cluster, each object has one name.
fn edges(rows: &[Arc<Row>]) -> Vec<(u32, u32)> {
    let numbers: HashMap<(&str, String), u32> = (0..)
        .zip(rows)
        .map(|(number, row)| ((&*row.cluster, row.id()), number))
        .collect();
    let mut edges = Vec::new();
    for (number, row) in (0..).zip(rows) {
        for above in [&row.source, &row.owner] {
            let above = numbers.get(&(&*row.cluster, above.to_string()));
            edges.extend(
                above
                    .filter(|above| **above != number)
                    .map(|above| (*above, number)),
            );
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Places of the nodes, and the size of the whole. The library puts layers below each other; here they are beside each other.
fn layout(count: usize, edges: &[(u32, u32)]) -> (BTreeMap<u32, Place>, f64, f64) {
    let count = u32::try_from(count).unwrap_or_default();
    let vertices: Vec<(u32, (f64, f64))> = (0..count).map(|number| (number, (HEIGHT, WIDTH))).collect();
    let config = Config {
        vertex_spacing: ROW_GAP,
        ..Config::default()
    };
    let mut places = BTreeMap::new();
    let (mut width, mut below): (f64, f64) = (WIDTH, 0.0);
    for (nodes, _, _) in from_vertices_and_edges(&vertices, edges, &config) {
        let least = |of: fn(&Place) -> f64| {
            nodes
                .iter()
                .map(|(_, place)| of(place))
                .fold(f64::INFINITY, f64::min)
        };
        let (left, top) = (least(|place| place.1), least(|place| place.0));
        let mut bottom = below;
        for (number, (down, right)) in &nodes {
            // Layers are as far apart as nodes are wide, and the space of an edge more.
            let x = (right - left) * (WIDTH + GAP) / (WIDTH + ROW_GAP) + WIDTH / 2.0 + 1.0;
            let y = below + (down - top) + HEIGHT / 2.0 + 1.0;
            width = width.max(x + WIDTH / 2.0);
            bottom = bottom.max(y + HEIGHT / 2.0);
            places.insert(u32::try_from(*number).unwrap_or(u32::MAX), (x, y));
        }
        below = bottom + ROW_GAP;
    }
    (places, width + 1.0, below)
}

fn curve((x, y): Place, (to_x, to_y): Place) -> String {
    let (begin, end) = (x + WIDTH / 2.0, to_x - WIDTH / 2.0);
    let middle = f64::midpoint(begin, end);
    format!("M{begin:.0} {y:.0}C{middle:.0} {y:.0} {middle:.0} {to_y:.0} {end:.0} {to_y:.0}")
}

fn node(view: &View, row: &Row, (x, y): Place) -> Markup {
    let (class, mark) = match row.status {
        Status::Ready => ("ready", "●"),
        Status::Failed => ("failed", "✕"),
        Status::InProgress => ("busy", "◐"),
        Status::Suspended => ("suspended", "‖"),
        Status::Unknown => ("unknown", "○"),
    };
    let (left, top) = (x - WIDTH / 2.0, y - HEIGHT / 2.0);
    let number = |value: f64| format!("{value:.0}");
    html! {
        a href=(link::row(row)) class=(class) {
            title { (row.kind) " " (row.namespace) "/" (row.name) " · " (row.cluster) ": " (element::word(view, row.status)) " " (row.message) }
            rect x=(number(left)) y=(number(top)) width=(number(WIDTH)) height=(number(HEIGHT)) rx="6" {}
            text.mark x=(number(left + 10.0)) y=(number(y + 5.0)) { (mark) }
            text.label x=(number(left + 32.0)) y=(number(y - 2.0)) { (shortened(&row.name, MAX_NAME)) }
            text.kind x=(number(left + 32.0)) y=(number(y + 13.0)) { (shortened(&format!("{} · {} · {}", row.kind, row.namespace, row.cluster), MAX_PLACE)) }
        }
    }
}

/// The beginning of a text.
fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_lie_apart_and_edges_go_to_the_right() {
        // A chain, a fork, a circle, and one by itself.
        let edges = [(0, 1), (1, 2), (0, 3), (4, 5), (5, 4)];
        let (places, width, height) = layout(7, &edges);
        assert_eq!(places.len(), 7);
        let all: Vec<Place> = places.values().copied().collect();
        for (number, (x, y)) in all.iter().enumerate() {
            assert!(
                *x >= WIDTH / 2.0
                    && x + WIDTH / 2.0 <= width
                    && *y >= HEIGHT / 2.0
                    && y + HEIGHT / 2.0 <= height
            );
            for (other_x, other_y) in &all[number + 1..] {
                assert!(
                    (x - other_x).abs() >= WIDTH || (y - other_y).abs() >= HEIGHT,
                    "{all:?}"
                );
            }
        }
        for (from, to) in &edges[..3] {
            assert!(places[from].0 + WIDTH <= places[to].0, "{from} {to} {all:?}");
        }
        assert!(layout(0, &[]).0.is_empty());
    }
}
