//! Runs credential plugins (exec). A plugin runs once, without a terminal, and with captured output.
//!
//! kube would run a plugin several times, block a thread while it runs, and let the plugin write to the screen.

use std::{collections::BTreeMap, process::Stdio, sync::Arc, time::Duration};

use http::{HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use kube::{
    Client,
    client::Body,
    config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{process::Command, sync::Mutex, time::timeout};

use super::error::{ConnectError, plain};
use kordon_time::{Span, Timestamp};

/// Timeout of a plugin. It is long, because some plugins open a browser.
const LONGEST: Duration = Duration::from_secs(120);

/// Time before the expiry of a credential at which the credential is replaced.
const MARGIN: Span = Span::from_secs(60);

/// Minimum time between two runs of a plugin.
const LEAST: Span = Span::from_secs(30);

/// A program that returns credentials.
#[derive(Clone, Debug)]
pub struct Plugin {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    api_version: String,
    cluster: Option<Value>,
    hint: String,
    needs_terminal: bool,
}

/// A credential returned by a plugin.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Credential {
    pub token: Option<String>,
    pub client_certificate_data: Option<String>,
    pub client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

impl Credential {
    fn expires(&self) -> Option<Timestamp> {
        Timestamp::parse(self.expiration_timestamp.as_deref()?)
    }
}

impl Plugin {
    pub fn new(exec: &ExecConfig, cluster: Option<&ExecAuthCluster>) -> Self {
        let pair = |pair: &std::collections::HashMap<String, String>| {
            Some((pair.get("name")?.clone(), pair.get("value")?.clone()))
        };
        let default = "client.authentication.k8s.io/v1beta1";
        Self {
            command: exec.command.clone().unwrap_or_default(),
            args: exec.args.clone().unwrap_or_default(),
            env: exec.env.iter().flatten().filter_map(pair).collect(),
            api_version: exec.api_version.clone().unwrap_or_else(|| default.into()),
            cluster: cluster.and_then(|cluster| serde_json::to_value(cluster).ok()),
            hint: exec.install_hint.as_deref().map(plain).unwrap_or_default(),
            needs_terminal: exec.interactive_mode == Some(ExecInteractiveMode::Always),
        }
    }

    /// Runs the program and reads its credential.
    ///
    /// # Errors
    /// The program does not exist, fails (with the first line that it wrote), takes too long, or returns no credential.
    pub async fn run(&self) -> Result<Credential, ConnectError> {
        if self.needs_terminal {
            return Err(
                self.failed("it needs a terminal, which it does not have here; log in with kubectl first")
            );
        }
        let mut spec = json!({"interactive": false});
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        let info = json!({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec});
        let running = Command::new(&self.command)
            .args(&self.args)
            .envs(&self.env)
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .output();
        let output = match timeout(LONGEST, running).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.failed(&format!("no such program {}", self.hint)));
            }
            Ok(Err(error)) => return Err(self.failed(&error.to_string())),
            Err(_) => return Err(self.failed(&format!("it did not finish within {} s", LONGEST.as_secs()))),
        };
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it wrote nothing");
            return Err(self.failed(&format!("{}: {}", output.status, plain(line))));
        }
        self.read(&output.stdout)
    }

    fn read(&self, stdout: &[u8]) -> Result<Credential, ConnectError> {
        #[derive(Deserialize)]
        struct ExecCredential {
            status: Option<Credential>,
        }
        let answer: ExecCredential = serde_json::from_slice(stdout)
            // Only the line number is shown, because the error text may contain the credential.
            .map_err(|error| self.failed(&format!("line {} of its output is not JSON", error.line())))?;
        let credential = answer.status.unwrap_or_default();
        let certificate =
            credential.client_certificate_data.is_some() && credential.client_key_data.is_some();
        if credential.token.is_none() && !certificate {
            return Err(self.failed("it returned neither a token nor a certificate with its key"));
        }
        Ok(credential)
    }

    fn failed(&self, why: &str) -> ConnectError {
        ConnectError::Plugin { command: plain(&self.command), why: why.trim_end().into() }
    }
}

/// A token that is replaced shortly before it expires, or after the server has rejected it.
pub struct Token {
    plugin: Plugin,
    state: Mutex<State>,
}

struct State {
    credential: Credential,
    asked: Timestamp,
    refused: bool,
}

impl Token {
    pub fn new(plugin: Plugin, credential: Credential) -> Self {
        Self { plugin, state: Mutex::new(State { credential, asked: kordon_clock::wall(), refused: false }) }
    }

