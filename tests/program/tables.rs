//! Every table of every command at several terminal widths: cells agree with the head of their column, columns are
//! aligned, the names of the rows are always shown and never truncated, no two rows are equal, and at least one column
//! is shown in addition to the names.

use std::collections::{BTreeMap, BTreeSet};

use kordon_demo::api::ApiOptions;
use serde_json::Value;

use crate::{
    common::{
        program::{Server, Shell},
        terminal::Terminal,
    },
    event_list,
    tuning::{record, settings},
};

const WIDTHS: [u16; 4] = [60, 80, 120, 200];

/// Tables by the heads of their first columns, each with the heads of the columns that name its rows.
const KEYS: [(&str, &[&str]); 36] = [
    ("ZONE", &["ZONE"]),
    ("NODE ZONE", &["NODE"]),
    ("NODE STATE", &["NODE"]),
    ("NODE POD", &["NODE", "POD"]),
    ("NODE CHANGE", &["NODE"]),
    ("NODE DRAIN", &["NODE"]),
    ("NODE CORDONED BY THIS", &["NODE"]),
    ("CORDONED NODE", &["CORDONED NODE"]),
    ("POD", &["POD"]),
    ("POD NOT EVICTED", &["POD NOT EVICTED"]),
    ("RECEIVING NODE", &["RECEIVING NODE"]),
    ("STAYS PENDING", &["STAYS PENDING"]),
    ("PENDING POD", &["PENDING POD"]),
    ("BUDGET", &["BUDGET"]),
    ("WARNING", &["WARNING"]),
    ("NOT MODELLED", &["NOT MODELLED"]),
    ("DRY RUN", &["DRY RUN"]),
    ("SIGNAL", &["SIGNAL"]),
    ("PLACE", &["PLACE", "POD"]),
    ("LAST TYPE REASON", &["OBJECT"]),
    ("LAST", &["EVENT"]),
    ("KIND", &["KIND"]),
    ("WAVE", &["WAVE"]),
    ("LOST", &["LOST"]),
    ("MOVED POD", &["MOVED POD"]),
    ("LEFT OUT", &["LEFT OUT"]),
    ("BEST NODES", &["BEST NODES"]),
    ("NODES", &["DO NOT FIT BECAUSE"]),
    ("CAVEATS", &["CAVEATS"]),
    ("TO PLACE IT", &["TO PLACE IT"]),
    ("PREEMPTS", &["PREEMPTS"]),
    ("CHART", &["CHART", "SETTINGS"]),
    ("PROFILE", &["PROFILE"]),
    ("WHAT", &["WHAT"]),
    ("OPERATION", &["OPERATION"]),
    ("KEY", &["KEY"]),
];

/// Heads of columns without `-`: each of their cells is known.
const KNOWN: [&str; 20] = [
    "AGE",
    "AT",
    "BUDGET",
    "EVICTION RATE",
    "EVICTION RATE AT END",
    "HEALTHY",
    "MOVED POD",
    "NOT READY",
    "NOT READY AT END",
    "OUTCOME",
    "PENDING POD",
    "PHASE",
    "POD NOT EVICTED",
    "PRIORITY",
    "READY",
    "RECEIVING NODE",
    "SCORE",
    "STATE AT END",
    "STAYS PENDING",
    "VERDICT",
];

/// Heads of columns with numbers only.
const NUMBERS: [&str; 27] = [
    "NOT READY",
    "NOT READY AT END",
    "QUEUE",
    "UNREACHABLE",
    "MOVES",
    "FOR BLIPS",
    "NOT BACK: MOVES",
    "UNCERTAIN",
    "NEEDS",
    "EXPECTED",
    "ALLOWED",
    "TRIES",
    "COUNT",
    "WAVE",
    "LEAVE",
    "DATA LOST",
    "PENDING",
    "IN 2H",
    "N-1 STRANDS",
    "PLACE",
    "PRIORITY",
    "SCORE",
    "LEAST ALLOCATED",
    "BALANCED",
    "SPREAD",
    "SIZE",
    "HEARTBEATS IN GRACE",
];

