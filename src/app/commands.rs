//! The command table: dispatch, help, footer and `docs/reference/keys.md` are made from it.

use std::fmt;

use crossterm::event::KeyCode;
use tui_input::InputRequest;

use super::{
    chord::Chord,
    listing::Movement,
    maintenance::MaintenanceOption,
    pane::{InputTarget, KeyFocus, Pane},
    pane_layout::{PaneMove, PaneSide, PaneSize},
    playback::SeekStep,
    preview::{PlanKind, PlanOption},
};
use kordon_core::plan::MetadataField;

/// An action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAction {
    Move(Movement),
    /// Focus the pane with this digit, from 1.
    Focus(usize),
    NextPane,
    PreviousPane,
    /// Go back to where the user was before, or forward again.
    PreviousPlace,
    NextPlace,
    Zoom,
    /// Make the focused pane larger or smaller.
    Resize(PaneSide, PaneSize),
    /// Move the focused pane to its next or previous place on the screen.
    MovePane(PaneMove),
    ResetLayout,
    FlipSort,
    /// Group the nodes by the next property: zone, pool, role, none.
    Group,
    /// Fold all groups of nodes, or all blocks of an object's YAML; unfold them when all are folded.
    FoldAll,
    /// Fold the YAML block around the selected line, or unfold it.
    Fold,
    /// Go to the next line of an object's YAML that matches the search, or to the previous one.
    NextMatch,
    PreviousMatch,
    Filter,
    Enter,
    Detail,
    /// Switch a detail between its summary and the object's YAML, or a plan between its rows and its diff.
    Yaml,
    /// Copy the name of the selected row, or the YAML or the command that is shown.
    Copy,
    Back,
    Wide,
    /// Cycle the horizon of the forecast.
    Horizon,
    Freeze,
    Theme,
    Help,
    Info,
    Timing,
    /// Open the list of the cluster's Events.
    Events,
    /// Show the waves of a maintenance of the marked or selected nodes.
    Maintenance,
    /// Mark the selected row, or unmark it.
    Mark,
    /// Mark every listed row, or unmark all of them when all are marked.
    MarkAll,
    /// Mark the rows from the row marked last to the selected one.
    MarkRange,
    /// Open a plan for the marked or selected rows.
    Plan(PlanKind),
    /// Change an option of the open plan.
    Toggle(PlanOption),
    /// Change an option of the maintenance sheet.
    Maintain(MaintenanceOption),
    Redraw,
    Suspend,
    Quit,
    /// Edit the text that is being typed.
    Edit(InputRequest),
    /// Complete the typed text with the chosen proposal.
    Complete,
    /// Choose the next item of the open overlay: a completion, a command, a theme or an answer.
    ChooseNext,
    ChoosePrevious,
    KeepFilter,
    /// Keep the theme under the cursor in the list of themes.
    KeepTheme,
    /// Keep the typed taints, labels or annotations.
    KeepEdits,
    /// Open the line in which commands are typed.
    Palette,
    RunCommand,
    /// A command without a key: it takes an argument, or must not run by accident.
    Typed(TypedCommand),
    /// Apply the open plan.
    Apply,
    /// Give the chosen or typed answer to the open dialog.
    Answer,
    /// Show the progress of the running operation. If progress is already shown, show the progress of the operation
    /// before the shown one.
    Progress,
    /// Pause or resume the shown operation or the playback.
    Pause,
    /// Go to another moment of the playback.
    Seek(SeekStep),
    Faster,
    Slower,
    Cancel,
    /// Undo the shown operation, the interrupted drain, or the last operation.
    Undo,
    Resume,
    Dismiss,
    /// Go to the next step of the tour, or end it after the last.
    NextStep,
    PreviousStep,
}

impl UserAction {
    /// Whether the action controls the playback of a recording or of the history.
    pub const fn is_of_playback(self) -> bool {
        matches!(self, Self::Pause | Self::Seek(_) | Self::Faster | Self::Slower)
    }
}

/// A command that is typed, with or without an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedCommand {
    Enforce,
    DryRun,
    Reason,
    Until,
    Within,
    Theme,
    Group,
    /// Show a saved view.
    View,
    /// Save the shown list as a view.
    SaveView,
    /// Save the sizes and places of the panes.
    SaveLayout,
    /// Go to another context.
    Context,
    Zone,
    Namespace,
    /// Show the nodes themselves, not what takes their place.
    Nodes,
    /// Show the pods of the named node, or of the selected one.
    Pods,
    /// Sort by the named column, or by the next column if none is named.
    Sort,
    At,
    Speed,
    Save,
    /// Write all rows of the focused list, or the whole screen, to a file.
    Export,
    NotifyTest,
    /// Start the tour.
    Tour,
}

/// A row of the command table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub name: &'static str,
    /// Description in one sentence, for help and docs.
    pub doc: &'static str,
    /// Footer text of one or two words; empty if the footer does not show the command.
    pub hint: &'static str,
    /// Keys that run the command in the default preset; empty for a command that can only be typed.
    pub keys: &'static [Chord],
    /// Argument of a typed command, as in `[LIFETIME]`; `None` for commands that take no argument.
    pub takes: Option<&'static str>,
    pub context: KeyContext,
    pub danger: Danger,
    pub action: UserAction,
    /// What the typed name does, with any focus; `None` if it does the same as the key.
    pub when_typed: Option<TypedCommand>,
}

