//! `windlass orphans`: objects that nothing delivers, and fields of delivered ones that were set by hand. A cluster that is made anew from Git
//! would not have them.

pub(crate) mod survey;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use delivery_graph::field_managers::{Program, Write};
use delivery_graph::orphans::{Maker, Release};
use jiff::Timestamp;
use manifest::ObjectId;
use serde_json::{Value, json};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, ClusterFlags, Failure, Output, print};
use survey::{Seen, Survey};

/// Command line of `orphans`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Kinds, as kubectl names them; all by default
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,

    /// Include what controllers and Kubernetes itself have made
    #[arg(long)]
    all: bool,

    /// Show fields of delivered objects that were set by hand, instead of objects
    #[arg(long)]
    fields: bool,

    /// Exit with 5 if anything is found
    #[arg(long)]
    exit_code: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    /// Namespace; the whole cluster by default
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,

    /// Kubeconfig file; defaults to $KUBECONFIG, ~/.kube/config, or the Pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Looks, and prints. `report_line` is for what could not be seen, and for the sum.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let cluster = ClusterFlags::of_context(flags.kubeconfig.clone(), flags.context.clone());
    let survey = cluster::run(&cluster, async |cluster| {
        survey::take(&cluster, flags.namespace.as_deref(), &flags.kinds).await
    })?;
    let colours = Colours::of_terminal();
    let (count, sum) = if flags.fields {
        let found = set_by_hand(&survey);
        match flags.output {
            Output::Json | Output::Yaml => {
                let values = found.iter().map(Field::value).collect();
                print(&output::document(&Value::Array(values), flags.output)?)?;
            }
            Output::Name => print(&names(found.iter().map(|field| field.object)))?,
            Output::Table | Output::Wide => print(&table_of_fields(&found, colours))?,
        }
        (
            found.len(),
            format!("{} fields of delivered objects were set by hand", found.len()),
        )
    } else {
        let found = rows(&survey, flags.all);
        match flags.output {
            Output::Json | Output::Yaml => print(&output::document(&value(&found), flags.output)?)?,
            Output::Name => print(&names(found.iter().flat_map(|row| &row.objects).copied()))?,
            Output::Table | Output::Wide => print(&table(&found, colours))?,
        }
        (
            found.iter().filter(|row| row.maker.is_orphan()).count(),
            sum(&survey),
        )
    };
    report_line(&sum);
    for unseen in &survey.unseen {
        report_line(unseen);
    }
    match (survey.unseen.len(), count) {
        (0, 1..) if flags.exit_code => Err(Failure::Differs),
        (0, _) => Ok(()),
        (kinds, _) => Err(Failure::Incomplete(format!(
            "{kinds} kinds could not be listed, and may have more"
        ))),
    }
}

/// A line: an object, or a release of Helm with all that it has.
pub(crate) struct Row<'s> {
    pub(crate) maker: &'s Maker,
    pub(crate) objects: Vec<&'s ObjectId>,
    created: Option<Timestamp>,
}

/// What is shown, ordered by namespace, kind and name.
pub(crate) fn rows(survey: &Survey, all: bool) -> Vec<Row<'_>> {
    let mut rows: BTreeMap<[&str; 4], Row<'_>> = BTreeMap::new();
    for Seen {
        id, maker, created, ..
    } in &survey.objects
    {
        let is_shown = match maker {
            Maker::Delivered | Maker::Owned => false,
            maker => all || maker.is_orphan(),
        };
        if !is_shown {
            continue;
        }
        let key = match maker {
            Maker::Helm(Release { namespace, name }) => [namespace.as_str(), "", name, "helm"],
            _ => [id.namespace.as_str(), &id.kind, &id.name, &id.group],
        };
        let row = rows.entry(key).or_insert(Row {
            maker,
            objects: Vec::new(),
            created: *created,
        });
        row.objects.push(id);
        row.created = row.created.min(*created);
    }
    rows.into_values().collect()
}