/// Heads of columns that are not checked, because their texts have too many forms.
const UNCHECKED: [&str; 63] = [
    "VALUE",
    "FROM",
    "CLUSTER",
    "UNTIL",
    "ENDS",
    "STARTS",
    "REMAINING",
    "BLOCKED BY",
    "EVICTED",
    "EVICTED AFTER",
    "DETECTION (MAX)",
    "CHART",
    "AVAILABLE",
    "CAPACITY",
    "ABOVE THRESHOLD",
    "THRESHOLD REACHED",
    "OOM SCORE",
    "IMAGES",
    "NODE AFFINITY",
    "POD AFFINITY",
    "A",
    "B",
    "B - A",
    "STATUS WRITES/MIN",
    "LEASE WRITES/MIN",
    "ETCD GROWTH/MIN",
    "UNTIL COMPACTION",
    "EVICTION TIMEOUT",
    "BLIP WITHOUT UNKNOWN",
    "BLIP WITHOUT EVICTION",
    "PODS OF ONE NODE",
    "OF ONE ZONE",
    "OF ALL NODES",
    "TIME",
    "CORDONED BY THIS",
    "PREEMPTS",
    "PREEMPTED",
    "RENEWALS",
    "ROLES",
    "ADDRESS",
    "KUBELET",
    "KERNEL",
    "CONDITIONS",
    "REASON",
    "OWNER",
    "LOCAL DATA",
    "FINALIZERS",
    "NODE STATES",
    "FIRST CAUSE",
    "POOL",
    "ROOM",
    "RULE",
    "BLOCKS",
    "DRAINS",
    "DRAINED",
    "DOWN MEANWHILE",
    "WHAT WOULD HELP",
    "KIND",
    "STAGE",
    "EVIDENCE",
    "OBJECT",
    "SOURCE",
    "BY THE REPLACEMENT OF",
];

