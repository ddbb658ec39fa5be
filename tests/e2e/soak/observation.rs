//! Resource usage and knowledge of a running dashboard, from `/proc`, its log and its screen.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Resource usage of the process.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Resident memory, in bytes.
    pub memory: u64,
    pub threads: u64,
    pub files: usize,
}

impl Usage {
    pub fn of(process: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).context("the dashboard ended")?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find(|line| line.starts_with(name)).context("no such field")?;
            Ok(line.split_whitespace().nth(1).context("an empty field")?.parse()?)
        };
        Ok(Self {
            memory: field("VmRSS:")? * 1024,
            threads: field("Threads:")?,
            files: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
        })
    }
}

/// Latest figures that the program logged about itself.
#[derive(Clone, Debug, Default)]
pub struct Vitals {
    /// Number of times that the program has logged figures about itself.
    pub written: usize,
    pub tasks: u64,
    pub journal: u64,
    pub requests: u64,
    pub watches: BTreeMap<String, Watch>,
    /// Number of warnings and errors in the log so far.
    pub warnings: usize,
}

/// State of one watch in the log.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    pub state: String,
    pub objects: usize,
    /// Time since the server last sent something, in seconds.
    pub age: u64,
    pub relists: u64,
}

/// The log of the program.
pub struct Log(PathBuf);

impl Log {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns the latest figures in the log.
    pub fn vitals(&self) -> Result<Vitals> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(), // the program has just been started
            text => text.context("reading the log of the program")?,
        };
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)]; // the last line may still be growing
        let mut vitals = Vitals::default();
        for line in whole.lines() {
            if line.contains(" WARN ") || line.contains(" ERROR ") {
                vitals.warnings += 1;
            }
            let Some((_, line)) = line.split_once("kordon::run::vitals: ") else { continue };
            if let Some(fields) = line.strip_prefix("program ") {
                vitals.written += 1;
                vitals.tasks = number(fields, "tasks");
                vitals.journal = number(fields, "journal");
                vitals.requests = number(fields, "requests");
            } else if let Some(fields) = line.strip_prefix("watch ") {
                let watch = Watch {
                    state: field(fields, "state").trim_matches('"').to_owned(),
                    objects: usize::try_from(number(fields, "objects"))?,
                    age: number(fields, "age"),
                    relists: number(fields, "relists"),
                };
                let (kind, _) = fields.split_once(" state=").context("a watch without a state")?;
                vitals.watches.insert(kind.trim_start_matches("kind=").to_owned(), watch);
            }
        }
        Ok(vitals)
    }
}

fn number(fields: &str, name: &str) -> u64 {
    field(fields, name).parse().unwrap_or_default()
}

/// Returns the value of the field `name` in a line of `name=value` fields.
fn field<'a>(fields: &'a str, name: &str) -> &'a str {
    let found = fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_default()
}

/// Returns the rows of the Nodes pane: name, whether the node is ready, and its number of pods.
pub fn node_rows(screen: &str) -> Vec<(String, bool, usize)> {
    let lines: Vec<Vec<char>> = screen.lines().map(|line| line.chars().collect()).collect();
    let text = |cells: &[char]| cells.iter().collect::<String>();
    let find = |line: &[char], word: &str| {
        let at = text(line).find(word)?;
        Some(text(line)[..at].chars().count() + word.chars().count())
    };
    let header = lines.iter().position(|line| find(line, " heartbeat ").is_some());
    let Some(header) = header else { return Vec::new() };
    let Some(end) = find(&lines[header], " pods") else { return Vec::new() };
    let row = |line: &Vec<char>| {
        let line = line.get(..end)?;
        let mut words = text(line).trim_start_matches(['│', ' ']).to_owned();
        let pods = words.split_off(words.rfind(' ')?).trim().parse().ok()?;
        // A row begins with a sign and the name of the node. A flapping node has a badge after its name.
        let mut words = words.split_whitespace().skip(1).filter(|word| !word.starts_with('⇅'));
        let (name, ready) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some((name, ready == "Ready", pods))
    };
    lines[header + 1..].iter().map_while(row).collect()
}