impl Row<'_> {
    /// What people call it.
    pub(crate) fn subject(&self) -> String {
        match (self.maker, self.objects.first()) {
            // Annotations may hold anything.
            (Maker::Helm(Release { namespace, name }), _) => {
                delivery_graph::one_line(&format!("release {namespace}/{name}"))
            }
            (_, Some(id)) => id.to_string(),
            (_, None) => String::new(),
        }
    }

    pub(crate) fn by(&self) -> &str {
        match self.maker {
            Maker::Person(manager)
            | Maker::Tool(manager)
            | Maker::Unknown(manager)
            | Maker::Controller(manager) => manager,
            Maker::Helm(_) => "helm",
            _ => "",
        }
    }

    pub(crate) fn because(&self) -> String {
        let because = match self.maker {
            Maker::Person(_) => "made by hand".to_owned(),
            Maker::Helm(_) => format!("no HelmRelease has it; {}", counted(self.objects.len(), "object")),
            Maker::LeftBehind { by, exists: true } => format!("{by} does not list it any more"),
            Maker::LeftBehind { by, exists: false } => {
                format!("its labels name {by}, which this cluster does not have")
            }
            Maker::Tool(_) => "made by another tool".to_owned(),
            Maker::Unknown(manager) if manager.is_empty() => "nothing says what made it".to_owned(),
            Maker::Unknown(_) => "made by an unknown program".to_owned(),
            Maker::Controller(_) => "made by a controller".to_owned(),
            Maker::Kubernetes => "part of Kubernetes".to_owned(),
            Maker::Delivered | Maker::Owned => String::new(),
        };
        let is_only_here = matches!(self.maker, Maker::Person(_) | Maker::Unknown(_)) && self.is_secret();
        match is_only_here {
            true => format!("{because}; nothing else has its content"),
            false => because,
        }
    }

    fn is_secret(&self) -> bool {
        self.objects
            .iter()
            .any(|id| id.group.is_empty() && id.kind == "Secret")
    }
}

fn table(rows: &[Row<'_>], colours: Colours) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cells = rows.iter().map(|row| {
        let tone = match row.maker {
            Maker::Person(_) | Maker::LeftBehind { .. } => Tone::Open,
            _ => Tone::Plain,
        };
        vec![
            Cell::from(row.subject()),
            Cell::toned(row.by(), tone),
            day(row.created).into(),
            row.because().into(),
        ]
    });
    output::table(
        &["OBJECT", "MADE BY", "CREATED", "BECAUSE"],
        &cells.collect::<Vec<_>>(),
        colours,
    )
}

pub(crate) fn value(rows: &[Row<'_>]) -> Value {
    let items = rows.iter().map(|row| {
        let objects: Vec<Value> = row.objects.iter().map(|id| json!(id)).collect();
        json!({
            "maker": row.maker.word(),
            "by": row.by(),
            "because": row.because(),
            "created": row.created.map(|at| at.to_string()),
            "objects": objects,
        })
    });
    Value::Array(items.collect())
}

/// How much of the cluster comes from Git.
fn sum(survey: &Survey) -> String {
    let count = |is: &dyn Fn(&Maker) -> bool| survey.objects.iter().filter(|seen| is(&seen.maker)).count();
    let delivered = count(&|maker| *maker == Maker::Delivered);
    let orphans = count(&Maker::is_orphan);
    let is_secret = |seen: &&Seen| seen.id.group.is_empty() && seen.id.kind == "Secret";
    let secrets = survey.objects.iter().filter(is_secret);
    let secrets = secrets.filter(|seen| seen.maker.is_orphan()).count();
    format!(
        "{} delivered, {} not ({})",
        counted(delivered, "object"),
        orphans,
        counted(secrets, "Secret")
    )
}

/// A field that was set by hand.
pub(crate) struct Field<'s> {
    pub(crate) object: &'s ObjectId,
    pub(crate) path: &'s str,
    pub(crate) write: &'s Write,
}

