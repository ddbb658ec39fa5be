//! `kordon status` and `kordon status --watch`, asked of one cluster at the same moments.

use std::{process::Stdio, time::Duration};

use kordon_demo::{api::ApiOptions, scenario::Scenario, world::WorldOptions};
use kordon_time::Timestamp;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    sync::watch,
    time::{sleep, timeout},
};

use crate::common::program::{Server, Shell};

/// Number of comparisons, and the pause between two. The controller's passes are 5 s apart, so each comparison is at
/// another moment between two passes.
const COMPARISONS: usize = 6;
const PAUSE: Duration = Duration::from_millis(1300);
/// The watch looks for a new verdict each second.
const PRINTS_WITHIN: Duration = Duration::from_secs(2);

/// A single look does not show when the controller makes its passes. The watch may have seen one.
#[tokio::test(flavor = "multi_thread")]
async fn status_says_at_every_moment_what_its_watch_says() {
    let (shell, server) = (Shell::new(), Server::start(ApiOptions::default()).await);
    let scenario = Scenario::named("zone-outage").expect("there is one");
    let _world = server.inhabit_as(&WorldOptions { scenario, ..WorldOptions::default() });
    server.govern().await;
    let line = ["status", "--watch", "-o", "json", "--server", &server.url];
    let mut child = shell.command(&line).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let (sender, mut verdicts) = watch::channel(Vec::<Verdict>::new());
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).expect("one document in a line");
            sender.send_modify(|verdicts| verdicts.push(Verdict::new(&line, &line["at"])));
        }
    });
    let announced = |verdicts: &Vec<Verdict>| verdicts.last().is_some_and(|last| last.next().is_some());
    timeout(Duration::from_secs(180), verdicts.wait_for(announced))
        .await
        .expect("evictions are announced in time")
        .expect("the watch goes on");
    for _ in 0..COMPARISONS {
        let before = verdicts.borrow().len();
        let status = shell.run(&["status", "-o", "json", "--server", &server.url]).await.json();
        let once = Verdict::new(&status["verdict"], &status["takenAt"]);
        sleep(PRINTS_WITHIN).await;
        let watched = verdicts.borrow()[before - 1..].to_vec();
        assert!(watched.iter().any(|watched| once.agrees(watched)), "{once:#?}\n{watched:#?}");
        sleep(PAUSE).await;
    }
}

/// A verdict, and when it was printed.
#[derive(Clone, Debug)]
struct Verdict {
    at: Timestamp,
    level: String,
    text: String,
}

impl Verdict {
    fn new(verdict: &Value, at: &Value) -> Self {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let at = Timestamp::parse(&text(at)).expect("a time");
        Self { at, level: text(&verdict["level"]), text: text(&verdict["text"]) }
    }

    /// Whether both verdicts have the same level and causes, and the times of the next eviction fit together.
    fn agrees(&self, other: &Self) -> bool {
        let overlap = match (self.next(), other.next()) {
            (Some(own), Some(other)) => own.0 <= other.1 && other.0 <= own.1,
            (own, other) => own == other,
        };
        self.level == other.level && self.causes() == other.causes() && overlap
    }

    /// The words of the verdict without its times.
    fn causes(&self) -> Vec<&str> {
        let words = self.text.split_whitespace().map(|word| word.trim_end_matches(','));
        let is_time = |word: &str| {
            ["in", "to", "now", "within"].contains(&word) || seconds(word.trim_start_matches('~')).is_some()
        };
        words.filter(|word| !is_time(word)).collect()
    }

    /// The range of the next eviction's time, in seconds since the epoch. A time without a range is rounded up to
    /// seconds; the time of an estimate may be a second more or less.
    fn next(&self) -> Option<(f64, f64)> {
        let (_, after) = self.text.split_once(", next ")?;
        let until = after.split([',', '·', '(']).next()?.trim();
        let (first, last) = match until.strip_prefix("in ") {
            None if until == "now" => (0.0, 0.0),
            None => (0.0, seconds(until.strip_prefix("within ")?)?),
            Some(span) => match (span.split_once(" to "), span.strip_prefix('~')) {
                (Some((first, last)), _) => (seconds(first)?, seconds(last)?),
                (None, Some(about)) => (seconds(about)? - 2.0, seconds(about)? + 1.0),
                (None, None) => (seconds(span)? - 1.0, seconds(span)?),
            },
        };
        let at = self.at.since(Timestamp::EPOCH).as_secs_f64();
        Some((at + first, at + last))
    }
}

/// The seconds of a span such as `1m05s`; `None` if the text is no span.
fn seconds(span: &str) -> Option<f64> {
    Some(humantime::parse_duration(span).ok()?.as_secs_f64())
}

#[test]
fn times_of_a_verdict_are_compared_as_ranges() {
    let verdict = |text: &str| Verdict {
        at: Timestamp::from_secs(100),
        level: "critical".into(),
        text: format!("zone b: 8 of 8 nodes Silent · 44 pods to be evicted, next {text}"),
    };
    let once = verdict("in 30s to 45s");
    assert!(once.agrees(&verdict("in 30s")) && once.agrees(&verdict("in ~46s")));
    assert!(!once.agrees(&verdict("in 29s")) && !once.agrees(&verdict("in 1m05s")));
    assert!(!once.agrees(&verdict("in 30s · 5 already evicted and replaced")));
}
