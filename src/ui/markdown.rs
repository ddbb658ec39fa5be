//! Escapes text for Markdown, so that text from outside is not interpreted as markup.

use kordon_core::visible;

/// Escapes text for Markdown, including tables. Parentheses stay as they are: without the square brackets, which are
/// escaped, they cannot form a link.
pub fn escaped(text: &str) -> String {
    const SPECIAL: &str = "\\`*_{}[]<>#+!|~&$@:";
    let mut out = String::with_capacity(text.len());
    for letter in visible::text(text).chars() {
        match letter {
            '\n' | '\r' => out.push(' '),
            // A colon is escaped only if the text may contain a URL. Times also have colons, and these stay readable.
            ':' if !text.contains("//") => out.push(':'),
            letter if SPECIAL.contains(letter) => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_cluster_is_no_markdown() {
        assert_eq!(escaped("a-1 at 03:12"), "a-1 at 03:12");
        assert_eq!(escaped("a|b `c` [x](http://y)"), "a\\|b \\`c\\` \\[x\\](http\\://y)");
        assert_eq!(escaped("<script>\nalert(1)"), "\\<script\\>\u{240a}alert(1)");
    }
}
