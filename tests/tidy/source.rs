//! Tokenizer for Rust source files: words, comments and string literals.

use crate::repository::file;

/// A word, a punctuation mark, a comment or a string literal, with its first line.
#[derive(Clone, Debug)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A tokenized source file.
pub struct Source {
    /// Path from the root of the repository, with forward slashes.
    pub path: String,
    pub text: String,
    /// Words and punctuation, without comments and literals.
    pub tokens: Vec<Token>,
    /// Comments, one for each line, including their slashes.
    pub comments: Vec<Token>,
    /// Contents of string literals, with escapes as written.
    pub strings: Vec<Token>,
}

impl Source {
    pub fn read(path: &str) -> Self {
        Self::parse(path, &file(path))
    }

    pub fn parse(path: &str, text: &str) -> Self {
        let mut source = Self {
            path: path.into(),
            text: text.into(),
            tokens: Vec::new(),
            comments: Vec::new(),
            strings: Vec::new(),
        };
        source.take_apart(&text.chars().collect::<Vec<_>>());
        source
    }

    /// Returns the top module of the file in its package; `main` and `lib` for the files of that name.
    pub fn layer(&self) -> String {
        self.module().into_iter().next().unwrap_or_else(|| "lib".into())
    }

    /// Returns the path of the file's module in its package: `src/app/screen.rs` is `["app", "screen"]`,
    /// `src/app/mod.rs` is `["app"]`.
    pub fn module(&self) -> Vec<String> {
        let inside = self.path.split_once("src/").map_or(&*self.path, |(_, inside)| inside);
        let parts = inside.trim_end_matches(".rs").split('/');
        parts.filter(|part| !matches!(*part, "mod" | "lib" | "main")).map(str::to_owned).collect()
    }

    /// Returns the names at the crate root that the file refers to, by `crate::` or by a chain of `super::`.
    pub fn imports(&self) -> Vec<Token> {
        let mut found = Vec::new();
        let mut inline = InlineModules::default();
        let mut at = 0;
        while at < self.tokens.len() {
            inline.step(&self.tokens, at);
            let begins = at == 0 || self.tokens[at - 1].text != "::";
            let after = match &*self.tokens[at].text {
                "crate" => Some(at + 1),
                "super" if begins => {
                    let chain =
                        self.tokens[at..].chunks(2).take_while(|pair| pair[0].text == "super").count();
                    at += 2 * chain - 2;
                    (chain >= self.module().len() + inline.depth()).then_some(at + 1)
                }
                _ => None,
            };
            if let Some(after) = after
                && self.tokens.get(after).is_some_and(|token| token.text == "::")
            {
                found.extend(heads(&self.tokens[after + 1..]));
            }
            at += 1;
        }
        found
    }

    /// Returns the tokens of these names where they are used as `root::name`.
    pub fn paths_of(&self, root: &str, names: &[&str]) -> Vec<Token> {
        let roots =
            self.tokens.windows(2).enumerate().filter(|(_, t)| t[0].text == root && t[1].text == "::");
        roots
            .flat_map(|(at, _)| heads(&self.tokens[at + 2..]))
            .filter(|token| names.contains(&&*token.text))
            .collect()
    }

    /// Splits the characters of the file into words and punctuation, comments, and string literals.
    fn take_apart(&mut self, chars: &[char]) {
        let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
        let piece =
            |from: usize, to: usize| chars[from.min(to)..to.min(chars.len())].iter().collect::<String>();
        let (mut place, mut line) = (0, 1);
        while place < chars.len() {
            let begin = place;
            match (at(place), at(place + 1)) {
                ('/', '/') => {
                    place = end_of(chars, place, &['\n']);
                    self.comments.push(Token { text: piece(begin, place).trim_end().into(), line });
                }
                ('/', '*') => {
                    place = end_of(chars, place + 2, &['*', '/']);
                    self.comments.push(Token { text: piece(begin, place), line });
                }
                ('"', _) => {
                    place = end_of_text(chars, place + 1);
                    self.strings.push(Token { text: piece(begin + 1, place - 1), line });
                }
                ('r', '"' | '#') if raw_hashes(chars, place + 1).is_some() => {
                    let hashes = raw_hashes(chars, place + 1).unwrap_or(0);
                    let end: Vec<char> =
                        std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                    place = end_of(chars, place + hashes + 2, &end);
                    self.strings.push(Token { text: piece(begin + hashes + 2, place - end.len()), line });
                }
                ('\'', '\\') => place = end_of(chars, place + 3, &['\'']),
                ('\'', _) if at(place + 2) == '\'' => place += 3,
                (':', ':') => {
                    place += 2;
                    self.tokens.push(Token { text: "::".into(), line });
                }
                (first, _) if first.is_alphanumeric() || first == '_' => {
                    while at(place).is_alphanumeric() || at(place) == '_' {
                        place += 1;
                    }
                    self.tokens.push(Token { text: piece(begin, place), line });
                }
                (mark, _) => {
                    place += 1;
                    if !mark.is_whitespace() {
                        self.tokens.push(Token { text: mark.into(), line });
                    }
                }
            }
            place = place.min(chars.len());
            line += chars[begin..place].iter().filter(|c| **c == '\n').count();
        }
    }
}

/// Counts the inline modules (`mod name { … }`) around a token, by their braces.
#[derive(Default)]
struct InlineModules {
    braces: usize,
    opened: Vec<usize>,
}

impl InlineModules {
    fn step(&mut self, tokens: &[Token], at: usize) {
        match &*tokens[at].text {
            "{" => {
                if at >= 2 && tokens[at - 2].text == "mod" {
                    self.opened.push(self.braces);
                }
                self.braces += 1;
            }
            "}" => {
                self.braces = self.braces.saturating_sub(1);
                self.opened.pop_if(|opened| *opened == self.braces);
            }
            _ => {}
        }
    }

    fn depth(&self) -> usize {
        self.opened.len()
    }
}

/// Returns the first names of a path or of a group of paths: for `a::b` that is `a`, for `{a::{b, c}, d}` it is `a` and
/// `d`.
fn heads(tokens: &[Token]) -> Vec<Token> {
    let Some(first) = tokens.first() else { return Vec::new() };
    if first.text != "{" {
        return vec![first.clone()];
    }
    let (mut depth, mut found) = (0, Vec::new());
    for pair in tokens.windows(2) {
        match &*pair[0].text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(&*pair[0].text, "{" | ",") && pair[1].text != "}" {
            found.push(pair[1].clone());
        }
    }
    found
}

/// Returns the number of `#` before the quote of a raw string; `None` if none begins here.
fn raw_hashes(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from.min(chars.len())..].iter().take_while(|c| **c == '#').count();
    (chars.get(from + hashes) == Some(&'"')).then_some(hashes)
}

/// Returns the index after the next occurrence of `end`.
fn end_of(chars: &[char], from: usize, end: &[char]) -> usize {
    let rest = chars.get(from..).unwrap_or_default();
    rest.windows(end.len())
        .position(|window| window == end)
        .map_or(chars.len(), |found| from + found + end.len())
}

/// Returns the index after the closing quote of a string.
fn end_of_text(chars: &[char], mut place: usize) -> usize {
    while let Some(c) = chars.get(place) {
        place += 1;
        match c {
            '\\' => place += 1,
            '"' => break,
            _ => {}
        }
    }
    place
}
