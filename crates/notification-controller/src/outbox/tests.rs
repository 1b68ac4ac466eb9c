use serde_json::json;

use super::*;

const WINDOW: Duration = Duration::from_secs(3600);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn provider(name: &str) -> ObjectKey {
    ObjectKey::new("apps", name)
}

fn delivery(text: &str, seconds: i64) -> Delivery {
    let event = json!({"involvedObject": {"kind": "Kustomization", "namespace": "apps", "name": "web"}, "message": text});
    Delivery {
        alert: Alert {
            namespace: "apps".to_owned(),
            name: "a".to_owned(),
            uid: String::new(),
        },
        message: Message::plain(serde_json::from_value(event).unwrap()),
        commit_status: None,
        since: at(seconds),
        attempts: 0,
        not_before: at(seconds),
    }
}

fn due(outbox: &mut Outbox, seconds: i64) -> Vec<String> {
    outbox
        .due(at(seconds), 10)
        .into_iter()
        .map(|(key, delivery)| format!("{} {}", key.name, delivery.message.event.message))
        .collect()
}

#[test]
fn each_provider_gets_its_messages_in_order_one_at_a_time() {
    let mut outbox = Outbox::default();
    for (name, text) in [("p", "1"), ("p", "2"), ("q", "3")] {
        outbox.push(&provider(name), delivery(text, 0));
    }
    assert_eq!(due(&mut outbox, 0), ["p 1", "q 3"]);
    assert!(due(&mut outbox, 0).is_empty());
    assert_eq!(
        outbox.finish(&provider("p"), Outcome::Said(None), at(0), WINDOW),
        Fate::Done
    );
    assert_eq!(due(&mut outbox, 0), ["p 2"]);
    outbox.finish(&provider("p"), Outcome::Withdrawn, at(0), WINDOW);
    outbox.finish(&provider("q"), Outcome::Said(None), at(0), WINDOW);
    assert_eq!((outbox.len(), outbox.bytes), (0, 0));
    assert!(outbox.queues.is_empty());
}

