//! Filters and commands as they are typed.

use kordon::{
    app::{Mode, Pane, overlays::Overlay},
    ui::snapshot,
};

use super::{drawn, expect};
use crate::dashboard_fixture::DashboardFixture;

#[test]
fn a_filter_is_typed_in_the_footer_and_named_in_the_title() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("/zone:a state:evict");
    expect(&mut fixture, "filter-typed", (100, 30));
    fixture.press("<Enter>");
    expect(&mut fixture, "filtered", (100, 30));
}

#[test]
fn a_filter_without_a_match_says_what_would_match() {
    let mut fixture = DashboardFixture::incident();
    let mut said = |keys: &str| {
        fixture.press(keys);
        snapshot::plain(&drawn(&mut fixture, (120, 40)))
    };
    let screen = said("2/zone:a pods>500<Enter>");
    assert!(screen.contains("no node matches; without \"pods>500\": 10 (Esc clears the filter)"), "{screen}");
    let screen = said("/<Ctrl-u>nowhere<Enter>");
    assert!(screen.contains("no node matches (Esc clears the filter: 30 of them)"), "{screen}");
    let screen = said("/<Ctrl-u>zoen:a<Enter>");
    let expected =
        "no node matches: zoen is no field here; did you mean zone? (Esc clears the filter: 30 of them)";
    assert!(screen.contains(expected), "{screen}");
    let screen = said("/<Ctrl-u>pool in (a, b)<Enter>");
    assert!(screen.contains("no node matches; a label selector is -l pool in (a, b) (Esc"), "{screen}");
    let screen = said("/<Ctrl-u>-l zone=b<Enter>");
    let expected = "no node matches, but zone=b has 10: fields stand without -l (Esc clears the filter)";
    assert!(screen.contains(expected), "{screen}");
    let screen = said("/<Ctrl-u>plb03<Enter>");
    assert!(screen.contains("no node matches, but ~plb03 has 1 (Esc clears the filter)"), "{screen}");
    for (filter, near) in [
        ("poool", "did you mean pool?"),
        ("pods>500", "values of pods are "),
        (
            "-l topology.kubernetes.io/region=eu-2",
            "no topology.kubernetes.io/region is eu-2; did you mean eu-1?",
        ),
    ] {
        let screen = said(&format!("/<Ctrl-u>{filter}<Enter>"));
        assert!(screen.contains(&format!("no node matches: {near}")), "{filter}: {screen}");
    }
    let screen = said("/<Ctrl-u>pool-a|pool-b<Enter>");
    let expected = "no node matches; a regular expression is /pool-a|pool-b/ (Esc clears the filter)";
    assert!(screen.contains(expected), "{screen}");
    let screen = said("<Esc>3/nowhere shop<Enter>");
    assert!(screen.contains("no pod matches; without \"nowhere\": "), "{screen}");
    let screen = said("<Esc>5/nowhere<Enter>");
    assert!(screen.contains("no entry matches (Esc clears the filter: "), "{screen}");
    let screen = said("<Esc>4/nowhere<Enter>");
    assert!(screen.contains("no lane matches (Esc clears the filter: "), "{screen}");
}

#[test]
fn a_filtered_list_counts_the_rows_that_match() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2<Enter>/edge<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    let shown = fixture.app.screen.pods.list.len();
    assert!(screen.contains(&format!(" /edge ─ {shown} shown ")), "{screen}");
    fixture.press("5/node<Enter>z");
    let screen = snapshot::plain(&drawn(&mut fixture, (120, 40)));
    let shown = fixture.app.screen.journal.len();
    assert!(screen.contains(&format!(" /node ─ {shown} shown ")), "{screen}");
}

/// Draws the screen of an incident after these keys.
fn incident_after(keys: &str) -> String {
    let mut fixture = DashboardFixture::incident();
    fixture.press(keys);
    snapshot::plain(&drawn(&mut fixture, (160, 48)))
}

#[test]
fn a_filter_compares_and_says_what_is_wrong_beside_it() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pods>3 !state=Ready<Enter>");
    let rows = fixture.app.screen.nodes.list.len();
    assert!(rows > 0 && rows < 10, "{rows}");
    assert!(incident_after("2/cpu>80").contains("cpu is compared with a share, such as 80%"));
    assert!(
        incident_after("2/mem>40").contains("memory is compared with a share, such as 80%"),
        "mem is in its heading"
    );
    let fields = incident_after("2/");
    assert!(fields.contains("node zone state role"), "{fields}");
    for (filter, rows) in [("cpu>300m", 2), ("memory>512Mi", 2), ("!mem>=1Gi !cpu>=1", 2), ("cpu>=1", 1)] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(&format!("2/pool-b-02<Enter><Enter>/{filter}<Enter>"));
        assert_eq!(fixture.app.screen.pods.list.len(), rows, "{filter}");
        assert_eq!(fixture.app.screen.message, None, "{filter}");
    }
    assert!(incident_after("2/hear<Tab>").contains("/heartbeat>"));
}

