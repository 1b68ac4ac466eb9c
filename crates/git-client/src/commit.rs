//! A commit as an object: who made it, when, on top of what, with which message, signed or not.

use std::fmt::Write as _;

use git_pack::{Kind, Object};
use gix::ObjectId;

/// A person, or a program that commits for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Name; may be empty.
    pub name: String,
    /// Mail address.
    pub email: String,
}

/// A commit to be made.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Tree that it holds.
    pub tree: ObjectId,
    /// Commits that it follows.
    pub parents: Vec<ObjectId>,
    /// Author, and committer.
    pub author: Person,
    /// Seconds of Unix; the time zone is UTC.
    pub time: i64,
    /// Message, as it is.
    pub message: String,
}

impl Draft {
    /// Returns the bytes of the commit without a signature: what is signed.
    pub fn unsigned(&self) -> Vec<u8> {
        self.written(None)
    }

    /// Makes the commit; the signature is armored, by OpenPGP or SSH, over [`Draft::unsigned`].
    ///
    /// # Errors
    /// When its bytes have the marks of a collision attack.
    pub fn commit(&self, signature: Option<&str>) -> Result<Object, git_pack::Error> {
        Object::new(Kind::Commit, self.written(signature))
    }

    fn written(&self, signature: Option<&str>) -> Vec<u8> {
        let mut text = format!("tree {}\n", self.tree);
        for parent in &self.parents {
            let _ = writeln!(text, "parent {parent}"); // a String takes all
        }
        for role in ["author", "committer"] {
            let (name, email) = (plain(&self.author.name), plain(&self.author.email));
            // With the blank before the address even if there is no name: git fsck wants it.
            let _ = writeln!(text, "{role} {name} <{email}> {} +0000", self.time);
        }
        if let Some(signature) = signature {
            let lines: Vec<_> = signature.trim_end().lines().collect();
            let _ = writeln!(text, "gpgsig {}", lines.join("\n "));
        }
        text.push('\n');
        text.extend(self.message.chars().filter(|character| *character != '\0'));
        text.into_bytes()
    }
}

/// A name or an address as it may stand in a commit: without what ends it there, so that it says nothing else.
fn plain(text: &str) -> String {
    let kept = text
        .chars()
        .filter(|c| !c.is_control() && !matches!(c, '<' | '>'));
    kept.collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(name: &str, email: &str, message: &str) -> Draft {
        let id = ObjectId::empty_tree(gix::hash::Kind::Sha1);
        Draft {
            tree: id,
            parents: vec![id],
            author: Person {
                name: name.into(),
                email: email.into(),
            },
            time: 1_700_000_000,
            message: message.into(),
        }
    }

    fn text(draft: &Draft, signature: Option<&str>) -> String {
        String::from_utf8(draft.commit(signature).unwrap().content().to_vec()).unwrap()
    }

    #[test]
    fn a_commit_says_who_when_and_why() {
        let written = text(&draft("Fluxbot", "flux@example.com", "Update\n\nbody\n"), None);
        assert_eq!(
            written,
            "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\
             author Fluxbot <flux@example.com> 1700000000 +0000\n\
             committer Fluxbot <flux@example.com> 1700000000 +0000\n\nUpdate\n\nbody\n"
        );
        let signed = text(&draft("", "a@b", "m"), Some("BEGIN\n\nx\nEND\n"));
        assert!(signed.contains("author  <a@b> 1700000000"), "{signed}");
        assert!(signed.contains("\ngpgsig BEGIN\n \n x\n END\n\nm"), "{signed}");
    }

    #[test]
    fn a_name_cannot_add_lines_to_a_commit() {
        let forged = "Bot <real@example.com> 1 +0000\nparent 0000000000000000000000000000000000000000\nx ";
        let written = text(&draft(forged, "a@b>\n\nforged", "m\0m"), None);
        assert_eq!(written.matches("\nparent ").count(), 1, "{written}");
        assert_eq!(written.matches("\n\n").count(), 1, "{written}");
        assert!(written.ends_with("\n\nmm"));
    }
}
