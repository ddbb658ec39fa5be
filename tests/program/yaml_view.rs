//! The whole object as YAML on the dashboard: folds, the search, and the selection while the object changes.

use kordon::{
    app::detail::{DetailRow, SubjectReport},
    ui::shown_rows,
};
use kordon_core::cluster::{FetchedObject, ObjectRead};

use crate::dashboard_fixture::DashboardFixture;

const NODE: &str = "\
apiVersion: v1
kind: Node
metadata:
  labels:
    zone: a
  name: pool-b-02
status:
  conditions:
  - status: \"False\"
    type: MemoryPressure
  - status: \"False\"
    type: Ready";

/// Answers the open detail with the text of its object.
pub fn show_yaml(fixture: &mut DashboardFixture, yaml: &str) {
    let subject = fixture.app.shown_object().expect("a detail").subject;
    let object = FetchedObject { yaml: yaml.lines().map(Into::into).collect(), ..FetchedObject::default() };
    let report = SubjectReport::Object(ObjectRead { object: Some(object), failure: None });
    fixture.app.on_subject_report(&subject, report, fixture.now);
}

fn opened() -> DashboardFixture {
    let mut fixture = DashboardFixture::incident();
    fixture.press("2/pool-b-02<Enter>y");
    show_yaml(&mut fixture, NODE);
    fixture
}

/// Returns the lines that are shown, below the title.
fn lines(fixture: &DashboardFixture) -> Vec<String> {
    let rows = shown_rows(&fixture.app, fixture.now).rows;
    rows[1..].iter().map(|row| row[0].clone()).collect()
}

fn note(fixture: &DashboardFixture) -> String {
    shown_rows(&fixture.app, fixture.now).rows[0].last().cloned().unwrap_or_default()
}

/// Returns the selected line.
fn selected(fixture: &DashboardFixture) -> String {
    match fixture.app.screen.overlays.detail().and_then(|detail| detail.selected()) {
        Some(DetailRow::Yaml(row)) => row.text.trim().to_owned(),
        other => panic!("no line is selected: {other:?}"),
    }
}

#[test]
fn a_budget_is_shown_as_yaml_from_its_pane_and_from_its_detail() {
    for keys in ["8y", "8<Enter>y"] {
        let mut fixture = DashboardFixture::maintenance();
        fixture.press(keys);
        let subject = fixture.app.shown_object().expect("a detail").subject;
        assert_eq!((subject.kind, &*subject.name), ("PodDisruptionBudget", "postgres"), "{keys}");
        show_yaml(
            &mut fixture,
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec:\n  minAvailable: 10",
        );
        assert!(lines(&fixture).iter().any(|line| line.ends_with("minAvailable: 10")), "{keys}");
    }
}

#[test]
fn blocks_of_an_object_are_folded_and_unfolded() {
    let mut fixture = opened();
    fixture.press("/zone<Enter><Esc>");
    assert_eq!(selected(&fixture), "zone: a");
    fixture.press("<Space>");
    assert_eq!(selected(&fixture), "labels:", "the line that begins the block");
    let folded = lines(&fixture);
    assert!(folded.iter().any(|line| line.ends_with("▸   labels: … 1 line")), "{folded:?}");
    assert!(!folded.iter().any(|line| line.contains("zone: a")), "{folded:?}");
    fixture.press("F");
    assert_eq!(lines(&fixture).len(), 4, "the keys of the first level: {:?}", lines(&fixture));
    assert_eq!(selected(&fixture), "metadata:");
    fixture.press("F");
    assert_eq!(lines(&fixture).len(), NODE.lines().count());
    assert_eq!(selected(&fixture), "metadata:");
}

#[test]
fn a_search_in_an_object_goes_from_match_to_match_and_hides_nothing() {
    let mut fixture = opened();
    fixture.press("F/type");
    assert_eq!(selected(&fixture), "type: MemoryPressure", "as it is typed, through folded blocks");
    fixture.press("<Enter>n");
    assert_eq!(selected(&fixture), "type: Ready");
    assert!(note(&fixture).contains("match 2 of 2"), "{}", note(&fixture));
    let shown = lines(&fixture);
    assert!(shown.iter().any(|line| line.contains("kind: Node")), "{shown:?}");
    assert_eq!(shown.iter().filter(|line| line.starts_with('›')).count(), 2, "{shown:?}");
    fixture.press("n");
    assert_eq!(selected(&fixture), "type: MemoryPressure", "around the end");
    fixture.press("N");
    assert_eq!(selected(&fixture), "type: Ready");
    fixture.press("<Esc>");
    assert_eq!(selected(&fixture), "type: Ready", "the search was kept");
    fixture.press("/kind<Esc>");
    assert_eq!(selected(&fixture), "type: Ready", "that one was not");
    fixture.press("/nowhere<Enter>");
    assert!(note(&fixture).contains("no line matches"), "{}", note(&fixture));
    assert_eq!(selected(&fixture), "type: Ready");
    let message = |fixture: &DashboardFixture| fixture.app.screen.message.clone();
    assert_eq!(message(&fixture).as_deref(), Some("no match for nowhere"));
    fixture.press("jn");
    assert_eq!(message(&fixture).as_deref(), Some("no match for nowhere"), "n says so again");
}

#[test]
fn the_selected_line_stays_selected_while_the_object_changes() {
    let mut fixture = opened();
    fixture.press("/Ready<Enter><Esc>k");
    assert_eq!(selected(&fixture), "- status: \"False\"");
    // The selected line exists twice, and the change adds lines before it.
    let changed = NODE.replace("  name:", "    rack: r7\n    size: xl\n  name:");
    show_yaml(&mut fixture, &changed);
    fixture.press("j");
    assert_eq!(selected(&fixture), "type: Ready");
    show_yaml(&mut fixture, &changed.replace("type: Ready", "type: Ready2"));
    assert_eq!(selected(&fixture), "type: Ready2", "its value has changed");
    show_yaml(&mut fixture, "kind: Node\nstatus:\n  phase: Gone");
    assert_eq!(selected(&fixture), "status:", "what is left around it");
}
