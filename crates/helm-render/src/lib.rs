//! Helm charts: from a folder or an archive and values to manifests, hooks and notes, byte for byte as Helm.
//!
//! A chart is loaded once (`helm_chart::load`, `helm_chart::load_archive`) and rendered any number of times ([`Renderer`]), on any
//! thread. What a rendering depends on besides chart and values is in [`Options`]: the release, what the cluster can do
//! ([`capabilities::Capabilities`]), how to look objects up in it ([`Lookup`]), what to do with the result before it is split
//! into manifests ([`PostRender`]). What comes out is data ([`Rendered`]): manifests in the order of installation, each with
//! its template; hooks with events, weights and policies; CRDs; notes; warnings. Nothing here opens a connection, starts a
//! process or prints.
//!
//! The order of a rendering, module by module: `helm_chart` loads, [`dependencies`] settles which charts take part, [`values`]
//! composes, `helm_chart::schema` checks, `engine` executes templates with `functions`, `post_render` hands over, [`manifest`] sorts.
//! Errors are in Helm's words; [`Error::kind`], [`Error::file`] and [`Error::line`] say more.
//!
//! ```
//! use helm_chart::{File, Helm};
//! use helm_render::{Options, Release, Renderer};
//!
//! let file = |name: &str, text: &str| File { name: name.into(), data: text.into() };
//! let files = vec![
//!     file("Chart.yaml", "{apiVersion: v2, name: web, version: 1.0.0}"),
//!     file("values.yaml", "replicas: 1"),
//!     file(
//!         "templates/web.yaml",
//!         "kind: Deployment\nmetadata: {name: {{ .Release.Name }}}\nspec: {replicas: {{ .Values.replicas }}}\n",
//!     ),
//! ];
//! let chart = helm_chart::load_files(files, Helm::V4, &mut Vec::new())?;
//! let renderer = Renderer::new(chart, Helm::V4);
//!
//! let given = helm_chart::values::read(b"replicas: 3", Helm::V4)?;
//! let rendered = renderer.render(&given, &Options::new(Release::new("demo", "default")))?;
//! let manifest = &rendered.manifests[0];
//! assert_eq!((&*manifest.path, &*manifest.kind), ("web/templates/web.yaml", "Deployment"));
//! assert_eq!(manifest.content, "kind: Deployment\nmetadata: {name: demo}\nspec: {replicas: 3}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capabilities;
pub mod dependencies;
mod engine;
mod error;
mod functions;
pub mod glob;
pub mod manifest;
mod post_render;
pub mod printed;
mod release;
mod render;
pub mod values;

pub use crate::release::Release;
pub use error::{Error, ErrorKind};
pub use functions::Lookup;
pub use go_template::{Limits, Turn};
pub use post_render::{PostRender, PostRenderStrategy};
pub use render::{Crd, Options, OutputLimits, Rendered, Renderer, name_from_template};