/// Where a command applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyContext {
    Everywhere,
    /// The command applies everywhere, even while text is typed, unless its key types a character.
    Always,
    /// The command applies while one of these panes has the focus.
    In(&'static [Pane]),
    /// The command applies in the maintenance sheet, and while one of these panes has the focus.
    Maintenance(&'static [Pane]),
    /// The command applies while any text is typed.
    Typing,
    /// The command applies while text is typed into this input.
    TypingOf(InputTarget),
    /// The command applies while the tour is shown.
    Tour,
}

/// Consequences of a command beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// The command changes nothing beyond the screen.
    Harmless,
    /// The command ends or suspends the program; the cluster is not affected.
    Leaves,
    /// The command allows plans to be applied.
    Unlocks,
    /// The command leads to writes to the cluster, after a confirmation.
    Writes,
}

const fn key(code: KeyCode) -> Chord {
    Chord::key(code)
}

const fn char(letter: char) -> Chord {
    Chord::letter(letter)
}

const fn ctrl(letter: char) -> Chord {
    Chord::ctrl(letter)
}

/// Declares a harmless command that applies everywhere.
const fn view(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: UserAction,
) -> Command {
    let (context, danger) = (KeyContext::Everywhere, Danger::Harmless);
    Command { name, doc, hint, keys, takes: None, context, danger, action, when_typed: None }
}

const fn typing(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    action: UserAction,
) -> Command {
    Command { context: KeyContext::Typing, ..view(name, doc, hint, keys, action) }
}

/// Declares a command that opens a plan. The command's name is also its footer text.
const fn plan(
    panes: &'static [Pane],
    name: &'static str,
    doc: &'static str,
    keys: &'static [Chord],
    kind: PlanKind,
) -> Command {
    let takes = match kind {
        PlanKind::Evict | PlanKind::Delete => "[POD…]",
        _ => "[NODE…]",
    };
    view(name, doc, name, keys, UserAction::Plan(kind)).within(panes).takes(takes)
}

/// Declares a command that changes an option of a plan.
const fn option(
    name: &'static str,
    doc: &'static str,
    keys: &'static [Chord],
    option: PlanOption,
) -> Command {
    view(name, doc, "", keys, UserAction::Toggle(option)).within(&[Pane::Plan])
}

/// Declares a command that changes an option of the maintenance sheet.
const fn maintain(
    name: &'static str,
    doc: &'static str,
    keys: &'static [Chord],
    option: MaintenanceOption,
) -> Command {
    view(name, doc, "", keys, UserAction::Maintain(option)).in_maintenance(&[])
}

/// Declares a command that goes to another moment of the playback.
const fn seek(
    name: &'static str,
    doc: &'static str,
    hint: &'static str,
    keys: &'static [Chord],
    step: SeekStep,
) -> Command {
    view(name, doc, hint, keys, UserAction::Seek(step))
}

/// Declares a command that has no key.
const fn typed_only(
    name: &'static str,
    takes: &'static str,
    doc: &'static str,
    command: TypedCommand,
) -> Command {
    Command { takes: Some(takes), ..view(name, doc, "", &[], UserAction::Typed(command)) }
}

impl Command {
    const fn within(self, panes: &'static [Pane]) -> Self {
        Self { context: KeyContext::In(panes), ..self }
    }

    /// Makes the command apply in the maintenance sheet and in these panes only.
    const fn in_maintenance(self, panes: &'static [Pane]) -> Self {
        Self { context: KeyContext::Maintenance(panes), ..self }
    }

    const fn always(self) -> Self {
        Self { context: KeyContext::Always, ..self }
    }

    /// Makes the command take an argument when it is typed.
    const fn takes(self, takes: &'static str) -> Self {
        Self { takes: Some(takes), ..self }
    }

    /// Makes the typed name do something else than the key. It then applies with any focus.
    const fn when_typed(self, typed: TypedCommand) -> Self {
        Self { when_typed: Some(typed), ..self }
    }

    const fn while_typing(self, target: InputTarget) -> Self {
        Self { context: KeyContext::TypingOf(target), ..self }
    }

    const fn in_tour(self) -> Self {
        Self { context: KeyContext::Tour, ..self }
    }

    /// Whether the command can be run from the palette.
    pub(super) fn is_typed(&self) -> bool {
        let needs_overlay =
            matches!(self.context, KeyContext::Typing | KeyContext::TypingOf(_) | KeyContext::Tour);
        !needs_overlay && self.name != "palette"
    }

    /// Whether the command must be typed in full, so that it cannot be chosen by mistake.
    pub(super) const fn is_guarded(&self) -> bool {
        matches!(self.danger, Danger::Unlocks)
    }

    /// Whether the command takes an argument when it is typed.
    pub(super) fn takes_argument(&self) -> bool {
        self.takes.is_some_and(|takes| !takes.is_empty())
    }

    const fn with_danger(self, danger: Danger) -> Self {
        Self { danger, ..self }
    }