#[tokio::test(start_paused = true)]
async fn tables_over_a_recording_say_below_each_head_what_the_head_says() {
    let shell = Shell::new();
    let recording = record("zone-outage", &settings(40), &[], 420).await;
    let file = shell.home.path().join("outage.kordon");
    std::fs::write(&file, recording).expect("written");
    let file = file.to_str().expect("text");
    let of_recording = ["--recording", file, "--at", "1m"];
    let status = shell.run(&[&["status", "-o", "json"][..], &of_recording].concat()).await;
    let status = status.json();
    let known = Known::new(&status);
    let lost = known.nodes.iter().find(|node| node.contains("1c")).expect("a node of the last zone");
    let zone = known.zones.iter().next_back().expect("a zone");
    let pod = status["evictions"][0].clone();
    let pod = format!("{}/{}", pod["namespace"].as_str().expect("text"), pod["pod"].as_str().expect("text"));
    let mut heads = BTreeSet::new();
    for line in [
        &["status"][..],
        &["nodes"],
        &["zones"],
        &["pods", lost],
        &["evictions"],
        &["forecast"],
        &["forecast", "--fail", lost],
        &["plan", "node-failure", lost],
        &["plan", "zone-failure", zone],
        &["plan", "pressure", lost],
        &["why", "node", lost, "--placement", "--pressure"],
        &["why", "pod", &pod, "--placement"],
    ] {
        let line = [line, &of_recording].concat();
        heads.extend(check(&shell, &line, &known).await);
    }
    // Six minutes into the recording, pods have left, and those on dead nodes are overdue.
    let failed = status["evictions"][0]["node"].as_str().expect("text");
    for line in [&["departures"][..], &["evictions"], &["forecast"], &["pods", failed], &["status"]] {
        let line = [line, &["--recording", file, "--at", "6m"]].concat();
        heads.extend(check(&shell, &line, &known).await);
    }
    for line in [
        &["tune", file][..],
        &["config"],
        &["timing", "--kubernetes-version", "1.37"],
        &["timing", "--kubernetes-version", "1.37", "--compare", "default", "fast"],
    ] {
        heads.extend(check(&shell, line, &known).await);
    }
    for head in [
        "ZONE",
        "NODE",
        "POD",
        "RECEIVING NODE",
        "SIGNAL",
        "PLACE",
        "BEST NODES",
        "KIND",
        "CHART",
        "PROFILE",
        "KEY",
    ] {
        assert!(heads.contains(head), "no table begins with {head}: {heads:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_table_of_pending_pods_says_below_each_head_what_the_head_says() {
    let shell = Shell::new();
    let recording = record("preemption", &settings(40), &[], 150).await;
    let file = shell.home.path().join("preemption.kordon");
    std::fs::write(&file, recording).expect("written");
    let of_recording = ["--recording", file.to_str().expect("text"), "--at", "2m"];
    let status = shell.run(&[&["status", "-o", "json"][..], &of_recording].concat()).await;
    let known = Known::new(&status.json());
    let heads = check(&shell, &[&["pending"][..], &of_recording].concat(), &known).await;
    assert!(heads.contains("POD"), "{heads:?}");
}

#[tokio::test]
async fn the_table_of_events_says_below_each_head_what_the_head_says() {
    let shell = Shell::new();
    let file = shell.file("objects.json", &event_list::objects().list());
    let status = shell.run(&["status", "-o", "json", "--from", &file]).await;
    let known = Known::new(&status.json());
    let heads = check(&shell, &["events", "--from", &file], &known).await;
    assert!(heads.contains("LAST"), "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_plans_and_operations_say_below_each_head_what_the_head_says() {
    let (shell, server) = (Shell::new(), Server::start_at_speed(ApiOptions::default(), 20.0).await);
    let _world = server.inhabit();
    let of_server = ["--server", &*server.url];
    let status = shell.run(&[&["status", "-o", "json"][..], &of_server].concat()).await;
    let known = Known::new(&status.json());
    let node = "general-1a-02";
    let drain = ["--ignore-daemonsets", "--delete-emptydir-data", "--force"];
    let drain = [&["plan", "drain", node][..], &drain].concat();
    let moving = ["maintenance", "--zone", "a", "--force", "--delete-emptydir-data"];
    let mut heads = BTreeSet::new();
    for line in [
        &drain[..],
        &[&drain[..], &["--dry-run=server"]].concat(),
        &["plan", "cordon", node, "general-1a-03"],
        &["plan", "taint", node, "a=b:NoExecute"],
        &["plan", "label", node, "a=b"],
        &["plan", "delete", "-A", "--all", "--field-selector", "spec.nodeName=general-1a-02"],
        &["budgets"],
        &["audit"],
        &["maintenance", "--zone", "a"],
        &moving,
        // The cordon is the last command that changes anything. Repeated runs of it change nothing more and print the
        // same table.
        &["cordon", "general-1a-03", "--enforce", "--yes", "--reason", "a test of tables"],
        &["status"],
        &["journal"],
    ] {
        let line = [line, &of_server].concat();
        heads.extend(check(&shell, &line, &known).await);
    }
    for head in
        ["NODE", "POD", "BUDGET", "WAVE", "MOVED POD", "LEFT OUT", "DRY RUN", "CORDONED NODE", "OPERATION"]
    {
        assert!(heads.contains(head), "no table begins with {head}: {heads:?}");
    }
    // On a terminal, only `-o wide` prints the table of pods that move. No cell of it is cut at any width.
    for width in WIDTHS {
        let line = [&moving[..], &of_server, &["-o", "wide", "--color", "never"]].concat();
        let found = on_a_terminal(&shell, &line, width);
        let moved = found.iter().find(|table| table.heads[0] == "MOVED POD").expect("the pods that move");
        assert_eq!(moved.heads, ["MOVED POD", "WAVE", "FROM", "TO", "AGAIN"], "at {width}");
        moved.check(&known, None, &line);
    }
}

/// Prints a command at every width, and checks the tables. Returns the first head of each table.
async fn check(shell: &Shell, line: &[&str], known: &Known) -> BTreeSet<String> {
    let whole = shell.run(line).await;
    let whole = tables(&whole.out, line);
    assert!(!whole.is_empty(), "{line:?} prints no table");
    for table in &whole {
        table.check(known, None, line);
    }
    for width in WIDTHS {
        let found = on_a_terminal(shell, &[line, &["--color", "never"]].concat(), width);
        for table in &found {
            table.check(known, Some(usize::from(width)), line);
            // The cluster changes between runs. So the run without a terminal, which prints whole tables, may lack this
            // table.
            let has_keys = |whole: &&Printed| whole.keys() == table.keys();
            let same = whole.iter().filter(has_keys).find(|whole| table.leaves_out_of(whole));
            match same {
                Some(whole) => table.check_rows(whole, width, line),
                None => assert!(
                    !whole.iter().any(|whole| has_keys(&whole)),
                    "{line:?} at {width}: {:?}",
                    table.heads
                ),
            }
        }
        let is_live = line.contains(&"--server");
        let heads = || found.iter().map(|table| &table.heads).collect::<Vec<_>>();
        assert!(is_live || found.len() == whole.len(), "{line:?} at {width} has other tables: {:?}", heads());
    }
    whole.iter().map(|table| table.heads[0].clone()).collect()
}

/// Returns the tables that a command prints on a terminal of this width.
fn on_a_terminal(shell: &Shell, line: &[&str], width: u16) -> Vec<Printed> {
    let mut terminal = Terminal::sized(shell.under_terminal(line), 50, width);
    terminal.end();
    tables(&terminal.raw().replace('\r', ""), line)
}

/// Names of objects, by which cells are recognized.
struct Known {
    nodes: BTreeSet<String>,
    zones: BTreeSet<String>,
}

impl Known {
    fn new(status: &Value) -> Self {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let nodes = status["nodes"].as_array().expect("nodes").iter();
        let mut zones: BTreeSet<String> = nodes.clone().map(|node| text(&node["zone"])).collect();
        for zone in status["zones"].as_array().expect("zones") {
            zones.insert(format!("{}/{}", text(&zone["region"]), text(&zone["zone"])));
        }
        Self { nodes: nodes.map(|node| text(&node["name"])).collect(), zones }
    }
}

/// The form of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Node,
    Pod,
    Zone,
    Number,
    /// A time of day, with or without its date.
    Clock,
    /// A duration.
    Span,
    Other,
}

impl Known {
    fn kind(&self, cell: &str) -> Kind {
        let is_name = |part: &str| {
            let is_letter =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            !part.is_empty() && part.chars().all(is_letter)
        };
        let is_clock = |text: &str| {
            text.len() >= 8 && text.chars().all(|letter| letter.is_ascii_digit() || "-:TZ.".contains(letter))
        };
        let span = cell.trim_start_matches('~').trim_end_matches(" ago").trim_end_matches(" overdue");
        let is_span = span.starts_with(|letter: char| letter.is_ascii_digit())
            && span.ends_with(['s', 'm', 'h', 'd'])
            && span.chars().all(|letter| letter.is_ascii_digit() || ".dhms".contains(letter));
        match cell {
            _ if self.nodes.contains(cell) => Kind::Node,
            _ if self.zones.contains(cell) => Kind::Zone,
            _ if cell
                .split_once('/')
                .is_some_and(|(namespace, name)| is_name(namespace) && is_name(name)) =>
            {
                Kind::Pod
            }
            _ if !cell.is_empty() && cell.chars().all(|letter| letter.is_ascii_digit()) => Kind::Number,
            _ if is_clock(cell) && cell.contains(':') => Kind::Clock,
            _ if is_span => Kind::Span,
            _ => Kind::Other,
        }
    }

    /// Whether the form of a cell agrees with the head of its column.
    fn fits(&self, head: &str, cell: &str) -> bool {
        let (name, more) = cell.split_once(" and ").unwrap_or((cell, ""));
        let name = if more.ends_with(" more") { name } else { cell };
        let kind = self.kind(name);
        let is_words = |begins: &[&str]| begins.iter().any(|begin| cell.starts_with(begin));
        if cell.is_empty() {
            return false;
        }
        if cell == "-" {
            return !KNOWN.contains(&head);
        }
        match head {
            "NODE" | "CORDONED NODE" | "RECEIVING NODE" | "BEST NODES" => {
                kind == Kind::Node || cell.ends_with(" nodes") || cell.ends_with(" (not cordoned)")
            }
            "POD" | "POD NOT EVICTED" | "STAYS PENDING" | "PENDING POD" | "BUDGET" => kind == Kind::Pod,
            // The name of a pod that moves again is made up.
            "MOVED POD" => kind == Kind::Pod || (kind == Kind::Other && cell.contains('/')),
            "LEFT OUT" | "TO" => kind == Kind::Node,
            "ZONE" => kind == Kind::Zone,
            // The column NODES has a number, or names in the list of operations and in waves.
            "NODES" => {
                let are_nodes = || cell.split(", ").all(|name| self.kind(name) == Kind::Node);
                kind == Kind::Number || cell.ends_with(" nodes") || are_nodes()
            }
            // The column LOST has a number, or the names of pods that a maintenance loses.
            "LOST" => matches!(kind, Kind::Number | Kind::Pod),
            // The column HEALTHY has a number, or the numbers of healthy and of required pods.
            "HEALTHY" => kind == Kind::Number || cell.contains(" of "),
            head if NUMBERS.contains(&head) => kind == Kind::Number,
            "PODS" => kind == Kind::Number || cell.contains("->"),
            "DEVICES" => cell == "?" || cell.contains('/'),
            "EXTENDED" => cell.contains('/'),
            "CPU" => kind == Kind::Number || cell.contains("->") || cell.ends_with('m') || cell.contains('.'),
            "MEMORY" => kind == Kind::Number || cell.contains("->") || cell.ends_with('i'),
            "CPU REQ" | "CPU USED" | "MEM REQ" | "MEM USED" | "UNHEALTHY" | "CHANCE" => cell.ends_with('%'),
            "READY" | "CORDONED" | "BUDGET IGNORED" | "CORDONED AHEAD" | "AGAIN" => is_words(&["yes", "no"]),
            "PHASE" => is_words(&["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
            "RATE" => cell.contains("/s "),
            "EVICTION RATE" | "EVICTION RATE AT END" => cell.ends_with("/s"),
            "AT" | "STARTED" | "NEXT SLOT" | "PROBE" => kind == Kind::Clock,
            "IN" | "EVICTION" => kind == Kind::Span || is_words(&["now", "never", "hangs"]),
            "GRACE LEFT" | "REPLACED IN" | "READY IN" => kind == Kind::Span || is_words(&["now", "never"]),
            "RAN NOWHERE" | "NOT BACK: NOWHERE" | "HEARTBEAT" | "READY AGAIN" | "LEAVES" | "DELETED"
            | "FOR" | "GRACE" | "PERIOD" | "STATUS" | "LAST" | "BEST" | "TYPICAL" | "WORST" | "BLIP OF"
            | "AGE" | "AGO" | "FIRST" | "TAKES" => kind == Kind::Span || is_words(&["never", "from death"]),
            "EVENT" => kind == Kind::Other && !cell.starts_with(char::is_numeric),
            "STATE AT END" => {
                is_words(&["normal", "partial", "full", "initial", "Normal", "Partial", "Full"])
            }
            "WHY" | "OUTCOME" | "VERDICT" | "STATE" | "NEXT" | "CHANGE" | "WARNING" | "NOTES" | "RESULT"
            | "MESSAGE" | "NOT MODELLED" | "SIGNAL" | "THRESHOLDS" | "PROFILE" | "SETTINGS"
            | "DO NOT FIT BECAUSE" | "TO PLACE IT" | "CAVEATS" | "DRY RUN" | "ANSWER" | "COMPARED" | "BY"
            | "KEY" | "OPERATION" | "TYPE" | "QOS" | "WHY THERE" | "WHAT" | "DRAIN" | "ENDED" | "AFTER" => {
                kind == Kind::Other
            }
            // The column TAINTS has a text, or a score in the table of the best nodes.
            "TAINTS" => matches!(kind, Kind::Number | Kind::Other),
            "LANDS ON" => matches!(kind, Kind::Node | Kind::Other),
            head if UNCHECKED.contains(&head) => true,
            other => panic!("nothing says what stands below {other}: {cell:?}"),
        }
    }
}

/// A printed table.
struct Printed {
    heads: Vec<String>,
    rows: Vec<BTreeMap<String, String>>,
    lines: Vec<String>,
}

/// Returns the tables of an output. Each follows an empty line, and its head has no lower-case letters.
fn tables(text: &str, command: &[&str]) -> Vec<Printed> {
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |line: &str| {
        line.chars().any(char::is_alphabetic)
            && !line.chars().any(char::is_lowercase)
            && !line.contains(['│', '▪'])
    };
    // A note of what was shortened, or an error.
    let ends = |line: &str| line.starts_with("… shortened") || line.starts_with("kordon: ");
    let mut found = Vec::new();
    for place in 1..lines.len() {
        if lines[place - 1].is_empty() && is_head(lines[place]) {
            let end = lines[place..].iter().position(|line| line.is_empty() || ends(line));
            let end = end.map_or(lines.len(), |end| place + end);
            found.push(Printed::read(&lines[place..end], command));
        }
    }
    found
}

impl Printed {
    fn read(lines: &[&str], command: &[&str]) -> Self {
        let whole = lines.join("\n");
        let cells: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
        let heads = words(&cells[0]);
        // A long key is on a line of its own, and the rest of its row begins further to the right.
        let is_alone = |place: usize| {
            let next = cells.get(place + 1).and_then(|next| words(next).first().map(|word| word.0));
            let last = words(&cells[place]).last().map(|word| word.0);
            place > 0 && next.is_some_and(|next| next >= heads[0].1 + 2) && next > last
        };
        let aligned: Vec<&Vec<char>> =
            cells.iter().enumerate().filter(|(place, _)| !is_alone(*place)).map(|(_, line)| line).collect();
        let is_blank =
            |at: usize| aligned.iter().all(|line| line.get(at).is_none_or(|letter| *letter == ' '));
        let mut bounds = vec![0];
        for pair in heads.windows(2) {
            let (end, start) = (pair[0].1, pair[1].0);
            let gap = (end..start.saturating_sub(1)).find(|at| is_blank(*at) && is_blank(*at + 1));
            let gap = gap.unwrap_or_else(|| {
                panic!("{command:?}: {} and {} run together:\n{whole}", pair[0].2, pair[1].2)
            });
            bounds.push(gap + 2);
        }
        let names: Vec<String> = heads.iter().map(|head| head.2.clone()).collect();
        let mut rows: Vec<BTreeMap<String, String>> = Vec::new();
        let mut unfinished: Option<BTreeMap<String, String>> = None;
        for (place, line) in cells.iter().enumerate().skip(1) {
            let cell = |column: usize| {
                let end = bounds.get(column + 1).copied().unwrap_or(usize::MAX);
                let cell = line.iter().take(end).skip(bounds[column]);
                cell.collect::<String>().trim().to_owned()
            };
            let (words, done) = (words(line), unfinished.as_ref().map_or(0, BTreeMap::len));
            let bound = bounds.get(done + words.len());
            let overflows = words.last().zip(bound).is_some_and(|((_, end, _), bound)| end + 2 > *bound);
            if is_alone(place) && overflows {
                let row = unfinished.get_or_insert_default();
                let keys = words.into_iter().zip(&names[done..]);
                row.extend(keys.map(|((.., text), name)| (name.clone(), text)));
                continue;
            }
            let mut row: BTreeMap<String, String> =
                names.iter().enumerate().map(|(column, name)| (name.clone(), cell(column))).collect();
            if let Some(keys) = unfinished.take() {
                row.extend(keys);
            }
            rows.push(row);
        }
        rows.extend(unfinished);
        Self { heads: names, rows, lines: lines.iter().map(|line| (*line).to_owned()).collect() }
    }

    fn keys(&self) -> &'static [&'static str] {
        let found = (1..=3).rev().find_map(|count| {
            let heads = self.heads.iter().take(count).cloned().collect::<Vec<_>>().join(" ");
            KEYS.iter().find(|(first, _)| *first == heads)
        });
        found.unwrap_or_else(|| panic!("nothing says what names the rows of {:?}", self.heads)).1
    }

    /// Asserts that cells agree with their heads, and that no two rows are equal, because each row is about a different
    /// object.
    fn check(&self, known: &Known, width: Option<usize>, command: &[&str]) {
        let whole = self.lines.join("\n");
        // A line that only continues a cell of the line above has no name.
        let names_something = |row: &&BTreeMap<String, String>| {
            self.keys().iter().any(|key| row.get(*key).is_some_and(|cell| !cell.is_empty()))
        };
        // The times since a node's death are drawn, with an axis in the first row.
        let is_drawing = self.heads.starts_with(&["PROFILE".to_owned(), "EVENT".to_owned()]);
        for row in &self.rows {
            let has_blanks = is_drawing || !names_something(&row);
            for (head, cell) in row {
                let is_cut = cell.ends_with('…');
                assert!(!is_cut || width.is_some(), "{command:?} cuts {cell:?} without a terminal:\n{whole}");
                assert!(
                    is_cut || known.fits(head, cell) || (has_blanks && cell.is_empty()),
                    "{command:?}: {cell:?} stands below {head}:\n{whole}"
                );
            }
        }
        let rows: Vec<_> = self.rows.iter().filter(names_something).collect();
        let distinct: BTreeSet<_> = rows.iter().collect();
        assert_eq!(distinct.len(), rows.len(), "{command:?} at {width:?} has equal rows:\n{whole}");
    }

    /// Whether all columns of this table are columns of `whole`, in the same order.
    fn leaves_out_of(&self, whole: &Self) -> bool {
        let mut rest = whole.heads.iter();
        self.heads.iter().all(|head| rest.any(|other| other == head))
    }

    /// Asserts that no column with the names of the rows is left out or truncated, that at least one other column is
    /// shown, and that lines fit the width.
    fn check_rows(&self, whole: &Self, width: u16, command: &[&str]) {
        let text = self.lines.join("\n");
        for key in whole.keys() {
            assert!(
                self.heads.iter().any(|head| head == key),
                "{command:?} at {width} has no {key}:\n{text}"
            );
            for row in &self.rows {
                assert!(!row[*key].contains('…'), "{command:?} at {width} cuts {:?}:\n{text}", row[*key]);
            }
        }
        let has_others = |table: &Self| table.heads.iter().any(|head| !whole.keys().contains(&&**head));
        assert!(
            has_others(self) || !has_others(whole),
            "{command:?} at {width} only names its rows:\n{text}"
        );
        let longest = self.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(
            longest <= usize::from(width) || !has_others(self) || self.is_long_by_keys(whole, width),
            "{command:?} at {width}:\n{text}"
        );
    }

    /// Whether the lines that are too long consist only of cells that name rows.
    fn is_long_by_keys(&self, whole: &Self, width: u16) -> bool {
        let keys = whole.keys();
        let names: BTreeSet<&String> =
            self.rows.iter().flat_map(|row| keys.iter().filter_map(|key| row.get(*key))).collect();
        let too_long = self.lines.iter().filter(|line| line.chars().count() > usize::from(width));
        too_long.into_iter().all(|line| {
            let words = words(&line.chars().collect::<Vec<_>>());
            words.iter().all(|(.., word)| names.contains(word))
        })
    }
}

/// Returns the parts of a line that two spaces separate, with their start and end.
fn words(line: &[char]) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut place = 0;
    while place < line.len() {
        if line[place] == ' ' {
            place += 1;
            continue;
        }
        let is_end = |at: usize| {
            line.get(at).is_none_or(|letter| *letter == ' ')
                && line.get(at + 1).is_none_or(|letter| *letter == ' ')
        };
        let end = (place..=line.len()).find(|at| is_end(*at)).unwrap_or(line.len());
        found.push((place, end, line[place..end].iter().collect()));
        place = end + 1;
    }
    found
}
