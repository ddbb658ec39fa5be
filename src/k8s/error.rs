//! Errors of the client in words for operators: no debug dumps, nothing that a terminal would obey.

use std::error::Error as _;

use kube::core::Status;

/// The longest text of a server that is shown, in characters.
const LONGEST: usize = 400;

/// Text from outside, fit for a terminal: control characters are shown, not obeyed; long texts are cut.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len().min(LONGEST));
    for (count, c) in text.trim_end().chars().enumerate() {
        if count == LONGEST {
            plain.push('…');
            break;
        }
        match c {
            '\n' | '\t' => plain.push(' '),
            c if c.is_control() || is_invisible(c) => plain.extend(c.escape_unicode()),
            c => plain.push(c),
        }
    }
    plain
}

/// Characters that turn or hide the text around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// What went wrong, in one line.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status_words(status),
        kube::Error::SerdeError(error) => format!("the answer is not what an API server says: {error}"),
        kube::Error::Auth(error) => format!("credentials: {}", plain(&error.to_string())),
        other => transport_words(&innermost(other)),
    }
}

/// What the server said, or what its code means where it said nothing.
pub fn status_words(status: &Status) -> String {
    code_words(status.code, &status.message)
}

/// As [`status_words`], of an HTTP code and the text that came with it.
pub fn code_words(code: u16, message: &str) -> String {
    let meaning = match code {
        401 => "the server does not accept the credentials (HTTP 401); they may have expired",
        403 => "the server forbids it (HTTP 403)",
        429 => "the server has too much to do (HTTP 429)",
        503 => "the server is not available (HTTP 503)",
        504 => "the server took too long (HTTP 504)",
        _ => "",
    };
    let said = plain(message);
    match (meaning, said.as_str()) {
        ("", "") => format!("the server answered HTTP {code} and no reason"),
        ("", said) => said.into(),
        (meaning, "" | "Unauthorized") => meaning.into(),
        (_, said) => said.into(),
    }
}

/// The deepest cause that has something to say.
fn innermost(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        // An io::Error shows what it wraps, but does not name it as its source.
        text = deeper.to_string();
        cause = deeper.source();
    }
    text
}

/// What a failure below HTTP means.
fn transport_words(cause: &str) -> String {
    let cause = plain(cause);
    let known = [
        ("onnection refused", "nothing listens there (connection refused)"),
        ("onnection reset", "the connection was reset"),
        ("connection closed before message completed", "the server closed the connection"),
        ("roken pipe", "the connection broke"),
        ("failed to lookup address", "its name cannot be resolved"),
        ("deadline has elapsed", "no answer in time"),
        ("timed out", "no answer in time"),
        ("o route to host", "no route to the host"),
        ("etwork is unreachable", "the network is unreachable"),
        ("unexpected EOF", "the connection ended in the middle of an answer"),
        ("unexpected end of file", "the connection ended in the middle of an answer"),
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
        assert_eq!(plain("a\u{1b}[2Jb\r\nc\u{202e}"), "a\\u{1b}[2Jb\\u{d} c\\u{202e}");
        assert_eq!(plain(&"x".repeat(1000)).chars().count(), LONGEST + 1);
    }

    #[test]
    fn the_servers_words_are_used_and_its_codes_explained() {
        let words = |message: &str, code| {
            words(&kube::Error::Api(Box::new(Status::failure(message, "").with_code(code))))
        };
        assert_eq!(words("nodes is forbidden", 403), "nodes is forbidden");
        assert!(words("Unauthorized", 401).contains("expired"));
        assert_eq!(words("", 418), "the server answered HTTP 418 and no reason");
    }

    #[test]
    fn failures_of_the_link_are_told_without_their_wrapping() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = kube::Error::Service(Box::new(refused));
        assert_eq!(words(&error), "nothing listens there (connection refused)");
    }
}
