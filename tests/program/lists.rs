//! The lists of the panes as commands, in every format: nodes, zones, pods and evictions over objects of a real control
//! plane.

use serde_json::{Value, json};

use super::case_objects::{DONE, Objects, USAGE};
use crate::common::{
    harmless::assert_harmless,
    program::{Output, Shell},
};

const CASE: &str = "24-terminating-on-dead-node";

/// Runs a command on objects, which are all that their cluster has.
async fn run(objects: &Objects, words: &[&str]) -> Output {
    let shell = Shell::new();
    let file = shell.file("objects.json", &objects.list());
    shell.run(&[words, &["--from", &file, "--complete"]].concat()).await
}

async fn printed(objects: &Objects, words: &[&str]) -> String {
    run(objects, words).await.done()
}

/// Returns the tables of a CSV, each as its rows of cells, headings first.
fn tables(csv: &str) -> Vec<Vec<Vec<String>>> {
    let rows = |table: &str| {
        let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(table.as_bytes());
        let rows = reader.into_records().map(|row| row.expect("as many cells as headings"));
        rows.map(|row| row.iter().map(str::to_owned).collect()).collect()
    };
    csv.split("\n\n").map(rows).collect()
}

/// Returns a column of the only table of a CSV.
fn column(csv: &str, head: &str) -> Vec<String> {
    let tables = tables(csv);
    let [table] = &tables[..] else { panic!("one table: {csv}") };
    let place = table[0].iter().position(|found| found == head).unwrap_or_else(|| panic!("{head}: {csv}"));
    table[1..].iter().map(|row| row[place].clone()).collect()
}