#[test]
fn what_fails_is_tried_with_growing_pauses_until_its_time_is_over() {
    let mut outbox = Outbox::default();
    outbox.push(&provider("p"), delivery("1", 0));
    outbox.push(&provider("p"), delivery("2", 0));
    let (mut now, mut pauses) = (0, Vec::new());
    let dropped = loop {
        assert_eq!(due(&mut outbox, now), ["p 1"]);
        match outbox.finish(&provider("p"), Outcome::Failed(Retry::Backoff), at(now), WINDOW) {
            Fate::Waits => {
                let next = outbox.deadline().unwrap().as_second() - 1_700_000_000;
                pauses.push(next - now);
                assert!(due(&mut outbox, next - 1).is_empty());
                now = next;
            }
            Fate::Dropped(delivery) => break delivery,
            Fate::Done => panic!("it is not done"),
        }
    };
    assert_eq!(&pauses[..10], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert!((3300..=3600).contains(&now), "{now}");
    assert_eq!(dropped.message.event.message, "1");
    assert_eq!(due(&mut outbox, now), ["p 2"], "the next has its turn");
}

#[test]
fn a_service_may_say_when_to_come_again_and_what_it_refuses_is_given_up() {
    let mut outbox = Outbox::default();
    outbox.push(&provider("p"), delivery("1", 0));
    due(&mut outbox, 0);
    let after = Outcome::Failed(Retry::After(Duration::from_secs(77)));
    assert_eq!(outbox.finish(&provider("p"), after, at(0), WINDOW), Fate::Waits);
    assert_eq!(outbox.deadline(), Some(at(77)));
    due(&mut outbox, 77);
    let fate = outbox.finish(&provider("p"), Outcome::Failed(Retry::Never), at(77), WINDOW);
    assert!(matches!(fate, Fate::Dropped(_)));
}

#[test]
fn a_pause_beyond_the_window_ends_with_a_last_attempt() {
    let mut outbox = Outbox::default();
    outbox.push(&provider("p"), delivery("1", 0));
    due(&mut outbox, 0);
    let after = |seconds| Outcome::Failed(Retry::After(Duration::from_secs(seconds)));
    assert_eq!(
        outbox.finish(&provider("p"), after(1800), at(600), WINDOW),
        Fate::Waits
    );
    due(&mut outbox, 2400);
    assert_eq!(
        outbox.finish(&provider("p"), after(1800), at(2400), WINDOW),
        Fate::Waits
    );
    assert_eq!(outbox.deadline(), Some(at(3600)));
    assert_eq!(due(&mut outbox, 3600), ["p 1"]);
    let fate = outbox.finish(&provider("p"), after(1), at(3600), WINDOW);
    assert!(matches!(fate, Fate::Dropped(_)));
}

#[test]
fn a_namespace_leaves_room_for_others() {
    let mut outbox = Outbox::default();
    for number in 0..50 {
        outbox.push(&provider(&format!("slow-{number:02}")), delivery("1", 0));
    }
    outbox.push(&ObjectKey::new("others", "p"), delivery("1", 5));
    let begun = outbox.due(at(10), 32);
    let of = |namespace: &str| begun.iter().filter(|(key, _)| key.namespace == namespace).count();
    assert_eq!((of("apps"), of("others")), (MOST_IN_NAMESPACE, 1));
    assert_eq!(
        outbox.deadline(),
        None,
        "what waits is not due before an attempt ends"
    );
    outbox.finish(&begun[0].0, Outcome::Said(None), at(11), WINDOW);
    assert_eq!(outbox.deadline(), Some(at(0)));
    assert_eq!(outbox.due(at(11), 32).len(), 1);
}

#[test]
fn who_waited_longest_for_a_turn_comes_first() {
    let mut outbox = Outbox::default();
    for _ in 0..3 {
        outbox.push(&provider("a-long-queue"), delivery("1", 0));
    }
    outbox.push(&provider("b"), delivery("1", 2));
    outbox.push(&provider("c"), delivery("1", 1));
    let mut order = Vec::new();
    for seconds in 10..15 {
        let (key, _) = outbox.due(at(seconds), 1).remove(0);
        outbox.finish(&key, Outcome::Said(None), at(seconds), WINDOW);
        order.push(key.name);
    }
    assert_eq!(order, ["a-long-queue", "c", "b", "a-long-queue", "a-long-queue"]);
}

#[test]
fn when_memory_is_full_who_takes_most_of_it_yields() {
    let mut outbox = Outbox::default();
    let text = "x".repeat(10_000);
    outbox.push(&ObjectKey::new("quiet", "p"), delivery(&text, 0));
    let mut dropped = Vec::new();
    for number in 0..2_000 {
        let noisy = ObjectKey::new("noisy", number.to_string());
        dropped.extend(outbox.push(&noisy, delivery(&text, 1)));
    }
    assert!(outbox.bytes <= MOST_BYTES && dropped.len() > 1_000);
    assert!(dropped.iter().all(|(key, _)| key.namespace == "noisy"));
}

#[test]
fn what_is_in_flight_does_not_keep_others_from_yielding() {
    let mut outbox = Outbox::default();
    let large = ObjectKey::new("large", "p");
    outbox.push(&large, delivery(&"x".repeat(5 << 20), 0));
    due(&mut outbox, 0);
    for number in 0..1_000 {
        outbox.push(&provider(&number.to_string()), delivery(&"x".repeat(10_000), 0));
    }
    assert!(outbox.bytes <= MOST_BYTES, "{}", outbox.bytes);
    assert_eq!(
        outbox.finish(&large, Outcome::Said(None), at(0), WINDOW),
        Fate::Done
    );
}

#[test]
fn all_of_a_delivery_counts() {
    let least = size(&delivery("", 0));
    let text = "x".repeat(1_000);
    let mut long = delivery(&text, 0);
    long.commit_status = Some(text.clone());
    long.message.key = text.clone();
    let event = &mut long.message.event;
    event.reason = text.clone();
    event.reporting_controller = text.clone();
    event.involved_object.name = text.clone();
    event.metadata.insert(text.clone(), text);
    assert!(size(&long) > least + 7_900, "{}", size(&long));
}

#[test]
fn the_oldest_go_when_there_are_too_many_and_never_one_that_is_being_said() {
    let mut outbox = Outbox::default();
    outbox.push(&provider("p"), delivery("first", 0));
    due(&mut outbox, 0);
    let mut dropped = Vec::new();
    for number in 0..6_000 {
        let text = format!("{number} {}", "x".repeat(1_000));
        dropped.extend(outbox.push(&provider("p"), delivery(&text, 0)));
    }
    assert!(outbox.bytes <= MOST_QUEUE_BYTES && dropped.len() > 1_000);
    assert!(dropped[0].1.message.event.message.starts_with("0 "));
    outbox.finish(&provider("p"), Outcome::Failed(Retry::Backoff), at(0), WINDOW);
    assert_eq!(due(&mut outbox, 1), ["p first"]);
    for number in 0..10 {
        for _ in 0..2_000 {
            outbox.push(&provider(&number.to_string()), delivery(&"x".repeat(1_000), 0));
        }
    }
    assert!(outbox.bytes <= MOST_BYTES);
}

#[test]
fn what_waits_and_threads_survive_a_restart() {
    let mut outbox = Outbox::default();
    outbox.push(&provider("p"), delivery("1", 0));
    outbox.push(&provider("p"), delivery("2", 0));
    due(&mut outbox, 0);
    let thread = Thread(json!({"ts": "1"}));
    outbox.finish(&provider("p"), Outcome::Said(Some(thread.clone())), at(0), WINDOW);
    due(&mut outbox, 0);
    let saved = serde_json::to_vec(&outbox.saved()).unwrap();
    let mut after = Outbox::default();
    after.restore(serde_json::from_slice(&saved).unwrap());
    assert_eq!(due(&mut after, 0), ["p 2"], "what was in flight is said again");
    assert_eq!(
        after.thread(&provider("p"), "Kustomization/apps/web"),
        Some(thread)
    );
    assert_eq!(after.thread(&provider("p"), "other"), None);
}

#[test]
fn threads_are_bounded() {
    let mut outbox = Outbox::default();
    for number in 0..1_000 {
        let mut delivery = delivery("1", 0);
        delivery.message.key = number.to_string();
        outbox.push(&provider("p"), delivery);
        due(&mut outbox, number);
        outbox.finish(
            &provider("p"),
            Outcome::Said(Some(Thread(json!(1)))),
            at(number),
            WINDOW,
        );
    }
    assert_eq!(outbox.saved()[0].threads.len(), MOST_THREADS);
    assert!(outbox.thread(&provider("p"), "999").is_some());
}
