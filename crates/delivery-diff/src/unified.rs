//! The difference of two texts in unified form. Pure.

/// So many equal lines are shown around a difference.
const CONTEXT: usize = 3;
/// Texts with more places to compare are shown as replaced as a whole: an answer that comes is worth more than the shortest.
const PLACES: usize = 16 << 20;

/// A line: of both texts, of the old or of the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'t> {
    /// Of both.
    Same(&'t str),
    /// Of the old one.
    Old(&'t str),
    /// Of the new one.
    New(&'t str),
}

/// A place where two texts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'t> {
    /// Which lines of each: `@@ -7,11 +7,11 @@`.
    pub header: String,
    /// The lines.
    pub lines: Vec<Line<'t>>,
}

/// The hunks in which two texts differ; none when they do not.
pub fn hunks<'t>(old: &'t str, new: &'t str) -> Vec<Hunk<'t>> {
    let lines = lines(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let mut hunks = Vec::new();
    let mut from = 0;
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    while let Some(first) = lines[from..].iter().position(is_change).map(|at| at + from) {
        let start = first.saturating_sub(CONTEXT).max(from);
        let mut last = first;
        // Differences that are near each other share a hunk.
        while let Some(next) = lines[last + 1..].iter().position(is_change) {
            if next > 2 * CONTEXT {
                break;
            }
            last += next + 1;
        }
        let end = (last + 1 + CONTEXT).min(lines.len());
        hunks.push(Hunk {
            header: header(&lines, start, end),
            lines: lines[start..end].to_vec(),
        });
        from = end;
    }
    hunks
}

fn header(lines: &[Line<'_>], start: usize, end: usize) -> String {
    let count = |lines: &[Line<'_>], is_old: bool| {
        let other = |line: &&Line<'_>| match line {
            Line::Same(_) => true,
            Line::Old(_) => is_old,
            Line::New(_) => !is_old,
        };
        lines.iter().filter(other).count()
    };
    let range = |is_old: bool| {
        let (before, here) = (count(&lines[..start], is_old), count(&lines[start..end], is_old));
        match here {
            0 => format!("{before},0"),
            1 => (before + 1).to_string(),
            _ => format!("{},{here}", before + 1),
        }
    };
    format!("@@ -{} +{} @@", range(true), range(false))
}

fn lines<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = tail.take_while(same).count();
    let mut lines: Vec<_> = old[..head].iter().map(|line| Line::Same(line)).collect();
    middle(
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
        &mut lines,
    );
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// Finds the longest common subsequence of what differs.
fn middle<'t>(old: &[&'t str], new: &[&'t str], lines: &mut Vec<Line<'t>>) {
    if old.len().saturating_mul(new.len()) > PLACES {
        lines.extend(old.iter().map(|line| Line::Old(line)));
        lines.extend(new.iter().map(|line| Line::New(line)));
        return;
    }
    let width = new.len() + 1;
    // How long it is from each place on.
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            lengths[i * width + j] = if line == other {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let is_old_next =
            j == new.len() || (i < old.len() && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]);
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if is_old_next {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: impl Iterator<Item = u32>) -> String {
        numbers.map(|number| format!("{number}\n")).collect()
    }

    fn text(old: &str, new: &str) -> String {
        let mut text = String::new();
        for hunk in hunks(old, new) {
            text.push_str(&format!("{}\n", hunk.header));
            for line in hunk.lines {
                let (mark, line) = match line {
                    Line::Same(line) => (' ', line),
                    Line::Old(line) => ('-', line),
                    Line::New(line) => ('+', line),
                };
                text.push_str(&format!("{mark}{line}\n"));
            }
        }
        text
    }

    #[test]
    fn differences_have_lines_around_them_and_share_hunks_when_near() {
        let old = numbers(1..=30);
        let new = numbers((1..=30).filter(|n| *n != 10)).replace("14\n", "14\nnew\n");
        assert_eq!(
            text(&old, &new),
            "@@ -7,11 +7,11 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n 14\n+new\n 15\n 16\n 17\n"
        );
        let far = numbers((1..=30).filter(|n| !matches!(n, 5 | 25)));
        assert_eq!(hunks(&old, &far).len(), 2);
        assert_eq!(hunks(&old, &old), []);
    }

    #[test]
    fn what_is_too_long_is_replaced_as_a_whole() {
        let (old, new) = (numbers(0..5000), numbers(5000..10_000));
        let text = text(&old, &new);
        assert!(text.starts_with("@@ -1,5000 +1,5000 @@\n-0\n"));
        assert_eq!(text.lines().count(), 10_001);
    }
}