    const fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

const ESC: &[Chord] = &[key(KeyCode::Esc)];

/// Panes in which commands apply to nodes: to the marked nodes, to the selected node, or to the node whose pods or
/// detail are shown.
const NODES: &[Pane] = &[Pane::Nodes, Pane::Pods, Pane::Detail];
/// Panes from which the failure of nodes, or of whole zones, can be predicted.
const FAILING: &[Pane] = &[Pane::Nodes, Pane::Pods, Pane::Detail, Pane::Zones, Pane::Forecast];
/// Panes in which commands apply to pods.
const PODS: &[Pane] = &[Pane::Pods, Pane::Detail, Pane::Evictions];
/// Panes in which rows can be marked.
const MARKED: &[Pane] = &[Pane::Nodes, Pane::Pods];

const MARK: &str = "Mark the selected row for the next plan, or unmark it.";
const MARK_ALL: &str = "Mark all shown rows, or unmark them if all are marked.";

/// Argument of commands that focus or filter a pane: a filter of the pane's rows.
const FILTER: &str = "[FILTER]";

const ENTER: &[Chord] = &[key(KeyCode::Enter)];

/// Every command, in the order of help and docs.
#[rustfmt::skip]
pub const COMMANDS: &[Command] = &[
    view("down", "Select the next row.", "", &[key(KeyCode::Down), char('j')], UserAction::Move(Movement::Down)),
    view("up", "Select the previous row.", "", &[key(KeyCode::Up), char('k')], UserAction::Move(Movement::Up)),
    view("page-down", "Go down a page.", "", &[key(KeyCode::PageDown), ctrl('f')], UserAction::Move(Movement::PageDown)),
    view("page-up", "Go up a page.", "", &[key(KeyCode::PageUp), ctrl('b')], UserAction::Move(Movement::PageUp)),
    view("half-page-down", "Go down half a page.", "", &[ctrl('d')], UserAction::Move(Movement::HalfPageDown)),
    view("half-page-up", "Go up half a page.", "", &[ctrl('u')], UserAction::Move(Movement::HalfPageUp)),
    view("first", "Go to the first row.", "", &[char('g'), key(KeyCode::Home)], UserAction::Move(Movement::First)),
    view("last", "Go to the last row.", "", &[key(KeyCode::End)], UserAction::Move(Movement::Last)),
    view("next-pane", "Focus the next pane.", "pane", &[key(KeyCode::Tab)], UserAction::NextPane),
    view("previous-pane", "Focus the previous pane.", "", &[key(KeyCode::BackTab)], UserAction::PreviousPane),
    view("previous-place", "Go back to where you were before: a pane, a node's pods, a detail.",
        "", &[Chord::alt(KeyCode::Left), ctrl('o')], UserAction::PreviousPlace),
    view("next-place", "Go forward again.", "", &[Chord::alt(KeyCode::Right)], UserAction::NextPlace),
    view("zones", "Focus the zones.", "", &[char('1')], UserAction::Focus(1)).takes(FILTER),
    view("nodes", "Focus the nodes, or the pods of a node.", "", &[char('2')], UserAction::Focus(2))
        .takes(FILTER).when_typed(TypedCommand::Nodes),
    view("evictions", "Focus the evictions.", "", &[char('3')], UserAction::Focus(3)).takes(FILTER),
    view("forecast", "Focus the forecast.", "", &[char('4')], UserAction::Focus(4)).takes(FILTER),
    view("journal", "Focus the journal.", "", &[char('5')], UserAction::Focus(5)).takes(FILTER),
    view("pending", "Focus the pods that wait for a node.", "", &[char('6')], UserAction::Focus(6)).takes(FILTER),
    view("departures", "Focus the pods that left.", "", &[char('7')], UserAction::Focus(7)).takes(FILTER),
    view("budgets", "Focus the budgets.", "", &[char('8')], UserAction::Focus(8)).takes(FILTER),
    view("audit", "Focus the audit: which drains would be held up, and what would be lost.", "", &[char('9')], UserAction::Focus(9)).takes(FILTER),
    view("events", "List the Events of the whole cluster, the newest first; they are read while the list is open.",
        "", &[], UserAction::Events).takes(FILTER),
    view("filter-zone", "Show only the nodes of the selected zone.",
        "its nodes", ENTER, UserAction::Enter).within(&[Pane::Zones]),
    view("pods", "Show the pods of the selected node; with a name, those of this node, or of the node of a pod like it.",
        "pods", ENTER, UserAction::Enter).within(&[Pane::Nodes]).takes("[NAME]").when_typed(TypedCommand::Pods),
    view("next-grouping", "Group the nodes by zone, pool, role, or not; `Enter` folds the selected group.",
        "group", &[char('G')], UserAction::Group).within(&[Pane::Nodes]),
    view("fold", "Fold all groups of nodes, or all blocks of the YAML; or unfold them.",
        "", &[char('F')], UserAction::FoldAll).within(&[Pane::Nodes, Pane::Detail]),
    view("predicted-node", "Show the node of the selected lane and its pods, or the nodes of its zone.",
        "node", ENTER, UserAction::Enter).within(&[Pane::Forecast]),
    view("horizon", "Change how far the forecast looks ahead: 10 min, 30 min, 2 h.",
        "10m 30m 2h", &[char('h')], UserAction::Horizon).within(&[Pane::Forecast]),
    view("entry-detail", "Show everything about the node or pod of the selected entry.",
        "detail", ENTER, UserAction::Detail).within(&[Pane::Journal, Pane::Departures, Pane::Events, Pane::Audit]),
    view("node-of-pod", "Show the node of the selected pod and its pods.",
        "node", ENTER, UserAction::Enter).within(&[Pane::Evictions]),
    view("pod-detail", "Show everything about the selected pod.",
        "detail", ENTER, UserAction::Detail).within(&[Pane::Pods, Pane::Pending]),
    view("budget-detail", "Show everything about the selected budget: the drains that it holds up, and what would help.",
        "detail", ENTER, UserAction::Detail).within(&[Pane::Budgets]),
    view("open-plan", "Show the plan of the selected action.", "plan", ENTER, UserAction::Enter).within(&[Pane::Detail]),
    view("copy", "Copy the name of the selected object, its YAML where that is shown, or the command of a plan (OSC 52).",
        "", &[char('Y')], UserAction::Copy).takes("[row|all|COLUMN]"),
    typed_only("export", "[FILE]", "Write the rows of the focused pane (CSV, Markdown, JSON) or the screen (SVG, text, ANSI) to a new file, by its extension.",
        TypedCommand::Export),
    view("yaml", "Show the object as YAML, or close that.", "yaml", &[char('y')], UserAction::Yaml).within(&[Pane::Detail]),
    view("fold-block", "In the YAML, fold the block of the selected line, or unfold it.",
        "fold", &[char(' ')], UserAction::Fold).within(&[Pane::Detail]),
    view("next-match", "In the YAML, go to the next line that matches what `/` searches.",
        "match", &[char('n')], UserAction::NextMatch).within(&[Pane::Detail]),
    view("previous-match", "In the YAML, go to the previous line that matches.",
        "", &[char('N')], UserAction::PreviousMatch).within(&[Pane::Detail]),
    view("object", "Show the selected node, pod or budget as YAML.",
        "", &[char('y')], UserAction::Yaml).within(&[Pane::Nodes, Pane::Pods, Pane::Pending, Pane::Budgets, Pane::Audit]),
    view("diff", "Show what the plan changes in each object, as a diff of its YAML, or close that.",
        "diff", &[char('y')], UserAction::Yaml).within(&[Pane::Plan]),
    view("edit", "Edit the taints, labels or annotations again.", "", ENTER, UserAction::Enter).within(&[Pane::Plan]),
    view("mark", MARK, "mark", &[char(' ')], UserAction::Mark).within(MARKED),
    view("mark-all", MARK_ALL, "", &[char('M')], UserAction::MarkAll).within(MARKED),
    view("mark-range", "Mark the rows from the one marked last to the selected one; where none is marked, start a range.",
        "", &[char('v')], UserAction::MarkRange).within(MARKED),
    plan(NODES, "cordon", "Plan to cordon the marked nodes, or the selected one.", &[char('c')], PlanKind::Cordon),
    plan(NODES, "uncordon", "Plan to uncordon the marked nodes, or the selected one.",
        &[char('u')], PlanKind::Uncordon).with_hint(""),
    plan(NODES, "drain", "Plan to drain the marked nodes, or the selected one.", &[char('r')], PlanKind::Drain),
    view("maintenance", "Show in which waves the marked nodes would be maintained, or how far a maintenance is; or close that.",
        "", &[char('m')], UserAction::Maintenance),
    plan(NODES, "taint", "Plan to taint the marked nodes, or the selected one.", &[char('t')], PlanKind::Taint),
    plan(NODES, "labels", "Plan to label the marked nodes, or the selected one.", &[char('l')], PlanKind::Metadata(MetadataField::Labels)).with_hint(""),
    plan(NODES, "annotations", "Plan to annotate the marked nodes, or the selected one.",
        &[char('@')], PlanKind::Metadata(MetadataField::Annotations)).with_hint(""),
    plan(NODES, "delete-node", "Plan to delete the Node objects of the marked nodes, or of the selected one.",
        &[], PlanKind::DeleteNode).with_hint(""),
    plan(FAILING, "what-if", "Predict what follows if these nodes, or their zones, fail.", &[char('x')], PlanKind::Failure),
    plan(PODS, "evict", "Plan to evict the marked pods, or the selected one.", &[char('e')], PlanKind::Evict),
    plan(PODS, "delete", "Plan to delete the marked pods, or the selected one.", &[key(KeyCode::Delete)], PlanKind::Delete),
    option("ignore-daemonsets", "Drain: leave the pods of DaemonSets alone.", &[char('D')], PlanOption::IgnoreDaemonsets),
    option("delete-emptydir-data", "Drain: include pods with emptyDir volumes, whose data is lost.",
        &[char('E')], PlanOption::DeleteEmptydirData).in_maintenance(&[Pane::Plan]),
    option("force", "Drain: include pods that no controller recreates.",
        &[char('F')], PlanOption::Force).in_maintenance(&[Pane::Plan]),
    option("disable-eviction", "Drain: delete pods instead of evicting them; ignores budgets.",
        &[char('B')], PlanOption::DisableEviction),
    option("surge", "Drain: scale up Deployments whose budgets can never allow an eviction, until their pods have left.",
        &[char('V')], PlanOption::Surge).in_maintenance(&[Pane::Plan]),
    option("grace-period", "Change the grace period of the pods.", &[char('P')], PlanOption::Grace).takes("[SECONDS]"),
    option("parallel", "Drain: change how many nodes are drained at a time.",
        &[char('N')], PlanOption::Parallel).in_maintenance(&[Pane::Plan]).takes("[NODES]"),
    option("pod-selector", "Drain: type the labels of the pods that leave; all others stay.",
        &[char('L')], PlanOption::PodSelector).takes("[SELECTOR]"),
    option("timeout", "Type how long the drain of each node, or the removal of the pods, may take.",
        &[char('I')], PlanOption::Timeout).takes("[SPAN]"),
    option("skip-wait-for-delete-timeout", "Drain: type for how many seconds a deleted pod is waited for, since its deletion.",
        &[char('W')], PlanOption::SkipWaitForDelete).takes("[SECONDS]"),
    option("overwrite", "Taints, labels, annotations: allow changing existing ones.", &[char('O')], PlanOption::Overwrite),
    option("whole-zones", "What-if: fail the whole zones of the nodes.", &[char('Z')], PlanOption::WholeZones),
    maintain("exec", "Maintenance: type the command that does the work on an empty node.",
        &[char('x')], MaintenanceOption::Exec).takes("[COMMAND]"),
    maintain("wait-for", "Maintenance: type what shows that others have done the work: boot, kubelet, no-taint=KEY and others.",
        &[char('W')], MaintenanceOption::WaitFor).takes("[WHAT]"),
    maintain("max-per-zone", "Maintenance: type how many nodes of a zone may be down at a time.",
        &[char('Z')], MaintenanceOption::MaxPerZone).takes("[NODES]"),
    maintain("work-takes", "Maintenance: type how long the work on an empty node is expected to take.",
        &[char('t')], MaintenanceOption::WorkTakes).takes("[SPAN]"),
    maintain("settle", "Maintenance: type how long a node has to be well before it counts as done.",
        &[char('I')], MaintenanceOption::Settle).takes("[SPAN]"),
    maintain("allow-pending", "Maintenance: include nodes whose pods find no other node; these wait until theirs is back.",
        &[char('P')], MaintenanceOption::AllowPending),
    maintain("window", "Maintenance: type at which times of day waves may run.",
        &[char('D')], MaintenanceOption::Window).takes("[FROM-TO ZONE]"),
    maintain("max-duration", "Maintenance: type how long all waves may take.", &[], MaintenanceOption::MaxDuration).takes("[SPAN]"),
    maintain("control-planes-together", "Maintenance: let control plane nodes be in a wave together.",
        &[], MaintenanceOption::ControlPlanesTogether).takes(""),
    maintain("allow-worse-loss", "Maintenance: include nodes after which the loss of a node or zone would strand more pods.",
        &[], MaintenanceOption::AllowWorseLoss).takes(""),
    maintain("gate", "Maintenance: type a command that has to succeed between waves.", &[], MaintenanceOption::Gate).takes("[COMMAND]"),
    maintain("without-gate", "Maintenance: type the gates between waves to leave out.",
        &[], MaintenanceOption::WithoutGate).takes("[GATES]"),
    maintain("gate-timeout", "Maintenance: type how long a gate is waited for.", &[], MaintenanceOption::GateTimeout).takes("[SPAN]"),
    maintain("drain-timeout", "Maintenance: type how long the drain of a node may take.",
        &[], MaintenanceOption::DrainTimeout).takes("[SPAN]"),
    maintain("work-timeout", "Maintenance: type how long the work on a node may take.",
        &[], MaintenanceOption::WorkTimeout).takes("[SPAN]"),
    maintain("on-failure", "Maintenance: type what happens to nodes that are not drained when something fails.",
        &[], MaintenanceOption::OnFailure).takes("[pause|rollback]"),
    view("apply", "Apply the plan, or carry out the maintenance, after a confirmation; in enforce only.",
        "apply", &[char('A')], UserAction::Apply).in_maintenance(&[Pane::Plan]).with_danger(Danger::Writes),
    view("pause", "Pause the recording, history or operation that is shown, or resume it.",
        "pause", &[char('p')], UserAction::Pause),
    view("cancel", "Cancel the operation, after a confirmation.",
        "cancel", &[char('C')], UserAction::Cancel).in_maintenance(&[Pane::Progress]),
    seek("rewind", "Go back 10 seconds.", "-10s", &[key(KeyCode::Left)], SeekStep::By(-10)),
    seek("forward", "Go forward 10 seconds.", "+10s", &[key(KeyCode::Right)], SeekStep::By(10)),
    seek("rewind-minute", "Go back a minute.", "", &[char(',')], SeekStep::By(-60)),
    seek("forward-minute", "Go forward a minute.", "", &[char('.')], SeekStep::By(60)),
    seek("rewind-ten-minutes", "Go back 10 minutes.", "", &[char('{')], SeekStep::By(-600)),
    seek("forward-ten-minutes", "Go forward 10 minutes.", "", &[char('}')], SeekStep::By(600)),
    seek("previous-moment", "Go to the previous notable moment.", "", &[char('[')], SeekStep::PreviousMoment),
    seek("next-moment", "Go to the next notable moment: a node or zone changed, pods were evicted, the connection broke.",
        "next moment", &[char(']')], SeekStep::NextMoment),
    seek("start", "Go to the start of the recording or history.", "", &[char('0')], SeekStep::Start),
    seek("end", "Go to the end of the recording or history.", "", &[char('$')], SeekStep::End),
    view("slower", "Let time pass slower in it.", "", &[char('<')], UserAction::Slower),
    view("faster", "Let time pass faster in it.", "faster", &[char('>')], UserAction::Faster),
    typed_only("at", "[TIME]", "Go to a moment of the recording or history: 03:12:45, 12m from its start, or -30s from its end.",
        TypedCommand::At),
    typed_only("speed", "[FACTOR]", "Set how fast time passes in it, such as 10x.", TypedCommand::Speed),
    typed_only("save", "[FILE]", "Save the history as a recording, for kordon replay and report; the file must not exist.",
        TypedCommand::Save),
    view("progress", "Show the running operation; again, the one before it.", "", &[char('o')], UserAction::Progress),
    view("undo", "Undo the last or interrupted operation, or on its sheet end the stopped maintenance, after a confirmation.",
        "", &[char('U')], UserAction::Undo).with_danger(Danger::Writes),
    view("resume", "Resume the interrupted drain, or on its sheet the stopped maintenance, after a confirmation.",
        "", &[char('R')], UserAction::Resume).with_danger(Danger::Writes),
    view("dismiss", "Leave the interrupted drain as it is.", "", &[char('X')], UserAction::Dismiss),
    typed_only("enforce", "[LIFETIME]", "Allow plans to be applied, for 15m or the given time; then it is dry-run again.",
        TypedCommand::Enforce).with_danger(Danger::Unlocks),
    typed_only("dry-run", "", "Start no more operations that write.", TypedCommand::DryRun),
    typed_only("reason", "[WORDS]", "Set the reason of the next operations, for others to read on the nodes and in the journal.",
        TypedCommand::Reason),
    typed_only("until", "[SPAN]", "Set how long the next cordons are expected to last, for others to read.", TypedCommand::Until),
    typed_only("within", "[SPAN]", "Set how long the next operations may take in total.", TypedCommand::Within),
    typed_only("theme", "[NAME]", "Change to a theme by its name: nord, solarized-light, …; without one, choose by sight.",
        TypedCommand::Theme),
    typed_only("context", "[NAME]", "Go to another context of the kubeconfig; without a name, list them.", TypedCommand::Context),
    typed_only("view", "[NAME]", "Show a saved view of the configuration; without a name, list them.", TypedCommand::View),
    typed_only("save-view", "[NAME]", "Keep the focused list with its filter, order and grouping as a view of the configuration.",
        TypedCommand::SaveView),
    typed_only("save-layout", "", "Keep the sizes and places of the panes in the configuration.", TypedCommand::SaveLayout),
    typed_only("zone", "[ZONE]", "Show only the nodes of a zone; without one, all nodes.", TypedCommand::Zone),
    typed_only("namespace", "[NAME]", "Show only the pods and budgets of a namespace; without one, of all.",
        TypedCommand::Namespace),
    typed_only("notify-test", "", "Send a notice to everyone whom [notify] of the configuration names.", TypedCommand::NotifyTest),
    typed_only("group", "[LABEL]", "Group the nodes by a label; without one, no longer group them.", TypedCommand::Group),
    typed_only("tour", "", "Explain the screen in six steps.", TypedCommand::Tour),
    view("palette", "Type a command, or find one by words.", "command", &[char(':')], UserAction::Palette),
    view("detail", "Show everything about the selected node, pod or budget, the cause of its state first.",
        "why", &[char('d')], UserAction::Detail),
    view("back", "Go back one step: close help, clear the filter, close a detail, plan or progress, clear the marks, leave a node, end the zoom.",
        "back", &[key(KeyCode::Esc)], UserAction::Back),
    view("filter", "Filter the focused pane: words, `!word`, `/regex/`, `~fuzzy`, `zone:a`, `taint=*NoExecute`, `age<2h`, `cpu>80%`.",
        "filter", &[char('/')], UserAction::Filter).takes(FILTER),
    view("sort", "Sort the focused pane by the next column; a letter that follows names one.",
        "sort", &[char('s')], UserAction::Typed(TypedCommand::Sort)).takes("[COLUMN]"),
    view("sort-direction", "Reverse the order.", "", &[char('S')], UserAction::FlipSort),
    view("zoom", "Zoom the focused pane to the whole screen, or back.", "zoom", &[char('z')], UserAction::Zoom),
    view("pane-taller", "Make the focused pane higher.",
        "", &[Chord::ctrl_key(KeyCode::Up), Chord::alt(KeyCode::Char('=')), Chord::alt(KeyCode::Char('+'))],
        UserAction::Resize(PaneSide::Height, PaneSize::Larger)),
    view("pane-shorter", "Make the focused pane lower.",
        "", &[Chord::ctrl_key(KeyCode::Down), Chord::alt(KeyCode::Char('-'))],
        UserAction::Resize(PaneSide::Height, PaneSize::Smaller)),
    view("pane-wider", "Make the focused pane wider.",
        "", &[Chord::ctrl_key(KeyCode::Right), Chord::alt(KeyCode::Char('>'))],
        UserAction::Resize(PaneSide::Width, PaneSize::Larger)),
    view("pane-narrower", "Make the focused pane narrower.",
        "", &[Chord::ctrl_key(KeyCode::Left), Chord::alt(KeyCode::Char('<'))],
        UserAction::Resize(PaneSide::Width, PaneSize::Smaller)),
    view("move-pane-left", "Move the focused pane to the column on its left, or from the first one above the nodes.",
        "", &[Chord::alt(KeyCode::Up), Chord::alt(KeyCode::Char('i'))], UserAction::MovePane(PaneMove::Back)),
    view("move-pane-right", "Move the focused pane to the column on its right, or from above the nodes to the first one.",
        "", &[Chord::alt(KeyCode::Down), Chord::alt(KeyCode::Char('o'))], UserAction::MovePane(PaneMove::On)),
    view("reset-layout", "Give all panes the sizes and places that the configuration has.",
        "", &[char('=')], UserAction::ResetLayout),
    view("wide", "Show more columns, or fewer.", "wide", &[char('w')], UserAction::Wide),
    view("freeze", "Freeze the screen, to go back in its history; or resume it.", "freeze", &[char('f')], UserAction::Freeze),
    view("next-theme", "Change to the next theme.", "theme", &[char('T')], UserAction::Theme),
    view("info", "Show connection, controller, settings and watches, or close them.", "", &[char('i')], UserAction::Info),
    view("timing", "Show how soon a dead node is noticed, here and with other profiles, or close that.",
        "", &[char('a')], UserAction::Timing),
    view("help", "Show the keys, what applies here first, or close that; `/` searches.", "help", &[char('?')], UserAction::Help),
    view("next-step", "Go to the next step of the tour; after the last, end it.",
        "next", &[key(KeyCode::Enter), char('n')], UserAction::NextStep).in_tour(),
    view("previous-step", "Go to the previous step of the tour.",
        "back", &[char('p'), key(KeyCode::Backspace)], UserAction::PreviousStep).in_tour(),
    view("end-tour", "End the tour.", "end", ESC, UserAction::Back).in_tour(),
    view("redraw", "Draw the whole screen again.", "", &[ctrl('l')], UserAction::Redraw).always(),
    view("suspend", "Suspend the program; `fg` resumes it.", "", &[ctrl('z')], UserAction::Suspend).always().with_danger(Danger::Leaves),
    view("quit", "Quit.", "quit", &[char('q'), ctrl('c')], UserAction::Quit).always().with_danger(Danger::Leaves),
    typing("keep-filter", "Keep the filter; the first row that passes is selected, unless the selected one passes.",
        "keep", ENTER, UserAction::KeepFilter).while_typing(InputTarget::Filter),
    typing("drop-filter", "Clear the filter and go back to the list.",
        "clear", ESC, UserAction::Back).while_typing(InputTarget::Filter),
    typing("complete-field", "Complete the name of a field or label, or its value; again, with the next candidate.",
        "complete", &[key(KeyCode::Tab)], UserAction::Complete).while_typing(InputTarget::Filter),
    typing("complete", "Complete the word as proposed.",
        "complete", &[key(KeyCode::Tab)], UserAction::Complete).while_typing(InputTarget::Edits),
    typing("next-proposal", "Choose the next proposal.",
        "next", &[key(KeyCode::Down)], UserAction::ChooseNext).while_typing(InputTarget::Edits),
    typing("keep-text", "Keep the text and go to the plan.",
        "to the plan", ENTER, UserAction::KeepEdits).while_typing(InputTarget::Edits),
    typing("leave-plan", "Close the plan, or the line of an option.", "back", ESC, UserAction::Back).while_typing(InputTarget::Edits),
    typing("run", "Run the command that the text names, or the chosen one.", "run", ENTER, UserAction::RunCommand).while_typing(InputTarget::Command),
    typing("complete-name", "Complete the name.",
        "complete", &[key(KeyCode::Tab)], UserAction::Complete).while_typing(InputTarget::Command),
    typing("next-command", "Choose the next command.",
        "next", &[key(KeyCode::Down)], UserAction::ChooseNext).while_typing(InputTarget::Command),
    typing("previous-command", "Choose the previous command.",
        "", &[key(KeyCode::Up)], UserAction::ChoosePrevious).while_typing(InputTarget::Command),
    typing("close", "Close the line.", "close", ESC, UserAction::Back).while_typing(InputTarget::Command),
    typing("answer", "Give the chosen or typed answer.", "answer", ENTER, UserAction::Answer).while_typing(InputTarget::Answer),
    typing("other-answer", "Choose the next answer.",
        "other", &[key(KeyCode::Tab)], UserAction::ChooseNext).while_typing(InputTarget::Answer),
    typing("decline", "Close the question; nothing changes.", "back", ESC, UserAction::Back).while_typing(InputTarget::Answer),
    typing("keep-theme", "Keep the shown theme.", "keep", ENTER, UserAction::KeepTheme).while_typing(InputTarget::Theme),
    typing("next-in-list", "Show the next theme.",
        "next", &[key(KeyCode::Down)], UserAction::ChooseNext).while_typing(InputTarget::Theme),
    typing("previous-in-list", "Show the previous theme.",
        "", &[key(KeyCode::Up)], UserAction::ChoosePrevious).while_typing(InputTarget::Theme),
    typing("restore-theme", "Go back to the theme before.",
        "as before", ESC, UserAction::Back).while_typing(InputTarget::Theme),
    typing("delete-word", "Delete the word before the cursor.", "", &[ctrl('w')], UserAction::Edit(InputRequest::DeletePrevWord)),
    typing("delete-line", "Delete everything typed.", "", &[ctrl('u')], UserAction::Edit(InputRequest::DeleteLine)),
    typing("delete-left", "Delete the character before the cursor.",
        "", &[key(KeyCode::Backspace)], UserAction::Edit(InputRequest::DeletePrevChar)),
    typing("delete-right", "Delete the character under the cursor.",
        "", &[key(KeyCode::Delete)], UserAction::Edit(InputRequest::DeleteNextChar)),
    typing("left", "Go left.", "", &[key(KeyCode::Left)], UserAction::Edit(InputRequest::GoToPrevChar)),
    typing("right", "Go right.", "", &[key(KeyCode::Right)], UserAction::Edit(InputRequest::GoToNextChar)),
    typing("line-start", "Go to the start.", "", &[key(KeyCode::Home), ctrl('a')], UserAction::Edit(InputRequest::GoToStart)),
    typing("line-end", "Go to the end.", "", &[key(KeyCode::End), ctrl('e')], UserAction::Edit(InputRequest::GoToEnd)),
];

impl KeyContext {
    /// Whether keys run the commands of this key context while the focus is at `focus`.
    pub fn applies(self, focus: KeyFocus) -> bool {
        match (self, focus) {
            (Self::Everywhere | Self::Always, KeyFocus::Pane(_))
            | (Self::Typing, KeyFocus::Input(_))
            | (Self::Always | Self::Tour, KeyFocus::Tour) => true,
            (Self::In(panes) | Self::Maintenance(panes), KeyFocus::Pane(pane)) => panes.contains(&pane),
            (Self::Everywhere | Self::Always | Self::Maintenance(_), KeyFocus::Maintenance) => true,
            (Self::TypingOf(own), KeyFocus::Input(target)) => own == target,
            (
                Self::Everywhere | Self::Always | Self::In(_) | Self::Maintenance(_) | Self::Tour,
                KeyFocus::Input(_),
            )
            | (Self::Typing | Self::TypingOf(_) | Self::Tour, KeyFocus::Pane(_))
            | (Self::In(_) | Self::Typing | Self::TypingOf(_) | Self::Tour, KeyFocus::Maintenance)
            | (
                Self::Everywhere | Self::In(_) | Self::Maintenance(_) | Self::Typing | Self::TypingOf(_),
                KeyFocus::Tour,
            ) => false,
        }
    }

