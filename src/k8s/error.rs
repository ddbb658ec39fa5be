//! Client errors in words for operators, without debug output or terminal escape sequences.

use std::{error::Error as _, path::PathBuf};

use http::Uri;
use kube::core::Status;

use kordon_core::{cluster::nearest::did_you_mean, visible};

/// Maximum length of a text from a server, in characters.
const LONGEST: usize = 400;

/// Reason why kordon could not connect to a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "there is no kubeconfig (looked for {looked}); set one with --kubeconfig or KUBECONFIG, or try \
         `kordon demo`, which needs no cluster"
    )]
    NoKubeconfig { looked: String },
    #[error("--kubeconfig {}: no such file", path.display())]
    MissingKubeconfig { path: PathBuf },
    #[error("cannot read the kubeconfig {}: {why}", path.display())]
    BadKubeconfig { path: PathBuf, why: String },
    #[error("cannot use the service account of this pod: {why}")]
    InCluster { why: String },
    #[error("the kubeconfig has no current context; choose one with --context: {known}")]
    NoCurrentContext { known: String },
    #[error("there is no context {name:?} in the kubeconfig{}; known contexts: {known}", did_you_mean(meant))]
    UnknownContext { name: String, meant: Option<String>, known: String },
    #[error("there is no cluster {name:?} in the kubeconfig (context {context:?}); known clusters: {known}")]
    UnknownCluster { name: String, context: String, known: String },
    #[error("there is no user {name:?} in the kubeconfig (context {context:?}); known users: {known}")]
    UnknownUser { name: String, context: String, known: String },
    #[error("the cluster of context {context:?} has no server; set one with --server")]
    NoServer { context: String },
    #[error("{server} is not the address of a server: {why}")]
    BadServer { server: String, why: String },
    #[error("cannot use the proxy {proxy} ({origin}): {why}")]
    BadProxy { origin: &'static str, proxy: String, why: String },
    #[error("cannot use the credentials: {why}")]
    Credentials { why: String },
    #[error("the credential plugin {command} failed: {why}")]
    Plugin { command: String, why: String },
    #[error("cannot connect to {server}: {why}; check the address, the network and the proxy")]
    Unreachable { server: String, why: String },
    #[error("cannot connect securely to {server}: {why}")]
    Certificate { server: String, why: String },
    #[error("{server} rejected the credentials of {user} (HTTP 401); they may have expired: log in again")]
    Unauthorized { server: String, user: String },
    #[error("{server} forbids {user} to read its version: {why}; ask its administrators for the permission")]
    Forbidden { server: String, user: String, why: String },
    #[error("{server} did not respond within {seconds} s; allow more time with --request-timeout")]
    Timeout { server: String, seconds: u64 },
    #[error("{server} does not respond like a Kubernetes API server: {why}")]
    NotKubernetes { server: String, why: String },
}

/// Makes untrusted text printable on one line: control characters become visible, and long texts are cut.
pub fn plain(text: &str) -> String {
    visible::one_line(text, LONGEST)
}

/// Makes an untrusted address printable on one line, without credentials. Removes everything before the last `@` except
/// a valid scheme, even from malformed addresses.
pub fn address(text: &str) -> String {
    let Some((before, host)) = text.rsplit_once('@') else { return plain(text) };
    let is_scheme =
        |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    match before.split_once("://").map(|(scheme, _)| scheme).filter(is_scheme) {
        Some(scheme) => plain(&format!("{scheme}://…@{host}")),
        None => plain(&format!("…@{host}")),
    }
}

/// Returns the address of a server on one line, without credentials and trailing slashes.
pub fn server_address(server: &Uri) -> String {
    let whole = server.to_string();
    let credentials = server.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    let shown = match credentials {
        Some((credentials, _)) => whole.replacen(&format!("{credentials}@"), "…@", 1),
        None => whole,
    };
    plain(shown.trim_end_matches('/'))
}

