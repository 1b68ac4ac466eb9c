//! The queue as a whole, on a clock that stands still until everyone waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;
use tokio::time::{advance, sleep};

use super::*;

const MIN: Duration = Duration::from_millis(750);

fn queue() -> (Queue<&'static str>, Metrics) {
    let metrics = Metrics::new();
    (
        Queue::new(
            "kustomization",
            Backoff {
                min: MIN,
                max: Duration::from_secs(900),
            },
            &metrics,
        ),
        metrics,
    )
}

/// Runs the queue with a handler that looks outcomes up; gives (key, seconds since the start) of each run.
fn start<F>(queue: &Queue<&'static str>, concurrency: usize, outcome: F) -> Running
where
    F: Fn(&'static str, usize) -> Outcome + Send + Sync + 'static,
{
    let (sender, receiver) = mpsc::unbounded_channel();
    let (token, began, count) = (CancellationToken::new(), Instant::now(), AtomicUsize::new(0));
    let (runner, stop) = (queue.clone(), token.clone());
    let task = tokio::spawn(async move {
        let handler = move |key| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            sender.send((key, began.elapsed())).expect("the test listens");
            std::future::ready(outcome(key, number))
        };
        runner.run(concurrency, stop, handler).await;
    });
    Running {
        token,
        task,
        receiver,
    }
}

struct Running {
    token: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    receiver: mpsc::UnboundedReceiver<(&'static str, Duration)>,
}

impl Running {
    async fn next(&mut self) -> (&'static str, Duration) {
        self.receiver.recv().await.expect("the queue runs")
    }

    async fn stop(mut self) -> Vec<(&'static str, Duration)> {
        self.token.cancel();
        self.task.await.expect("the queue does not panic");
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }
}

fn sample(metrics: &Metrics, series: &str) -> f64 {
    let text = metrics.encode().expect("writing to a String does not fail");
    let line = text.lines().find(|line| line.starts_with(series));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("{series} is not in\n{text}"))
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_waits_and_success_forgets_them() {
    let (queue, metrics) = queue();
    let mut running = start(&queue, 1, |_, number| {
        if number == 3 {
            Outcome::Done
        } else {
            Outcome::Backoff
        }
    });
    queue.add("a");
    let mut times = Vec::new();
    for _ in 0..4 {
        times.push(running.next().await.1.as_millis());
    }
    assert_eq!(times, [0, 750, 750 + 1_500, 750 + 1_500 + 3_000]);
    tokio::task::yield_now().await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(queue.failures(&"a"), 0);
    queue.add("a");
    running.next().await;
    assert_eq!(
        running.next().await.1.as_millis(),
        3_600_000 + 5_250 + 750,
        "the wait starts over"
    );
    running.stop().await;
    assert_eq!(
        sample(
            &metrics,
            r#"controller_runtime_reconcile_errors_total{controller="kustomization"}"#
        ),
        5.0
    );
    assert_eq!(sample(&metrics, "workqueue_retries_total"), 5.0);
}

#[tokio::test(start_paused = true)]
async fn after_runs_again_after_the_interval_and_counts_from_the_last_run() {
    let (queue, metrics) = queue();
    let mut running = start(&queue, 1, |_, _| Outcome::After(Duration::from_secs(60)));
    queue.add("a");
    assert_eq!(running.next().await.1.as_secs(), 0);
    sleep(Duration::from_secs(20)).await;
    queue.add("a");
    assert_eq!(
        running.next().await.1.as_secs(),
        20,
        "a plain add does not wait for the interval"
    );
    assert_eq!(
        running.next().await.1.as_secs(),
        80,
        "the deadline at 60 s went with the run at 20 s"
    );
    running.stop().await;
    let series = r#"controller_runtime_reconcile_total{controller="kustomization",result="requeue_after"}"#;
    assert_eq!(sample(&metrics, series), 3.0);
}

#[tokio::test(start_paused = true)]
async fn one_key_never_runs_twice_at_once() {
    let (queue, _) = queue();
    let (active, most, runs) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (token, runner) = (CancellationToken::new(), queue.clone());
    let stop = token.clone();
    let counters = (Arc::clone(&active), Arc::clone(&most), Arc::clone(&runs));
    let task = tokio::spawn(async move {
        let handler = move |_| {
            let (active, most, runs) = counters.clone();
            async move {
                most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_secs(1)).await;
                active.fetch_sub(1, Ordering::SeqCst);
                runs.fetch_add(1, Ordering::SeqCst);
                Outcome::Done
            }
        };
        runner.run(8, stop, handler).await;
    });
    for _ in 0..20 {
        queue.add("a");
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(10)).await;
    token.cancel();
    task.await.expect("the queue does not panic");
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(
        runs.load(Ordering::SeqCst),
        3,
        "0 to 1 s, 1 to 2 s, and what was added last"
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_keys_run_at_once_than_allowed() {
    let (queue, metrics) = queue();
    let (token, runner) = (CancellationToken::new(), queue.clone());
    let stop = token.clone();
    let task = tokio::spawn(async move {
        let handler = |_| async {
            sleep(Duration::from_secs(1)).await;
            Outcome::Done
        };
        runner.run(2, stop, handler).await;
    });
    for key in ["a", "b", "c", "d", "e"] {
        queue.add(key);
    }
    sleep(Duration::from_millis(500)).await;
    assert_eq!(queue.len(), 3);
    assert_eq!(sample(&metrics, "controller_runtime_active_workers"), 2.0);
    assert_eq!(
        sample(&metrics, "workqueue_longest_running_processor_seconds"),
        0.5
    );
    assert_eq!(sample(&metrics, "workqueue_unfinished_work_seconds"), 1.0);
    sleep(Duration::from_secs(3)).await;
    assert!(queue.is_empty());
    token.cancel();
    task.await.expect("the queue does not panic");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_retried_and_spares_the_others() {
    let (queue, metrics) = queue();
    let mut running = start(&queue, 1, |key, number| match (key, number) {
        ("bad", 0) => panic!("boom"),
        _ => Outcome::Done,
    });
    queue.add("bad");
    queue.add("good");
    assert_eq!(running.next().await.0, "bad");
    assert_eq!(running.next().await.0, "good");
    assert_eq!(running.next().await, ("bad", MIN));
    running.stop().await;
    assert_eq!(sample(&metrics, "controller_runtime_reconcile_panics_total"), 1.0);
    assert_eq!(sample(&metrics, "controller_runtime_reconcile_errors_total"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_failure_is_not_retried() {
    let (queue, metrics) = queue();
    let mut running = start(&queue, 1, |_, _| Outcome::Terminal);
    queue.add("a");
    running.next().await;
    sleep(Duration::from_secs(86_400)).await;
    assert_eq!(running.stop().await, []);
    assert_eq!(
        sample(&metrics, "controller_runtime_terminal_reconcile_errors_total"),
        1.0
    );
}

#[tokio::test(start_paused = true)]
async fn cancellation_lets_work_in_progress_end_and_starts_nothing_new() {
    let (queue, _) = queue();
    let ended = Arc::new(AtomicUsize::new(0));
    let (token, runner, counter) = (CancellationToken::new(), queue.clone(), Arc::clone(&ended));
    let stop = token.clone();
    let task = tokio::spawn(async move {
        let handler = move |_| {
            let counter = Arc::clone(&counter);
            async move {
                sleep(Duration::from_secs(10)).await;
                counter.fetch_add(1, Ordering::SeqCst);
                Outcome::Done
            }
        };
        runner.run(1, stop, handler).await;
    });
    queue.add("a");
    queue.add("b");
    sleep(Duration::from_secs(1)).await;
    token.cancel();
    task.await.expect("the queue does not panic");
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_is_cut_off() {
    let (queue, _) = queue();
    let (token, runner) = (CancellationToken::new(), queue.clone());
    let stop = token.clone();
    let task = tokio::spawn(async move { runner.run(1, stop, |_| std::future::pending()).await });
    queue.add("a");
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    token.cancel();
    task.await.expect("the queue does not panic");
    assert_eq!(began.elapsed().as_secs(), DRAIN_TIMEOUT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn an_idle_queue_holds_no_timer() {
    let (queue, _) = queue();
    let running = start(&queue, 1, |_, _| Outcome::Done);
    tokio::task::yield_now().await;
    // With the clock paused, time moves by itself to the next timer when all tasks wait; only ours is set.
    let began = Instant::now();
    sleep(Duration::from_secs(1_000_000)).await;
    assert_eq!(began.elapsed().as_secs(), 1_000_000);
    advance(Duration::from_secs(1)).await;
    assert_eq!(running.stop().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_clock_never_comes() {
    let (queue, _) = queue();
    queue.add_after("a", Duration::MAX);
    queue.add_after("b", Duration::ZERO);
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_gives_its_slot_to_another_and_goes_on_before_the_next() {
    let (queue, _) = queue();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let (runner, token) = (queue.clone(), CancellationToken::new());
    let stop = token.clone();
    let task = tokio::spawn(async move {
        let handler = move |key: &'static str, slot: Slot| {
            let sender = sender.clone();
            async move {
                let say = |what: &str| sender.send(format!("{key} {what}")).expect("the test listens");
                say("begins");
                if key == "waits" {
                    slot.pause();
                    sleep(Duration::from_secs(10)).await;
                    slot.resume().await;
                } else {
                    sleep(Duration::from_secs(60)).await;
                }
                say("ends");
                Outcome::Done
            }
        };
        runner.run_in_slots(1, DRAIN_TIMEOUT, stop, handler).await;
    });
    for key in ["waits", "works", "is last"] {
        queue.add(key);
    }
    let mut told = Vec::new();
    while told.len() < 6 {
        told.push(receiver.recv().await.expect("the queue runs"));
    }
    let expected = [
        "waits begins",
        "works begins",
        "works ends",
        "waits ends",
        "is last begins",
        "is last ends",
    ];
    assert_eq!(told, expected);
    token.cancel();
    task.await.expect("the queue does not panic");
}

#[tokio::test(start_paused = true)]
async fn a_lane_is_not_held_up_by_the_long_runs_of_another() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let queue: Queue<crate::ObjectKey> =
        Queue::new("kustomization", Backoff { min: MIN, max: MIN }, &Metrics::new());
    let (runner, token) = (queue.clone(), CancellationToken::new());
    let stop = token.clone();
    let task = tokio::spawn(async move {
        let handler = move |key: crate::ObjectKey| {
            sender.send(key.to_string()).expect("the test listens");
            sleep(Duration::from_secs(3600)).map(|()| Outcome::Done)
        };
        runner.run(2, stop, handler).await;
    });
    let began = Instant::now();
    for (namespace, name) in [
        ("large", "1"),
        ("large", "2"),
        ("large", "3"),
        ("small", "1"),
        ("tiny", "1"),
        ("last", "1"),
    ] {
        queue.add(crate::ObjectKey::new(namespace, name));
        sleep(Duration::from_millis(1)).await;
    }
    let mut told = Vec::new();
    while told.len() < 4 {
        told.push(receiver.recv().await.expect("the queue runs"));
    }
    assert_eq!(told, ["large/1", "large/2", "small/1", "tiny/1"]);
    assert!(began.elapsed() < Duration::from_secs(1));
    receiver.recv().await.expect("the queue runs");
    assert!(
        began.elapsed() > Duration::from_secs(3000),
        "there are no more than twice as many"
    );
    token.cancel();
    tokio::time::advance(DRAIN_TIMEOUT).await;
    task.await.expect("the queue does not panic");
}