#[tokio::test]
async fn nodes_are_the_same_in_every_format() {
    let objects = Objects::of(CASE);
    let names = ["c23-n1", "c23-n2"];
    let csv = printed(&objects, &["nodes", "-o", "csv"]).await;
    assert_eq!(column(&csv, "NODE"), names);
    let states = column(&csv, "STATE");
    assert!(states[0].starts_with("Evicting") || states[0].starts_with("Unknown"), "{states:?}");
    assert_eq!(column(&csv, "PODS"), ["1", "0"]);
    assert!(csv.contains(",1,"), "numbers have no quotes: {csv}");
    assert!(column(&csv, "TAINTS")[0].contains("unreachable:NoExecute"), "{csv}");
    let json: Value = serde_json::from_str(&printed(&objects, &["nodes", "-o", "json"]).await).expect("JSON");
    let yaml: Value =
        serde_saphyr::from_str(&printed(&objects, &["nodes", "-o", "yaml"]).await).expect("YAML");
    assert_eq!(json["schema"], "kordon.nodes/v1");
    assert_eq!(json, yaml, "the moment is that of the files");
    let nodes = json["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.iter().map(|node| &node["name"]).collect::<Vec<_>>(), names);
    assert_eq!((&nodes[0]["cpuMilli"]["used"], &json["total"]), (&Value::Null, &json!(2)));
    let markdown = printed(&objects, &["nodes", "-o", "md"]).await;
    let lines: Vec<&str> = markdown.lines().collect();
    assert!(lines[0].starts_with("| NODE | STATE | "), "{markdown}");
    assert!(lines[1].starts_with("| --- | --- | ") && lines.len() == 4, "{markdown}");
    for format in ["table", "wide"] {
        let table = printed(&objects, &["nodes", "-o", format]).await;
        assert!(table.contains("NODE") && names.iter().all(|name| table.contains(name)), "{table}");
    }
}

/// CSV has the headings of every table, so that programs can tell them apart also when they are empty.
#[tokio::test]
async fn each_list_and_the_status_are_tables_of_csv_and_markdown() {
    let objects = Objects::of(CASE);
    for (line, heads) in [
        ("zones", vec!["ZONE"]),
        ("pods", vec!["POD"]),
        ("pods c23-n2", vec!["POD"]),
        ("evictions", vec!["POD"]),
        ("pending", vec!["POD"]),
        ("departures", vec!["KIND", "POD"]),
        ("status", vec!["ZONE", "NODE", "CORDONED NODE", "POD"]),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        // `kordon status` also reports that the files lack the controller's Lease.
        let csv = run(&objects, &[&words[..], &["-o", "csv", "--color", "always"]].concat()).await.out;
        let first: Vec<String> = tables(&csv).into_iter().map(|table| table[0][0].clone()).collect();
        assert_eq!(first, heads, "{line}");
        assert_harmless(&csv);
        let markdown = printed(&objects, &[&words[..], &["-o", "md", "--color", "always"]].concat()).await;
        assert!(!markdown.contains("\n\n\n") && !markdown.starts_with('\n'), "{line}: {markdown}");
        assert!(!markdown.contains('\x1b'), "{line}: no colours: {markdown:?}");
    }
    let pods = printed(&objects, &["pods", "c23-n1", "-o", "csv"]).await;
    assert_eq!((column(&pods, "POD"), column(&pods, "READY")), (vec!["c23/db-0".into()], vec!["no".into()]));
    assert_eq!(column(&printed(&objects, &["pods", "-n", "other", "-o", "csv"]).await, "POD"), [""; 0]);
    let evictions = printed(&objects, &["evictions", "-o", "csv"]).await;
    assert_eq!(column(&evictions, "STATE"), ["terminating"]);
    assert_eq!(column(&evictions, "IN"), ["hangs"], "its kubelet is down: its grace period has no effect");
    let status = printed(&objects, &["status", "-o", "md"]).await;
    let verdict = status.lines().next().expect("the verdict");
    assert!(!verdict.starts_with('|') && status.contains("\n\n| ZONE | "), "{status}");
}

/// Every list whose rows have a namespace lists those of `--namespace` only; the others refuse the flag.
#[tokio::test]
async fn a_namespace_restricts_every_list_that_has_one_and_the_others_refuse_it() {
    let objects = Objects::of(CASE);
    let rows = async |line: &str, list: &str| {
        let report =
            run(&objects, &[&line.split(' ').collect::<Vec<_>>()[..], &["-o", "json"]].concat()).await;
        report.json()[list].as_array().map(Vec::len)
    };
    for (line, list) in [("evictions", "evictions"), ("departures", "departures"), ("departures", "counts")] {
        assert_eq!(rows(line, list).await, Some(1), "{line}");
        assert_eq!(rows(&format!("{line} -n c23"), list).await, Some(1), "{line}");
        assert_eq!(rows(&format!("{line} -n other"), list).await, Some(0), "{line}");
    }
    let shell = Shell::new();
    let file = shell.file("objects.json", &objects.list());
    for line in ["nodes", "zones", "status", "forecast", "maintenance"] {
        let refused = shell.refused(&[line, "-n", "c23", "--from", &file], USAGE).await;
        assert!(refused.contains("leave out --namespace"), "{line}: {refused}");
    }
    for line in ["timing", "record", "controller"] {
        let refused = shell.refused(&[line, "-n", "c23"], USAGE).await;
        assert!(refused.contains("leave out --namespace"), "{line}: {refused}");
    }
    let budgets = Objects::of("audit-budgets");
    let all = budgets.answer("budgets", DONE).await["budgets"].as_array().map(Vec::len);
    assert!(all > Some(0));
    assert_eq!(budgets.answer("budgets -n default", DONE).await["budgets"].as_array().map(Vec::len), all);
    assert_eq!(budgets.answer("budgets -n other", DONE).await["budgets"], json!([]));
    let table = budgets.table("budgets -n other").await;
    assert!(table.contains("namespace other has no PodDisruptionBudgets"), "{table}");
    let audit = budgets.answer("audit -n other", DONE).await;
    assert_eq!(audit["findings"], json!([]), "{audit:#}");
    assert!(audit["otherNamespaces"].as_u64() > Some(0), "{audit:#}");
    let table = budgets.table("audit -n other").await;
    assert!(table.contains("nothing was found in this namespace"), "{table}");
}

#[tokio::test]
async fn pods_have_their_local_data_in_every_format() {
    let mut objects = Objects::of(CASE);
    objects.named("Pod", "db-0")["spec"]["volumes"] =
        json!([{"name": "cache", "emptyDir": {}}, {"name": "logs", "hostPath": {"path": "/var/log"}}]);
    let csv = printed(&objects, &["pods", "-o", "csv"]).await;
    assert_eq!(column(&csv, "LOCAL DATA"), ["emptyDir, hostPath"]);
    let json: Value = serde_json::from_str(&printed(&objects, &["pods", "-o", "json"]).await).expect("JSON");
    assert_eq!(json["pods"][0]["localData"], json!(["emptyDir", "hostPath"]));
}

#[tokio::test]
async fn rows_are_sorted_and_filtered_as_in_the_dashboard() {
    let objects = Objects::of(CASE);
    let nodes = |words: &'static str| {
        let objects = &objects;
        async move {
            let words: Vec<&str> = words.split(' ').collect();
            column(&printed(objects, &[&["nodes", "-o", "csv"], &words[..]].concat()).await, "NODE")
        }
    };
    assert_eq!(nodes("--sort node").await, ["c23-n1", "c23-n2"]);
    assert_eq!(nodes("--sort node:reversed").await, ["c23-n2", "c23-n1"]);
    assert_eq!(nodes("--sort pods:reversed").await, ["c23-n2", "c23-n1"]);
    assert_eq!(nodes("--sort=-pods").await, ["c23-n1", "c23-n2"], "its values fall, as in a saved view");
    assert_eq!(nodes("--sort taints").await, ["c23-n1", "c23-n2"]);
    assert_eq!(nodes("--filter taint=*NoExecute").await, ["c23-n1"]);
    assert_eq!(nodes("--filter pods<1").await, ["c23-n2"]);
    assert_eq!(nodes("-l kubernetes.io/hostname=c23-n2").await, ["c23-n2"]);
    assert_eq!(nodes("--selector=kubernetes.io/hostname!=c23-n2 --filter pods>0").await, ["c23-n1"]);
    assert_eq!(nodes("--filter !ready:yes").await, ["c23-n1"]);
    let table = printed(&objects, &["nodes", "--filter", "nowhere"]).await;
    assert_eq!(table, "2 nodes in all, none matches nowhere\n");
    let csv = printed(&objects, &["nodes", "--filter", "nowhere", "-o", "csv"]).await;
    assert_eq!(column(&csv, "NODE"), [""; 0]);
    let json = printed(&objects, &["pods", "--filter", "ready:no", "-o", "json"]).await;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((json["pods"].as_array().map(Vec::len), &json["total"]), (Some(1), &json!(1)));
}

