//! Whose a commit is, by its bytes. Pure.

use change_policy::mark::Commit as Mark;
use change_policy::plan::Branch;

/// Judges a commit: it is ours if we made it for this owner, under this address, on top of one commit, and no one has
/// amended, rebased or merged it since: Git writes down who does.
pub fn judge(commit: &[u8], owner: &str, email: &str) -> Branch {
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

#[cfg(test)]
mod tests {
    use change_policy::mark::Change;

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
