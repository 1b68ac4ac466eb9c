//! Renders a chart many times, and says how long one rendering takes once the templates are parsed.
//!
//! `cargo run --release -p helm-render --example render_many -- CHART [TIMES]`

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Instant;

use helm_chart::Helm;
use helm_render::{Options, Release, Renderer};
use serde_json::Map;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which chart?")?;
    let times: u32 = arguments.next().map_or(Ok(100), |times| times.parse())?;

    let start = Instant::now();
    let renderer = Renderer::new(helm_chart::load(&path, Helm::V4, &mut Vec::new())?, Helm::V4);
    let loaded = start.elapsed();

    let options = Options::new(Release::new("demo", "default"));
    let start = Instant::now();
    let rendered = renderer.render(&Map::new(), &options)?;
    let first = start.elapsed();

    let start = Instant::now();
    for _ in 0..times {
        renderer.render(&Map::new(), &options)?;
    }
    let each = start.elapsed() / times;
    let bytes: usize = rendered
        .manifests
        .iter()
        .map(|manifest| manifest.content.len())
        .sum();
    writeln!(
        stdout(),
        "{} manifests, {bytes} bytes: loaded in {loaded:.1?}, first rendering {first:.1?}, then {each:.1?} each",
        rendered.manifests.len(),
    )?;
    Ok(())
}
