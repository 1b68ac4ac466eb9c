//! A chart as a package: the files, in the order and under the names of `helm package`, in a tar.gz.
//!
//! Other than Helm's, the same chart gives the same bytes for ever: times are 0, and dependencies stand in the order of the
//! chart. Helm's gzip header is kept, since some tell charts by it.

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use helm_chart::Chart;
use tar::{Builder, Header};

use crate::chart_yaml::{chart_lock, chart_yaml};
use crate::error::{Error, Step, Words, during};

/// Extra field that Helm writes into the gzip header of every chart: a subfield "rr" of 40 bytes.
const EXTRA: &[u8] = b"rr\x28\x00aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo=";
const COMMENT: &str = "Helm";
const LEVEL: u32 = 6;
const MODE: u32 = 0o644;
/// Longer names go to an extension record.
const NAME_FIELD: usize = 100;

/// Writes a chart as a package.
///
/// # Errors
/// When the chart cannot be written as YAML, or the output fails.
pub fn write(chart: &Chart, output: impl Write) -> Result<(), Error> {
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .extra(EXTRA)
        .comment(COMMENT)
        .write(output, Compression::new(LEVEL));
    let mut tar = Builder::new(gzip);
    append_chart(&mut tar, chart, "").map_err(during(Step::Package))?;
    let finished = tar.into_inner().and_then(flate2::write::GzEncoder::finish);
    let mut output = finished.map_err(during(Step::Package))?;
    output.flush().map_err(during(Step::Package))
}

fn append_chart<W: Write>(tar: &mut Builder<W>, chart: &Chart, prefix: &str) -> io::Result<()> {
    let base = format!("{prefix}{}", chart.name());
    let mut append = |name: &str, data: &[u8]| append(tar, &format!("{base}/{name}"), data);
    let content = &chart.content;
    append(
        "Chart.yaml",
        chart_yaml(&chart.metadata).map_err(io::Error::other)?.as_bytes(),
    )?;
    if let Some(lock) = content
        .lock
        .as_ref()
        .filter(|_| chart.metadata.api_version == "v2")
    {
        append(
            "Chart.lock",
            chart_lock(lock).map_err(io::Error::other)?.as_bytes(),
        )?;
    }
    if let Some(values) = &content.values {
        append("values.yaml", &values.data)?;
    }
    if let Some(schema) = &content.schema {
        let data = &schema.file().data;
        if go_text::json::decode_only(data).is_err() {
            return Err(io::Error::other(Words(
                "invalid JSON in values.schema.json".to_owned(),
            )));
        }
        append("values.schema.json", data)?;
    }
    for file in content.templates.iter().chain(&content.files) {
        append(&file.name, &file.data)?;
    }
    for dependency in &chart.dependencies {
        append_chart(tar, dependency, &format!("{base}/charts/"))?;
    }
    Ok(())
}

fn append<W: Write>(tar: &mut Builder<W>, path: &str, data: &[u8]) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_mode(MODE);
    header.set_size(data.len() as u64);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    if path.len() > NAME_FIELD || !path.is_ascii() {
        tar.append_pax_extensions([("path", path.as_bytes())])?;
    }
    let field: String = path.chars().filter(char::is_ascii).take(NAME_FIELD).collect();
    header.as_old_mut().name[..field.len()].copy_from_slice(field.as_bytes());
    header.set_cksum();
    tar.append(&header, data)
}