    /// Returns a client that adds the token to every request of `client`.
    pub fn carried_by(self: Arc<Self>, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (client, token) = (client.clone(), self.clone());
            async move {
                request.headers_mut().insert(AUTHORIZATION, token.header().await?);
                let answer = client.send(request).await?;
                if answer.status() == StatusCode::UNAUTHORIZED {
                    token.state.lock().await.refused = true;
                }
                Ok::<_, tower::BoxError>(answer)
            }
        });
        Client::new(service, namespace)
    }

    async fn header(&self) -> Result<HeaderValue, tower::BoxError> {
        // The lock is held while the plugin runs, so that the plugin runs only once: all requests need its token.
        let mut state = self.state.lock().await;
        let now = kordon_clock::wall();
        let ends = state.credential.expires().is_some_and(|at| at - MARGIN <= now);
        if (ends || state.refused) && now.since(state.asked) >= LEAST {
            state.asked = now;
            state.credential = self.plugin.run().await?;
            state.refused = false;
        }
        let token = state.credential.token.as_deref().unwrap_or_default();
        let mut header = HeaderValue::try_from(format!("Bearer {token}"))?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(script: &str) -> Plugin {
        let exec = ExecConfig {
            command: Some("/bin/sh".into()),
            args: Some(vec!["-c".into(), script.into()]),
            ..ExecConfig::default()
        };
        Plugin::new(&exec, None)
    }

    #[tokio::test]
    async fn a_plugin_gets_the_api_and_returns_a_token() {
        let script = r#"case $KUBERNETES_EXEC_INFO in *v1beta1*false*) ;; *) exit 1 ;; esac
            echo '{"status": {"token": "t", "expirationTimestamp": "2030-01-01T00:00:00Z"}}'"#;
        let credential = plugin(script).run().await.expect("a credential");
        assert_eq!(credential.token.as_deref(), Some("t"));
        assert_eq!(credential.expires(), Timestamp::parse("2030-01-01T00:00:00Z"));
    }

    #[tokio::test]
    async fn a_token_is_replaced_before_it_ends_or_after_a_refusal_and_not_more_often() {
        let folder = tempfile::tempdir().expect("a folder");
        let runs = folder.path().join("runs");
        let script = format!(
            r#"echo run >> {0}; echo "{{\"status\": {{\"token\": \"t$(wc -l < {0} | tr -d ' ')\"}}}}""#,
            runs.display()
        );
        let now = kordon_clock::wall();
        let header = async |expires: Option<Span>, asked: Span, refused: bool| {
            std::fs::write(&runs, "").expect("written");
            let expiration_timestamp = expires.map(|left| (now + left).to_string());
            let credential =
                Credential { token: Some("t0".into()), expiration_timestamp, ..Credential::default() };
            let state = Mutex::new(State { credential, asked: now - asked, refused });
            let token = Token { plugin: plugin(&script), state };
            let first = token.header().await.expect("a token");
            // The new token does not expire, so the next request uses it and runs no plugin.
            assert_eq!(token.header().await.expect("a token"), first);
            first.to_str().expect("a text").to_owned()
        };
        let (minute, hour) = (Span::from_secs(60), Span::from_secs(3600));
        assert_eq!(header(Some(hour), hour, false).await, "Bearer t0", "it is good for an hour");
        assert_eq!(header(None, hour, false).await, "Bearer t0", "nothing says when it ends");
        assert_eq!(header(Some(minute), hour, false).await, "Bearer t1", "it ends in a minute");
        assert_eq!(header(Some(Span::ZERO), hour, false).await, "Bearer t1", "it has ended");
        assert_eq!(header(None, hour, true).await, "Bearer t1", "the server refused it");
        let soon = Span::from_secs(5);
        assert_eq!(header(Some(minute), soon, true).await, "Bearer t0", "the plugin ran 5 s ago");
    }

    #[tokio::test]
    async fn a_plugin_that_fails_is_quoted_without_its_control_characters() {
        let script = "echo >&2; printf 'not logged in \\033[2J\\nmore\\n' >&2; exit 3";
        let text = plugin(script).run().await.err().expect("it fails").to_string();
        assert!(text.contains("not logged in ␛[2J") && !text.contains("more"), "{text}");
        let text = plugin("echo secret").run().await.err().expect("no JSON").to_string();
        assert!(text.contains("not JSON") && !text.contains("secret"), "{text}");
        let text = plugin("echo '{}'").run().await.err().expect("no credential").to_string();
        assert!(text.contains("neither"), "{text}");
    }

    #[tokio::test]
    async fn a_plugin_that_is_not_there_is_named_with_its_hint() {
        let exec = ExecConfig {
            command: Some("no-such-plugin".into()),
            install_hint: Some("install it".into()),
            ..ExecConfig::default()
        };
        let text = Plugin::new(&exec, None).run().await.err().expect("not there").to_string();
        assert!(text.contains("no-such-plugin") && text.contains("install it"), "{text}");
    }
}
