//! `windlass delete`: one object of delivery, after a question.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use manifest::ObjectId;
use serde_json::Value;

use crate::cluster::{self, Failure, print, select};

/// Command line of `delete`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME, or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Do not ask
    #[arg(long, short)]
    silent: bool,

    #[command(flatten)]
    cluster: cluster::ClusterFlags,
}

/// Deletes one object.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let target = select::one_target(&flags.words)?;
    cluster::run(&flags.cluster, async |cluster| {
        let id: ObjectId = target.id(&cluster.namespace);
        let object = cluster.need(&id).await?;
        if !flags.silent && !confirmed(&id, &object)? {
            return Err(Failure::NotReady(format!("{id} is not deleted")));
        }
        match cluster.delete(&id).await? {
            true => print(&format!("{id} is deleted\n")),
            false => Err(Failure::NotReady(format!("{id} does not exist any more"))),
        }
    })
}

/// Asks on a terminal. Without one, --silent is needed.
fn confirmed(id: &ObjectId, object: &Value) -> Result<bool, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::Usage(format!(
            "deleting {id} takes a yes: give --silent"
        )));
    }
    let objects = object
        .pointer("/status/inventory/entries")
        .and_then(Value::as_array);
    let pruned = match objects.map_or(0, Vec::len) {
        count if count > 0 && object["spec"]["prune"] == true => {
            format!(" and the {count} objects that it manages")
        }
        _ => String::new(),
    };
    let asked = write!(std::io::stderr(), "Delete {id}{pruned}? [y/N] ");
    asked.map_err(Failure::Print)?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer).map_err(Failure::Print)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