/// Fields that were set by hand in what is delivered.
pub(crate) fn set_by_hand(survey: &Survey) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    for seen in survey
        .objects
        .iter()
        .filter(|seen| seen.maker == Maker::Delivered)
    {
        for write in &seen.writes {
            if Program::from_manager(&write.manager) == Program::Person {
                let paths = write.paths.iter();
                fields.extend(paths.map(|path| Field {
                    object: &seen.id,
                    path,
                    write,
                }));
            }
        }
    }
    fields
}

impl Field<'_> {
    pub(crate) fn value(&self) -> Value {
        json!({
            "object": self.object,
            "field": self.path,
            "by": self.write.manager,
            "last": self.write.at.map(|at| at.to_string()),
        })
    }
}

fn table_of_fields(fields: &[Field<'_>], colours: Colours) -> String {
    if fields.is_empty() {
        return String::new();
    }
    let cells = fields.iter().map(|field| {
        vec![
            Cell::from(field.object.to_string()),
            field.path.into(),
            field.write.manager.as_str().into(),
            day(field.write.at).into(),
        ]
    });
    output::table(
        &["OBJECT", "FIELD", "SET BY", "LAST"],
        &cells.collect::<Vec<_>>(),
        colours,
    )
}

fn names<'i>(ids: impl Iterator<Item = &'i ObjectId>) -> String {
    let mut ids: Vec<_> = ids.collect();
    ids.dedup();
    ids.iter().map(|id| format!("{id}\n")).collect()
}

fn day(at: Option<Timestamp>) -> String {
    at.map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default()
}

pub(crate) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: &str, maker: Maker) -> Seen {
        Seen {
            id: ObjectId::parse_inventory_id(id).expect("an id"),
            maker,
            created: None,
            is_record: false,
            writes: Vec::new(),
        }
    }

    fn survey() -> Survey {
        let redis = Maker::Helm(Release {
            namespace: "shop".to_owned(),
            name: "redis".to_owned(),
        });
        let gone = ObjectId::parse_inventory_id("flux-system_apps_kustomize.toolkit.fluxcd.io_Kustomization");
        let gone = gone.expect("an id");
        Survey {
            objects: vec![
                seen("shop_web_apps_Deployment", Maker::Delivered),
                seen("shop_db__Secret", Maker::Person("kubectl".to_owned())),
                seen("shop_redis_apps_StatefulSet", redis.clone()),
                seen("shop_redis__Service", redis),
                seen(
                    "shop_old__ConfigMap",
                    Maker::LeftBehind {
                        by: gone,
                        exists: false,
                    },
                ),
                seen("shop_tls__Secret", Maker::Controller("cert-manager".to_owned())),
                seen("shop_pod__Pod", Maker::Owned),
            ],
            kinds: Vec::new(),
            unseen: Vec::new(),
        }
    }

    #[test]
    fn a_release_is_one_line_and_controllers_are_shown_on_demand() {
        let survey = survey();
        let found = rows(&survey, false);
        assert_eq!(
            table(&found, Colours::none()),
            "OBJECT              MADE BY  CREATED  BECAUSE\n\
             release shop/redis  helm              no HelmRelease has it; 2 objects\n\
             ConfigMap/shop/old                    its labels name Kustomization/flux-system/apps, which this cluster does not have\n\
             Secret/shop/db      kubectl           made by hand; nothing else has its content\n"
        );
        assert_eq!(rows(&survey, true).len(), 4);
        assert_eq!(sum(&survey), "1 object delivered, 4 not (1 Secret)");
        assert_eq!(value(&found)[0]["objects"][1]["kind"], "Service");
    }

    /// Tenants write annotations, and this goes to the terminal of an administrator.
    #[test]
    fn the_name_of_a_release_does_not_steer_a_terminal() {
        let release = Maker::Helm(Release {
            namespace: "shop".to_owned(),
            name: "a\u{1b}[2J\nSecret/shop/db".to_owned(),
        });
        let survey = Survey {
            objects: vec![seen("shop_a__ConfigMap", release)],
            kinds: Vec::new(),
            unseen: Vec::new(),
        };
        let subject = rows(&survey, false)[0].subject();
        assert!(!subject.contains(char::is_control), "{subject:?}");
    }
}
