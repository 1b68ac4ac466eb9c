//! Loads a chart and says what it holds or why it was refused: `load_chart v4|v3 PATH`.
//!
//! For comparison with `helm template`, which checks a chart in the same order.

use std::io::Write;

use helm_chart::{Chart, Helm, check, load, locate};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let helm = match arguments.next().as_deref() {
        Some("v3") => Helm::V3,
        _ => Helm::V4,
    };
    let path = arguments.next().unwrap_or_default();
    let mut warnings = Vec::new();
    let located = locate(&path).map(Option::unwrap_or_default);
    let result = located
        .and_then(|path| load(&path, helm, &mut warnings))
        .and_then(|chart| {
            check(&chart, helm, &mut warnings)?;
            Ok(chart)
        });
    let mut out = std::io::stdout();
    match result {
        Ok(chart) => show(&chart, &mut out)?,
        Err(error) => writeln!(out, "Error: {error}")?,
    }
    for warning in warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

fn show(chart: &Chart, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "{} {}", chart.path, chart.metadata.version)?;
    for file in chart.content.templates.iter().chain(&chart.content.files) {
        writeln!(out, "  {} {}", file.name, file.data.len())?;
    }
    for below in &chart.dependencies {
        show(below, out)?;
    }
    Ok(())
}