/// Describes an error in one line.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status_words(status),
        kube::Error::SerdeError(error) => format!("the response is not one of the Kubernetes API: {error}"),
        kube::Error::Auth(error) => format!("credentials: {}", plain(&error.to_string())),
        other => transport_words(&innermost(other)),
    }
}

/// Returns the message of a status; if the status has no message, the meaning of its code.
pub fn status_words(status: &Status) -> String {
    code_words(status.code, &status.message)
}

/// Returns the message of a response; if the response has no message, the meaning of its HTTP code.
pub fn code_words(code: u16, message: &str) -> String {
    let meaning = match code {
        401 => "the server rejected the credentials (HTTP 401); they may have expired",
        403 => "the server forbids it (HTTP 403)",
        429 => "the server is overloaded (HTTP 429)",
        503 => "the server is not available (HTTP 503)",
        504 => "the server took too long (HTTP 504)",
        _ => "",
    };
    let said = plain(message);
    match (meaning, said.as_str()) {
        ("", "") => format!("the server answered HTTP {code} without a reason"),
        ("", said) => said.into(),
        (meaning, "" | "Unauthorized") => meaning.into(),
        (_, said) => said.into(),
    }
}

/// Returns the text of the innermost cause.
fn innermost(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        // An io::Error displays the error that it wraps, but its `source` skips that error.
        text = deeper.to_string();
        cause = deeper.source();
    }
    text
}

/// Describes an error below HTTP, such as a failed connection.
fn transport_words(cause: &str) -> String {
    let cause = plain(cause);
    let known = [
        ("onnection refused", "nothing listens there (connection refused)"),
        ("onnection reset", "the connection was reset"),
        ("connection closed before message completed", "the server closed the connection"),
        ("roken pipe", "the connection broke"),
        ("failed to lookup address", "its name cannot be resolved"),
        ("deadline has elapsed", "no response in time"),
        ("timed out", "no response in time"),
        ("o route to host", "no route to the host"),
        ("etwork is unreachable", "the network is unreachable"),
        ("unexpected EOF", "the connection ended in the middle of a response"),
        ("unexpected end of file", "the connection ended in the middle of a response"),
    ];
    match known.into_iter().find(|(sign, _)| cause.contains(sign)) {
        Some((_, words)) => words.into(),
        None => cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_command_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{202e}"), "a␛[2Jb␍ c�");
        assert_eq!(plain(&"x".repeat(1000)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        assert_eq!(address("https://me:secret@proxy:3128"), "https://…@proxy:3128");
        assert_eq!(address("https://proxy:3128"), "https://proxy:3128");
        for broken in ["f:/secret@tp://x@host", "me:secret@tp://@host", "//me:secret@@@host", "secret@host"] {
            assert!(address(broken).ends_with("…@host"), "{}", address(broken));
        }
    }

    #[test]
    fn of_a_servers_address_only_the_credentials_are_left_out() {
        let shown = |server: &str| server_address(&server.parse().expect("an address"));
        assert_eq!(shown("https://me:secret@api:6443/"), "https://…@api:6443");
        assert_eq!(shown("https://p@api"), "https://…@api", "and not the p of https");
        assert_eq!(shown("https://gateway/clusters/a@b"), "https://gateway/clusters/a@b");
    }

    #[test]
    fn the_servers_words_are_used_and_its_codes_explained() {
        let words = |message: &str, code| {
            words(&kube::Error::Api(Box::new(Status::failure(message, "").with_code(code))))
        };
        assert_eq!(words("nodes is forbidden", 403), "nodes is forbidden");
        assert!(words("Unauthorized", 401).contains("expired"));
        assert_eq!(words("", 418), "the server answered HTTP 418 without a reason");
    }

    #[test]
    fn failures_of_the_link_are_reported_without_their_wrapping() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = kube::Error::Service(Box::new(refused));
        assert_eq!(words(&error), "nothing listens there (connection refused)");
    }
}
