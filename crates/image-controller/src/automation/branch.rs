//! Branches that hold changes: whose the newest commit is, by its bytes. Pure.

pub(super) mod head;
pub(crate) mod heads;

use change_policy::mark::{Change, Commit as Mark};
use change_policy::plan::Branch;
use git_client::pack::Pack;

use super::error::Error;
use super::update::{self, Updated};

/// Judges a commit: it is ours if we made it for this owner, under this address, on top of one commit, and no one has
/// amended, rebased or merged it since: Git writes down who does.
pub(super) fn judge(commit: &[u8], owner: &str, email: &str) -> Branch {
    let text = String::from_utf8_lossy(commit);
    let Some((head, message)) = text.split_once("\n\n") else {
        return Branch::Foreign;
    };
    let field = |name: &str| {
        let lines = head
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        lines.collect::<Vec<_>>()
    };
    let (parents, authors, committers) = (field("parent"), field("author"), field("committer"));
    let is_ours = parents.len() == 1
        && authors.len() == 1
        && authors == committers
        && authors[0].contains(&format!("<{}>", email.trim()));
    match Mark::of_message(message) {
        Some(mark) if is_ours && mark.owner == owner => Branch::Ours {
            change: mark.change,
            base: mark.base,
        },
        _ => Branch::Foreign,
    }
}

/// What identifies the change, and the files that it is made over; None if nothing changes.
pub(super) fn wanted(pack: &Pack, updated: &Updated) -> Result<Option<(Change, Change)>, Error> {
    if updated.contents.is_empty() {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for (file, changes) in &updated.files {
        for change in changes {
            let object = &change.object;
            let place = [file, &object.kind, &object.namespace, &object.name];
            parts.extend(place.map(String::as_str));
            parts.extend([change.setter.as_str(), &change.new]);
        }
    }
    let mut below = Vec::new();
    for path in updated.contents.keys() {
        let entry = pack.entry(path).map_err(update::Error::from)?;
        below.push(path.clone());
        below.push(entry.map(|(_, id)| id.to_string()).unwrap_or_default());
    }
    let base = Change::new(below.iter().map(String::as_str));
    Ok(Some((Change::new(parts), base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_made_and_no_one_touched_is_ours() {
        let mark = Mark {
            change: Change::new(["c"]),
            base: Change::new(["b"]),
            owner: "uid".to_owned(),
        };
        let message = mark.signed_off("Update");
        let me = "bot <bot@example.com> 1700000000 +0000";
        let commit = |parents: &str, author: &str, committer: &str, message: &str| {
            let text = format!("tree t\n{parents}author {author}\ncommitter {committer}\n\n{message}");
            judge(text.as_bytes(), "uid", "bot@example.com")
        };
        let ours = Branch::Ours {
            change: mark.change.clone(),
            base: mark.base.clone(),
        };
        assert_eq!(commit("parent p\n", me, me, &message), ours);
        // Signed commits have more fields.
        let signed = format!("{me}\ngpgsig -----BEGIN\n x\n -----END");
        assert_eq!(commit("parent p\n", me, &signed, &message), ours);
        let ana = "Ana <ana@example.com> 1700000001 +0000";
        let later = "bot <bot@example.com> 1700000009 +0000";
        let other = Mark {
            owner: "other".to_owned(),
            ..mark
        };
        for (what, commit) in [
            ("amended", commit("parent p\n", me, ana, &message)),
            (
                "amended under our name",
                commit("parent p\n", me, later, &message),
            ),
            ("a merge", commit("parent p\nparent q\n", me, me, &message)),
            ("without a mark", commit("parent p\n", me, me, "Update")),
            ("of a person", commit("parent p\n", ana, ana, &message)),
            (
                "of another automation",
                commit("parent p\n", me, me, &other.signed_off("Update")),
            ),
        ] {
            assert_eq!(commit, Branch::Foreign, "{what}");
        }
        assert_eq!(judge(b"nothing", "uid", "e"), Branch::Foreign);
    }
}
