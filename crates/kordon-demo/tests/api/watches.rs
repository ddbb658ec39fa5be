//! Watches, followed by `kube::runtime` and one by one.

use std::{pin::Pin, time::Duration};

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kordon_demo::api::{Api, ApiOptions};
use kube::{
    api::{Api as Objects, DeleteParams, WatchEvent, WatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::json;

use crate::fixture::{PODS, bare_pod, merge, pod, post, read_raw, server, server_with};

#[tokio::test(start_paused = true)]
async fn a_watcher_follows_with_streaming_lists_and_with_paged_ones() {
    for config in [watcher::Config::default().streaming_lists(), watcher::Config::default().page_size(100)] {
        let api = server();
        // Enough pods that a streamed list of them has several chunks.
        let all: Vec<String> = (0..1000).map(|i| format!("p{i:04}")).collect();
        for name in &all {
            api.load("pods", pod(name));
        }
        let mut events = follow(&api, config);
        assert_eq!(initial(&mut events).await, all);
        api.load("pods", pod("q"));
        assert_eq!(next(&mut events).await, ("apply", "q".to_owned()));
        let pods: Objects<Pod> = Objects::default_namespaced(api.client());
        pods.delete("p0007", &DeleteParams::default().grace_period(0)).await.expect("deleted");
        assert_eq!(next(&mut events).await, ("delete", "p0007".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_refuses_them() {
    let api = server_with(ApiOptions { streaming_lists: false, ..ApiOptions::default() });
    let mut events = follow(&api, watcher::Config::default().streaming_lists());
    let refused = loop {
        match events.next().await.expect("no end") {
            Err(watcher::Error::WatchStartFailed(error)) => break error,
            Err(watcher::Error::InitialListFailed(error)) => break error,
            Err(error) => panic!("{error}"),
            Ok(_) => {}
        }
    };
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_after_410_and_after_a_cut() {
    for break_it in [
        (|api: &Api| {
            api.compact_history();
            api.cut_watches();
        }) as fn(&Api),
        |api| api.cut_watches(),
    ] {
        let api = server();
        api.load("pods", pod("a"));
        let mut events = follow(&api, watcher::Config::default());
        assert_eq!(initial(&mut events).await, ["a"]);
        // A watch that resumes from the version of the list would report pod b. After compaction, the history no longer
        // has this change.
        api.load("pods", pod("b"));
        break_it(&api);
        let mut seen = Vec::new();
        while !seen.contains(&"b".to_owned()) {
            if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = events.next().await.expect("no end") {
                seen.extend(pod.metadata.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_gets_410_inside_the_stream() {
    let api = server();
    api.load("pods", pod("a"));
    let old = api.revision();
    api.load("pods", pod("b"));
    api.compact_history();
    let pods: Objects<Pod> = Objects::all(api.client());
    let mut stream = pods.watch(&WatchParams::default(), &old.to_string()).await.expect("200").boxed();
    let Some(Ok(WatchEvent::Error(status))) = stream.next().await else { panic!("no error event") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(stream.next().await.is_none(), "and the stream ends");
}

#[tokio::test(start_paused = true)]
async fn history_is_bounded() {
    let api = server_with(ApiOptions { history_bytes: 20_000, ..ApiOptions::default() });
    let begin = api.revision();
    for i in 0..100 {
        api.load("pods", pod(&format!("p{i}")));
    }
    let pods: Objects<Pod> = Objects::all(api.client());
    let mut old = pods.watch(&WatchParams::default(), &begin.to_string()).await.expect("200").boxed();
    assert!(matches!(old.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    let recent = (api.revision() - 3).to_string();
    let mut recent = pods.watch(&WatchParams::default(), &recent).await.expect("200").boxed();
    assert!(
        matches!(recent.next().await, Some(Ok(WatchEvent::Added(pod))) if pod.metadata.name.as_deref() == Some("p97"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_does_not_read_gets_410_and_blocks_nothing() {
    let api = server_with(ApiOptions { history_bytes: 20_000, ..ApiOptions::default() });
    let pods: Objects<Pod> = Objects::all(api.client());
    let mut slow =
        pods.watch(&WatchParams::default(), &api.revision().to_string()).await.expect("200").boxed();
    api.load("pods", pod("first"));
    assert!(matches!(slow.next().await, Some(Ok(WatchEvent::Added(_)))));
    for i in 0..1000 {
        api.load("pods", pod(&format!("p{i}")));
    }
    assert!(matches!(slow.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    assert!(slow.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection_as_added_and_deleted() {
    let api = server();
    post(&api, PODS, &bare_pod("p")).await.expect("created");
    let pods: Objects<Pod> = Objects::all(api.client());
    let params = WatchParams::default().fields("spec.nodeName=n1").labels("app=a");
    let mut stream = pods.watch(&params, &api.revision().to_string()).await.expect("200").boxed();
    let to = json!({"metadata": {"name": "p"}, "target": {"name": "n1"}});
    post(&api, &format!("{PODS}/p/binding"), &to).await.expect("bound");
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"labels": {"app": "b"}}})).await.expect("patched");
    let left = api.revision().to_string();
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"labels": {"x": "y"}}})).await.expect("unseen");
    merge(&api, &format!("{PODS}/p"), &json!({"metadata": {"labels": {"app": "a"}}})).await.expect("patched");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match stream.try_next().await.expect("no failure").expect("no end") {
            WatchEvent::Added(_) => seen.push("added"),
            WatchEvent::Modified(_) => seen.push("modified"),
            WatchEvent::Deleted(pod) => {
                assert_eq!(pod.metadata.resource_version.as_ref(), Some(&left));
                assert_eq!(pod.metadata.labels.and_then(|l| l.get("app").cloned()).as_deref(), Some("a"));
                seen.push("deleted");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["added", "deleted", "added"]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_sends_bookmarks_of_the_present_and_ends_in_time() {
    let api = server();
    let nodes: Objects<Node> = Objects::all(api.client());
    let params = WatchParams::default().timeout(90);
    let mut stream = nodes.watch(&params, &api.revision().to_string()).await.expect("200").boxed();
    api.load("pods", pod("p"));
    let now = api.revision().to_string();
    let Some(Ok(WatchEvent::Bookmark(bookmark))) = stream.next().await else { panic!("no bookmark") };
    assert_eq!(bookmark.metadata.resource_version, now);
    let begun = tokio::time::Instant::now();
    assert!(stream.next().await.is_none());
    assert_eq!(begun.elapsed().as_secs(), 30, "60 s to the bookmark, 30 s to the end");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_says_nothing_and_then_all_of_it() {
    let api = server();
    let nodes: Objects<Node> = Objects::all(api.client());
    let mut stream =
        nodes.watch(&WatchParams::default(), &api.revision().to_string()).await.expect("200").boxed();
    api.stall_watches(true);
    api.load("nodes", json!({"metadata": {"name": "n1"}}));
    assert!(tokio::time::timeout(Duration::from_secs(120), stream.next()).await.is_err());
    api.stall_watches(false);
    assert!(matches!(stream.next().await, Some(Ok(WatchEvent::Added(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_loses_no_objects_and_watchers_come_back() {
    let api = server();
    api.load("pods", pod("a"));
    let mut events = follow(&api, watcher::Config::default());
    assert_eq!(initial(&mut events).await, ["a"]);
    api.set_down(true);
    assert!(events.next().await.expect("no end").is_err());
    assert!(read_raw(&api, "/version").await.is_err());
    api.set_down(false);
    api.load("pods", pod("b"));
    let mut seen = Vec::new();
    while !seen.contains(&"b".to_owned()) {
        if let Ok(Event::Apply(pod) | Event::InitApply(pod)) = events.next().await.expect("no end") {
            seen.extend(pod.metadata.name);
        }
    }
}

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<Pod>>> + Send>>;

fn follow(api: &Api, config: watcher::Config) -> Events {
    Box::pin(watcher(Objects::<Pod>::all(api.client()), config).default_backoff())
}

/// Returns the names in a watcher's first list.
async fn initial(events: &mut Events) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        match events.try_next().await.expect("no failure").expect("no end") {
            Event::Init => {}
            Event::InitApply(pod) => seen.extend(pod.metadata.name),
            Event::InitDone => return seen,
            other => panic!("{other:?} within the list"),
        }
    }
}

async fn next(events: &mut Events) -> (&'static str, String) {
    match events.try_next().await.expect("no failure").expect("no end") {
        Event::Apply(pod) => ("apply", pod.metadata.name.unwrap_or_default()),
        Event::Delete(pod) => ("delete", pod.metadata.name.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}