    /// Whether both key contexts can apply at the same focus, so that `chord` would run two commands.
    pub(super) fn overlaps(self, other: Self, chord: Chord) -> bool {
        let is_typing = |context| matches!(context, Self::Typing | Self::TypingOf(_));
        match (self, other) {
            (Self::Tour, other) | (other, Self::Tour) => matches!(other, Self::Tour | Self::Always),
            (Self::TypingOf(one), Self::TypingOf(other)) => one == other,
            (Self::In(one), Self::In(other) | Self::Maintenance(other))
            | (Self::Maintenance(one), Self::In(other)) => one.iter().any(|pane| other.contains(pane)),
            (Self::Always, context) | (context, Self::Always) if is_typing(context) => {
                chord.typed().is_none()
            }
            (one, other) => is_typing(one) == is_typing(other),
        }
    }
}

impl fmt::Display for KeyContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everywhere | Self::Always => f.write_str("everywhere"),
            Self::In(panes) => {
                f.write_str("in the ")?;
                write_panes(panes, f)
            }
            Self::Maintenance([]) => f.write_str("in the maintenance sheet"),
            Self::Maintenance(panes) => {
                f.write_str("in the maintenance sheet, ")?;
                write_panes(panes, f)
            }
            Self::Tour => f.write_str("in the tour"),
            Self::Typing => f.write_str("while anything is typed"),
            Self::TypingOf(InputTarget::Filter) => f.write_str("while a filter is typed"),
            Self::TypingOf(InputTarget::Edits) => f.write_str("while a text of a plan is typed"),
            Self::TypingOf(InputTarget::Command) => f.write_str("while a command is typed"),
            Self::TypingOf(InputTarget::Answer) => f.write_str("while a question is asked"),
            Self::TypingOf(InputTarget::Theme) => f.write_str("while a theme is chosen"),
        }
    }
}

fn write_panes(panes: &[Pane], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, pane) in panes.iter().enumerate() {
        f.write_str(if place == 0 { "" } else { ", " })?;
        f.write_str(&pane.title().to_lowercase())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (place, command) in COMMANDS.iter().enumerate() {
            let is_same = |other: &Command| other.name == command.name;
            assert!(!COMMANDS[place + 1..].iter().any(is_same), "{}", command.name);
        }
    }
}