#[tokio::test]
async fn a_name_that_no_row_has_is_an_error_and_a_value_that_none_has_is_noted() {
    let objects = Objects::of(CASE);
    let output = run(&objects, &["nodes", "--filter", "zoen=a"]).await;
    assert_eq!((output.code, output.out.as_str()), (USAGE, ""));
    let said = output.err;
    assert!(said.contains("--filter: zoen is no field here; did you mean zone?"), "{said}");
    for (list, filter, said) in [
        ("nodes", "state=Silnt", "note: --filter: no state is silnt; did you mean Silent?\n"),
        ("pods", "phase=Runing", "note: --filter: no phase is runing; did you mean Running?\n"),
        ("nodes", "state=Silent", ""),
        ("pods", "!ready:yes", ""),
    ] {
        let output = run(&objects, &[list, "--filter", filter]).await;
        assert_eq!((output.code, output.err.as_str()), (DONE, said), "{list} {filter}");
    }
    let hostname = "kubernetes.io/hostname";
    let unknown_label = format!("no label of any row; did you mean {hostname}?\n");
    for (selector, said) in [
        ("kubernetes.io/hostnam", format!("note: --selector: kubernetes.io/hostnam is {unknown_label}")),
        ("kubernetes.io/hostname in (c23-n1)", String::new()),
        ("!kubernetes.io/hostnam,kubernetes.io/hostnam!=x", String::new()),
    ] {
        let output = run(&objects, &["nodes", "-l", selector]).await;
        assert_eq!((output.code, output.err), (DONE, said), "{selector}");
    }
}