#[test]
fn a_misspelt_name_or_value_of_a_filter_has_the_nearest_one_beside_it() {
    for (keys, said) in [
        ("2/state=Silnt", "no state is silnt; did you mean Silent?"),
        ("2/state=Silnt<Enter>", "no state is silnt; did you mean Silent?"),
        ("2:nodes state=Silnt<Enter>", "no state is silnt; did you mean Silent?"),
        ("2/pod>20", "pod cannot be compared; did you mean pods?"),
        ("2/zoen=a", "zoen is no field here; did you mean zone?"),
        ("2/zone=x", "no zone is x; there are a, b, c, eu-1/a, eu-1/b, eu-1/c"),
        ("4/zoen=a", "zoen is no field here; did you mean zone?"),
        ("4/what=evictd", "no what is evictd; did you mean evicted?"),
    ] {
        let screen = incident_after(keys);
        assert!(screen.contains(said), "{keys}: {screen}");
    }
    for keys in
        ["2/state=Sil", "2/state=Drained<Enter>", "2/topology.kubernetes.io/zone=a<Enter>", "2/zone=a"]
    {
        let screen = incident_after(keys);
        assert!(!screen.contains("no state is ") && !screen.contains("is no "), "{keys}: {screen}");
    }
}

#[test]
fn values_and_names_of_labels_are_completed_in_a_filter() {
    for (typed, completed) in [
        ("state=sil", "state=Silent"),
        ("a !state:Cord", "a !state:Cordoned"),
        ("zone=eu-1/b", "zone=eu-1/b"),
        ("zone=e", "zone=eu-1/"),
        ("taint=node.kubernetes.io/unr", "taint=node.kubernetes.io/unreachable"),
        ("topology.kubernetes.io/r", "topology.kubernetes.io/region="),
        ("instance", "node.kubernetes.io/instance-type="),
        ("node.kubernetes.io/instance-type=m7", "node.kubernetes.io/instance-type=m7i.2xlarge"),
    ] {
        let mut fixture = DashboardFixture::incident();
        fixture.press(&format!("2/{typed}<Tab>"));
        let typed = match fixture.app.screen.overlays.top() {
            Some(Overlay::Filter(input)) => input.value().to_owned(),
            other => panic!("no filter is typed: {other:?}"),
        };
        assert_eq!(typed, completed);
        assert_eq!(fixture.app.screen.filter(Pane::Nodes).text(), completed, "the list follows");
    }
    let screen = incident_after("2/state=");
    assert!(screen.contains("Cordoned Drained Draining"), "{screen}");
}

#[test]
fn tab_goes_through_the_candidates_of_a_filter_where_none_is_clear() {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/");
    let last_line = |fixture: &mut DashboardFixture| {
        let screen = snapshot::plain(&drawn(fixture, (80, 24)));
        screen.lines().last().unwrap_or_default().to_owned()
    };
    assert!(last_line(&mut fixture).contains("Tab node zone state role"));
    for (key, typed, listed) in [
        ("<Tab>", "node:", "Tab node zone state role"),
        ("<Tab>", "zone:", "Tab zone state role ready"),
        ("b<Ctrl-u>zone=eu-1/<Tab>", "zone=eu-1/a", "Tab eu-1/a eu-1/b eu-1/c"),
        ("<Tab>", "zone=eu-1/b", "Tab eu-1/b eu-1/c eu-1/a"),
    ] {
        fixture.press(key);
        assert_eq!(fixture.app.screen.filter(Pane::Nodes).text(), typed, "{key}");
        let line = last_line(&mut fixture);
        assert!(line.contains(listed), "{key}: {line}");
    }
    fixture.press("<Ctrl-u>nothing-like-it<Tab>");
    assert_eq!(fixture.app.screen.message.as_deref(), Some("Tab does nothing here"));
}

#[test]
fn an_error_beside_a_typed_command_takes_the_rest_of_the_line() {
    let mut fixture = DashboardFixture::well();
    fixture.press(":sort xyz<Enter>");
    let screen = snapshot::plain(&drawn(&mut fixture, (80, 24)));
    assert!(screen.contains(":sort xyz"), "{screen}");
    assert!(screen.contains("there is no column xyz: there are state, node, zone, roles, "), "{screen}");
}

#[test]
fn a_command_is_found_by_words_and_its_errors_are_shown_beside_it() {
    let mut fixture = DashboardFixture::well();
    fixture.press(":zone");
    expect(&mut fixture, "palette", (100, 30));
    expect(&mut fixture, "palette", (80, 24));
    fixture.press("<Ctrl-u>enforce 1y<Enter>");
    expect(&mut fixture, "palette-fault", (160, 48));
    assert_eq!(fixture.app.operations.mode, Mode::DryRun);
    fixture.press("<Ctrl-u>more columns<Enter>");
    assert!(!fixture.app.screen.wide, "what was found by words is only proposed");
    fixture.press("<Tab><Enter>");
    assert!(fixture.app.screen.wide && fixture.app.screen.overlays.palette().is_none());
}
