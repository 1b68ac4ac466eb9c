use super::*;

fn chosen(policy: &Policy, tags: &[&str]) -> Result<String, String> {
    let forward = policy.choose(tags.iter().copied());
    let backward = policy.choose(tags.iter().rev().copied());
    assert_eq!(forward, backward, "the order in which tags come does not matter");
    forward
        .map(|chosen| chosen.tag)
        .map_err(|error| error.to_string())
}

fn semver(range: &str) -> Policy {
    Policy::new(Order::semver(range).unwrap(), None)
}

fn ordered(order: Order) -> Policy {
    Policy::new(order, None)
}

fn filtered(order: Order, pattern: &str, extract: &str) -> Policy {
    Policy::new(order, Some(Filter::new(pattern, extract).unwrap()))
}

#[test]
fn the_highest_version_in_the_range_is_chosen_as_it_was_written() {
    let none = Err("unable to determine latest version from provided list".to_owned());
    for (range, tags, expected) in [
        (
            "1.x",
            ["v1.2.3", "1.10.0", "2.0.0", "latest"],
            Ok("1.10.0".to_owned()),
        ),
        (
            ">=1.0",
            ["v1.2.3", "v1.2.2", "1.2", "v2"],
            Ok("v1.2.3".to_owned()),
        ),
        (
            ">=1.0.0-0",
            ["1.0.0", "1.1.0-rc.1", "x", "y"],
            Ok("1.1.0-rc.1".to_owned()),
        ),
        (
            ">=1.0.0",
            ["1.0.0", "1.1.0-rc.1", "x", "y"],
            Ok("1.0.0".to_owned()),
        ),
        ("3.x", ["1.0.0", "2.0.0", "x", "y"], none),
        (
            "1.x",
            ["1.0.0", "v1.0.0", "1.0.0+a", "1.0.0+b"],
            Ok("1.0.0+b".to_owned()),
        ),
        ("1.x", ["1.0.0", "v1.0.0", "x", "y"], Ok("v1.0.0".to_owned())),
    ] {
        assert_eq!(chosen(&semver(range), &tags), expected, "{range}");
    }
    assert_eq!(
        chosen(&semver("*"), &[]),
        Err("version list argument cannot be empty".to_owned())
    );
    assert_eq!(
        Order::semver("not a range").unwrap_err().to_string(),
        "improper constraint: \"not a range\""
    );
}

#[test]
fn alphabetical_takes_the_last_or_the_first() {
    let tags = ["b", "a", "c", "B"];
    let last = ordered(Order::Alphabetical(Direction::Ascending));
    let first = ordered(Order::Alphabetical(Direction::Descending));
    assert_eq!(chosen(&last, &tags).unwrap(), "c");
    assert_eq!(chosen(&first, &tags).unwrap(), "B");
}

#[test]
fn numbers_are_compared_as_numbers_and_others_are_skipped() {
    let highest = ordered(Order::Numerical(Direction::Ascending));
    let lowest = ordered(Order::Numerical(Direction::Descending));
    let tags = ["9", "10", "2.5", "latest", "NaN", "1e3"];
    assert_eq!(chosen(&highest, &tags).unwrap(), "1e3");
    assert_eq!(chosen(&lowest, &tags).unwrap(), "2.5");
    let choice = highest.choose(tags).unwrap();
    assert_eq!((choice.tally.considered, choice.tally.skipped), (6, 2));
    assert_eq!(choice.tally.skipped_tags, ["NaN", "latest"]);
    assert_eq!(
        chosen(&highest, &["main", "latest"]),
        Err("failed to parse invalid numeric value 'latest'".to_owned())
    );
    assert_eq!(
        chosen(&highest, &["1.0", "1"]).unwrap(),
        "1.0",
        "a tie is broken by bytes"
    );
}

#[test]
fn a_filter_extracts_what_is_ordered_and_the_tag_comes_out_whole() {
    let policy = filtered(
        Order::Numerical(Direction::Ascending),
        r"^main-[a-f0-9]+-(?P<ts>[0-9]+)$",
        "$ts",
    );
    let tags = ["main-abc-100", "main-def-99", "dev-abc-1000", "main-fff-100"];
    assert_eq!(
        chosen(&policy, &tags).unwrap(),
        "main-fff-100",
        "of equals, the highest by bytes"
    );
    let whole = filtered(Order::Alphabetical(Direction::Ascending), "^r", "");
    assert_eq!(chosen(&whole, &["r1", "r2", "s3"]).unwrap(), "r2");
    assert_eq!(
        chosen(&whole, &["s3"]).unwrap_err(),
        "version list argument cannot be empty"
    );
    let error = Filter::new("(", "").unwrap_err().to_string();
    assert!(
        error.starts_with("failed to parse regular expression '(': error parsing regexp"),
        "{error}"
    );
}

#[test]
fn each_tag_has_a_verdict() {
    let policy = filtered(Order::semver("1.x").unwrap(), "^(v?[0-9].*)$", "$1");
    for (tag, expected) in [
        ("1.2.0", Verdict::Chosen),
        ("latest", Verdict::FilteredOut),
        ("1.2", Verdict::NoVersion),
        ("2.0.0", Verdict::OutOfRange),
        ("1.3.0-rc.1", Verdict::PreRelease),
        ("1.1.9", Verdict::Behind),
        ("1.3.0", Verdict::Ahead),
    ] {
        assert_eq!(policy.verdict(tag, "1.2.0"), expected, "{tag}");
    }
    let numbers = ordered(Order::Numerical(Direction::Ascending));
    assert_eq!(numbers.verdict("x", "1.0"), Verdict::NoNumber);
    assert_eq!(numbers.verdict("1", "1.0"), Verdict::Equal);
}

#[test]
fn many_tags_that_are_skipped_are_named_the_same_way_each_time() {
    let policy = ordered(Order::Numerical(Direction::Ascending));
    let tags: Vec<_> = (0..1000)
        .map(|n| format!("x{n:04}"))
        .chain(["7".to_owned()])
        .collect();
    let tags: Vec<_> = tags.iter().map(String::as_str).collect();
    assert_eq!(chosen(&policy, &tags).unwrap(), "7");
    let choice = policy.choose(tags).unwrap();
    assert_eq!(choice.tally.skipped, 1000);
    assert_eq!(choice.tally.skipped_tags[0], "x0000");
    assert_eq!(choice.tally.skipped_tags.len(), MAX_NAMED);
}

#[test]
fn the_newest_come_in_order_and_no_more_than_asked() {
    let policy = semver("1.x");
    let tags = ["1.0.0", "1.2.0", "2.0.0", "v1.2.0", "1.10.0", "1.1.0"];
    let newest = |limit: usize, tags: &[&str]| {
        let newest = policy.newest(tags.iter().copied(), limit).unwrap();
        newest.iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(newest(3, &tags), ["1.10.0", "v1.2.0", "1.2.0"]);
    let mut backward = tags;
    backward.reverse();
    assert_eq!(newest(3, &backward), ["1.10.0", "v1.2.0", "1.2.0"]);
    assert_eq!(newest(100, &tags).len(), 5);
    assert_eq!(newest(0, &tags), ["1.10.0"], "there is always a first");
}