/// Arguments are checked before the cluster is contacted, so this test needs no cluster.
#[tokio::test]
async fn columns_and_fields_that_do_not_exist_are_errors_that_name_the_nearest() {
    let shell = Shell::new();
    let error = shell.refused(&["nodes", "--sort", "hartbeat"], USAGE).await;
    assert!(error.contains("no column hartbeat; did you mean heartbeat?"), "{error}");
    let error = shell.refused(&["zones", "--sort", "x"], USAGE).await;
    assert!(error.contains("it can be sorted by: zone, state, size, not ready, rate, queue"), "{error}");
    let error = shell.refused(&["evictions", "--filter", "inn<5m"], USAGE).await;
    assert!(error.contains("--filter: inn cannot be compared; did you mean in?"), "{error}");
    let objects = Objects::of(CASE);
    let error = run(&objects, &["pods", "c23-n3"]).await;
    assert!(error.code != DONE && error.err.contains("node c23-n3 not found; did you mean"), "{}", error.err);
}

#[tokio::test]
async fn commands_without_tables_refuse_csv_and_say_what_else_there_is() {
    let shell = Shell::new();
    for line in [
        &["status", "--watch"][..],
        &["journal", "--watch"],
        &["controller"],
        &["why", "node", "n1"],
        &["record"],
    ] {
        let error = shell.refused(&[line, &["-o", "csv"]].concat(), USAGE).await;
        assert!(error.contains("-o csv") && error.contains("json"), "{line:?}: {error}");
    }
    let error = shell.refused(&["status", "--watch", "-o", "md"], USAGE).await;
    assert!(error.contains("-o csv and -o md print whole tables"), "{error}");
}

/// A formula in a node's status is not executed by a spreadsheet, and markup in the status stays text in a document.
#[tokio::test]
async fn hostile_text_stays_text_in_spreadsheets_and_documents() {
    let mut objects = Objects::of(CASE);
    let hostile = "=HYPERLINK(\"http://x\",\"a;b\")|<b>\n\x1b[2J";
    let node = objects.named("Node", "c23-n1");
    let conditions = node["status"]["conditions"].as_array_mut().expect("conditions");
    let ready = conditions.iter_mut().find(|condition| condition["type"] == "Ready").expect("Ready");
    (ready["message"], ready["reason"]) = (json!(hostile), json!("@SUM(A1)"));
    let csv = printed(&objects, &["nodes", "-o", "csv"]).await;
    assert_harmless(&csv);
    let seen = "=HYPERLINK(\"http://x\",\"a;b\")|<b>\u{240a}\u{241b}[2J";
    assert_eq!(column(&csv, "MESSAGE")[0], format!("'{seen}"));
    assert_eq!(column(&csv, "REASON")[0], "'@SUM(A1)");
    assert_eq!(csv.lines().count(), 3, "no cell ends a line: {csv}");
    let markdown = printed(&objects, &["nodes", "-o", "md"]).await;
    assert_harmless(&markdown);
    assert!(markdown.contains("\\|\\<b\\>\u{240a}\u{241b}\\[2J") && !markdown.contains("<b>"), "{markdown}");
    assert_eq!(markdown.lines().count(), 4, "{markdown}");
}

/// CSV has no place for what is unknown. It is printed to standard error instead.
#[tokio::test]
async fn what_is_not_known_is_said_beside_csv() {
    let shell = Shell::new();
    let mut objects = Objects::of(CASE);
    objects.without("Pod", "");
    let file = shell.file("objects.json", &objects.list());
    let output = shell.run(&["nodes", "-o", "csv", "--from", &file]).await;
    assert!(output.err.contains("not known: ") && output.err.contains("pods"), "{}", output.err);
    assert_eq!(column(&output.out, "PODS"), ["-", "-"]);
    let markdown = shell.run(&["nodes", "-o", "md", "--from", &file]).await.out;
    assert!(markdown.starts_with("not known: "), "{markdown}");
}
