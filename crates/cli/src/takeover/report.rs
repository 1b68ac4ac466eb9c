//! Final report of a takeover or a give-back.

use super::compare::{Expected, differences};
use super::record::{Fate, Record, Stage};
use super::snapshot::Snapshot;
use crate::cluster::{Failure, print};

/// Says what was looked at, and what is not as it was.
pub(crate) fn report(
    record: &Record,
    before: &Snapshot,
    after: &Snapshot,
    expected: &Expected,
) -> Result<(), Failure> {
    let ready = before.objects.values().filter(|one| one.ready && !one.suspended);
    let suspended = before.objects.values().filter(|one| one.suspended).count();
    let [replaced, scaled] = match record.stage {
        Stage::GivingBack | Stage::GivenBack => ["put back", "scaled up again"],
        _ => ["replaced in place", "scaled down"],
    };
    let mut text = format!(
        "controllers of Flux: {} {replaced}, {} {scaled}\n\
         objects of Flux's kinds: {}, {} of them ready before and after, {suspended} suspended\n\
         delivered objects: {}\nHelm releases: {}\n",
        record.count(Fate::Replaced),
        record.count(Fate::ScaledDown),
        before.objects.len(),
        ready.count(),
        before.inventory.len(),
        before.releases.len(),
    );
    if before.elsewhere > 0 {
        text.push_str(&format!(
            "not looked at: what {} objects deliver to other clusters\n",
            before.elsewhere
        ));
    }
    // Their version counts what others write to them too, as tokens and endpoints, and says nothing of who did.
    let without = before
        .inventory
        .values()
        .filter(|one| one.generation == 0)
        .count();
    if without > 0 {
        text.push_str(&format!(
            "of {without} of the delivered objects, such as ConfigMaps, Secrets and roles, the server counts no changes: whether they \
             were made anew was looked at only\n"
        ));
    }
    if record.stage == Stage::TakenOver {
        record.suspended.iter().for_each(|id| {
            text.push_str(&format!("{id} stays suspended: it would put Flux back\n"));
        });
    }
    let found = differences(before, after, expected);
    if found.is_empty() {
        text.push_str("nothing was made anew, changed or released\n");
        return print(&text);
    }
    print(&text)?;
    let head = match found.len() {
        1 => "1 object is not as it was".to_owned(),
        count => format!("{count} objects are not as they were"),
    };
    Err(Failure::NotReady(format!("{head}:\n  {}", found.join("\n  "))))
}
