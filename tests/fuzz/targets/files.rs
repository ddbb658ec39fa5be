//! Fuzz targets: files and programs that connect kordon to a cluster, and the files that kordon writes.

use std::{fs, str, sync::Arc};

use kordon::{
    executor::guards,
    journal::{Journal, JournalLine, LineKind, operations},
    k8s::{
        connect::ConnectOptions,
        exec::{Plugin, Token},
        kubeconfig::{KubeEnvironment, target},
        proxy::Proxies,
        transport,
    },
};
use kordon_core::cluster::Selector;
use kordon_time::Timestamp;
use kube::{Client, client::Body, config::ExecConfig};

use super::{assert_harmless, file, folder, wait};

/// Input: kubeconfig files, separated by NUL, in the order in which `KUBECONFIG` lists them.
pub fn kubeconfig(data: &[u8]) {
    // Inputs that refer to endless files such as `/dev/zero` are skipped.
    if [&b"/dev/"[..], b"/proc/"].iter().any(|path| data.windows(path.len()).any(|part| part == *path)) {
        return;
    }
    let paths: Vec<_> = data
        .split(|byte| *byte == 0)
        .take(3)
        .enumerate()
        .map(|(place, contents)| file(&format!("config{place}"), contents))
        .collect();
    let environment = KubeEnvironment {
        kubeconfig: Some(std::env::join_paths(paths).expect("no colons")),
        ..KubeEnvironment::default()
    };
    match wait(target(&ConnectOptions::default(), &environment)) {
        Ok(found) => {
            let mut config = found.config;
            // Programs that a kubeconfig names are not started here.
            (config.auth_info.exec, config.auth_info.auth_provider) = (None, None);
            let _ = wait(async { transport::client(config).map(drop) });
        }
        Err(error) => assert_harmless(&error.to_string()),
    }
}

/// Input: addresses, one a line: server, proxy of the kubeconfig, HTTPS_PROXY, HTTP_PROXY, NO_PROXY.
pub fn addresses(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    let line = |place: usize| lines.get(place).filter(|text| !text.is_empty()).map(|text| (*text).to_owned());
    let proxies = Proxies { https: line(2), http: line(3), except: line(4).unwrap_or_default() };
    let cluster = serde_json::json!({"server": line(0), "proxy-url": line(1)});
    let config = serde_json::json!({"clusters": [{"name": "c", "cluster": cluster}], "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c"}}]});
    let path = file("addresses", config.to_string().as_bytes());
    let environment = KubeEnvironment { proxies, ..KubeEnvironment::default() };
    for server in [None, line(0)] {
        let options = ConnectOptions { kubeconfig: Some(path.clone()), server, ..ConnectOptions::default() };
        match wait(target(&options, &environment)) {
            Ok(found) => {
                assert!(found.config.cluster_url.host().is_some(), "{}", found.config.cluster_url);
                let _ = wait(async { transport::client(found.config).map(drop) });
            }
            Err(error) => {
                assert_harmless(&error.to_string());
                // Text before an `@` counts as a password anywhere in an address. It must not appear in an error.
                let is_secret = |line: &&str| {
                    line.rsplit_once('@').is_some_and(|(before, after)| {
                        before.contains("hunter2") && !after.contains("hunter2")
                    })
                };
                let (secrets, others): (Vec<&str>, Vec<&str>) = lines.iter().copied().partition(is_secret);
                let is_known = others.iter().any(|line| line.contains("hunter2"));
                assert!(secrets.is_empty() || is_known || !error.to_string().contains("hunter2"), "{error}");
            }
        }
    }
}

/// Input: output of a credential plugin. If it begins with `!`, the plugin writes the rest to standard error and fails.
pub fn plugin(data: &[u8]) {
    let (script, output) = match data.split_first() {
        Some((b'!', rest)) => ("cat \"$0\" >&2; exit 3", rest),
        _ => ("exec cat \"$0\"", data),
    };
    let path = file("output", output).display().to_string();
    let exec = ExecConfig {
        command: Some("/bin/sh".into()),
        args: Some(vec!["-c".into(), script.into(), path]),
        ..ExecConfig::default()
    };
    let plugin = Plugin::new(&exec, None);
    match wait(plugin.run()) {
        Ok(credential) => {
            let answers = |_| async { Ok::<_, tower::BoxError>(http::Response::new(Body::empty())) };
            let _ = wait(async {
                let client = Client::new(tower::service_fn(answers), "default");
                let client = Arc::new(Token::new(plugin, credential)).carried_by(client);
                client.send(http::Request::new(Body::empty())).await.map(drop)
            });
        }
        Err(error) => assert_harmless(&error.to_string()),
    }
}

/// Input: a file of guard rails.
pub fn guards(data: &[u8]) {
    match guards::read(Some(&file("guards.toml", data))) {
        Ok(guards) => {
            let pods = guards.protected_pods.iter();
            assert!(pods.clone().all(|pods| Selector::parse(&pods.to_string()).as_ref() == Ok(pods)));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Input: a journal that a crash may have damaged. The lines that can be read can be written and read again. Lines that
/// are appended later are not lost.
pub fn journal(data: &[u8]) {
    let journal = Journal::within(&folder(), "fuzzed");
    fs::write(journal.path(), data).expect("a temporary file");
    let lines = journal.lines().expect("the file can be read");
    for line in &lines {
        // Times are written with millisecond precision, so the text is compared after one round trip.
        let written = JournalLine::parse(line.to_text().as_bytes()).expect("what is written can be read");
        assert_eq!(JournalLine::parse(written.to_text().as_bytes()).as_ref(), Some(&written));
    }
    for operation in operations(&lines) {
        let _ =
            (operation.is_unfinished(), operation.undo(), operation.prior(), operation.cordoned().count());
    }
    let next = JournalLine {
        at: Timestamp::from_secs(1_800_000_000),
        operation: "next".parse().expect("an id"),
        kind: LineKind::Resumed { by: "somebody".into() },
    };
    wait(async {
        journal.open().expect("the journal opens").append(next.clone()).await.expect("it is written");
    });
    let after = journal.lines().expect("the file can be read");
    assert_eq!(after.split_last(), Some((&next, &lines[..])), "a line is lost");
}
