//! What applying other content would do to a cluster, object by object and field by field.
//!
//! A Kustomization is built as apply-controller builds it, a HelmRelease rendered as helm-controller renders it, and the API server
//! is asked by dry runs, under their field managers, what would come of it. Nothing is written. Values of Secrets, and what was made
//! of them, are masked.
//!
//! | module | what it is |
//! |---|---|
//! | `content`, `artifact_files` | the files that stand for a source: a checkout, or an artifact |
//! | `archive` | fetches artifacts |
//! | `world` | the cluster, the content, and the changes that are known so far |
//! | `helpers` | as whom is asked, and who fetches what is not there yet |
//! | `follow` | from one Kustomization or HelmRelease to those that it applies |
//! | `kustomization`, `built`, `keys` | builds one, with the cluster's variables, decrypted where keys are at hand |
//! | `release`, `chart`, `upgrade` | renders one |
//! | `apply` | asks what would come of the objects, and what would be pruned |
//! | `desired` | what two objects, or two revisions of one, want to have applied, beside each other |
//! | `declared` | the file of a repository that has the manifest of an object |
//! | `proposed` | what new contents of files would change |
//! | `promoted` | what a release of a pipeline would change in files |
//! | `given` | the values that an object is built with, and where each is from |
//! | `report` | the findings, as data |
//! | `unified` | the difference of two texts |

mod apply;
mod archive;
mod artifact_files;
mod built;
mod chart;
mod confidential;
mod content;
mod declared;
mod desired;
mod follow;
mod given;
mod helpers;
pub mod keys;
mod kustomization;
mod promoted;
mod proposed;
mod reader;
mod release;
mod report;
mod source;
mod subject;
mod unified;
mod upgrade;
mod world;

pub use archive::{Archive, Archives};
pub use artifact_files::ArtifactFiles;
pub use chart::{ChartFacts, chart_facts};
pub use content::{Content, Nothing};
pub use declared::{Declared, declared, place_of};
pub use desired::Desired;
pub use follow::{all as compare, parents_first};
pub use given::{Given, GivenValue, given};
pub use helpers::{Accounts, Fetcher};
pub use promoted::{Promoted, Value as PromotedValue, promoted};
pub use proposed::{Proposed, proposed};
pub use reader::Reader;
pub use report::{Action, Entry, Field, Section, Summary};
pub use source::source_of;
pub use subject::Subject;
pub use unified::{Hunk, Line, hunks};
pub use world::World;
