//! Commands that are typed with an argument: `drain n-3`, `pods n-3`, `pods web`, `nodes zone:a`.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    App, Pane, TakenAlong,
    commands::{COMMANDS, TypedCommand, UserAction},
    detail::DetailSubject,
    filter_fields::fields,
    maintenance::MaintenanceOption,
    preview::{PlanKind, PlanRequest, Targets},
};
use kordon_core::{
    cluster::{
        Key, NodeName, Pod,
        nearest::{did_you_mean, nearest_node, nearest_pod},
    },
    plan::words::counted,
};
use kordon_time::Timestamp;

/// Maximum number of names that are listed when a typed name is ambiguous.
const LISTED: usize = 6;

impl App {
    /// Runs a command with an argument.
    ///
    /// # Errors
    /// The command takes no argument, or the argument names something that does not exist.
    pub(super) fn run_with_argument(
        &mut self,
        action: UserAction,
        argument: &str,
        now: Timestamp,
    ) -> Result<(), String> {
        match action {
            UserAction::Plan(kind) => {
                let targets = self.named_targets(kind, argument)?;
                self.show_plan(PlanRequest::new(kind, targets));
            }
            UserAction::Focus(digit) => {
                let pane = digit.checked_sub(1).and_then(|place| self.screen.panes().get(place).copied());
                self.filter_pane(pane.unwrap_or_default(), argument, now);
            }
            UserAction::Events => self.filter_pane(Pane::Events, argument, now),
            UserAction::Filter => {
                let pane = self.screen.focus;
                self.screen.set_filter(pane, argument);
                self.arrange(now);
                let fault = self.filter_fault(pane);
                self.screen.keep_filter(fault);
            }
            UserAction::Enter => self.show_pods_of(argument, now)?,
            UserAction::Copy => {
                self.taken_along = Some(match argument {
                    "row" => TakenAlong::Row,
                    "all" => TakenAlong::Rows,
                    head => TakenAlong::Cell(head.into()),
                });
            }
            UserAction::Maintain(option) => self.set_maintenance(option, argument)?,
            UserAction::Toggle(option) if self.screen.shows_maintenance() => {
                let option =
                    MaintenanceOption::from_plan(option).ok_or("a maintenance has no such option")?;
                self.set_maintenance(option, argument)?;
            }
            UserAction::Toggle(option) => {
                let preview = self.screen.overlays.plan_mut().ok_or("there is no plan")?;
                preview.set_option(option, argument)?;
            }
            _ => return Err("this command takes no argument".into()),
        }
        Ok(())
    }

    /// Sets an option of the open maintenance sheet.
    ///
    /// # Errors
    /// No sheet is open, or the argument is not a valid value of the option.
    fn set_maintenance(&mut self, option: MaintenanceOption, argument: &str) -> Result<(), String> {
        let changed = self.screen.change_maintenance(|sheet| sheet.request.set(option, argument));
        changed.ok_or("the maintenance sheet is not open")?
    }

    /// Focuses a pane and sets its filter. To filter the nodes, closes the views that cover them. If the selected row
    /// does not pass the filter, the first row that does is selected.
    pub(super) fn filter_pane(&mut self, pane: Pane, filter: &str, now: Timestamp) {
        let pane = match pane {
            Pane::Events => {
                self.open_events();
                Pane::Events
            }
            Pane::Nodes | Pane::Pods | Pane::Detail | Pane::Plan | Pane::Progress => {
                self.screen.uncover_nodes();
                Pane::Nodes
            }
            pane => pane,
        };
        self.screen.focus_on(pane);
        self.screen.set_filter(pane, filter);
        self.arrange(now);
        self.screen.choose_first(pane);
        if let Some(fault) = self.filter_fault(pane) {
            self.screen.message = Some(fault);
        }
    }

    /// Shows the pods of a node. If the name is not that of a node, shows the node of a pod whose namespace and name
    /// contain it, and selects this pod. Without a name, shows the pods of the selected node.
    ///
    /// # Errors
    /// There is neither such a node nor such a pod on a node, or no node is selected.
    pub(super) fn show_pods_of(&mut self, name: &str, now: Timestamp) -> Result<(), String> {
        if name.is_empty() {
            return self.show_pods_here(now);
        }
        let missing = match self.named_node(name) {
            Ok(node) => {
                self.screen.show_pods(node);
                self.arrange(now);
                return Ok(());
            }
            Err(missing) => missing,
        };
        let mut found: Vec<&Arc<Pod>> = self.pods_like(name).collect();
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let pod = found.iter().find(|pod| *pod.key.name == *name).or(found.first()).ok_or(missing)?;
        let (node, key) = (pod.node.clone().unwrap_or_default(), pod.key.clone());
        if found.len() > 1 {
            let others = counted(found.len() - 1, "more pod has a name", "more pods have names");
            self.screen.message = Some(format!("{key}; {others} with {name}"));
        }
        self.screen.show_pods(node);
        self.arrange(now);
        self.screen.pods.list.select(&key);
        Ok(())
    }

    /// Shows the pods of the node whose pods or detail are open, or of the selected node.
    ///
    /// # Errors
    /// No node is selected.
    fn show_pods_here(&mut self, now: Timestamp) -> Result<(), String> {
        if self.screen.pods_of.is_some() {
            self.screen.overlays.close_views();
            self.screen.focus_on(Pane::Pods);
            return Ok(());
        }
        let of_detail = match self.screen.overlays.shown_detail().map(|detail| &detail.subject) {
            Some(DetailSubject::Node(node)) => Some(node),
            Some(DetailSubject::Pod(_) | DetailSubject::Budget(_)) | None => None,
        };
        let node = of_detail.or(self.screen.selected_node()).cloned();
        let node =
            node.ok_or("no node is selected: :pods NAME shows those of a node, kordon pods those of all")?;
        self.screen.show_pods(node);
        self.arrange(now);
        Ok(())
    }

    /// The pods on nodes whose namespace and name, as in `shop/web-1`, contain this text.
    pub(super) fn pods_like(&self, text: &str) -> impl Iterator<Item = &Arc<Pod>> {
        let pods = self.shown().cluster.pods().iter();
        pods.filter(move |pod| pod.node.is_some() && pod.key.to_string().contains(text))
    }

    fn named_targets(&self, kind: PlanKind, names: &str) -> Result<Targets, String> {
        let names = names.split([' ', ',']).filter(|name| !name.is_empty());
        Ok(match kind {
            PlanKind::Evict | PlanKind::Delete => {
                Targets::Pods(names.map(|name| self.named_pod(name)).collect::<Result<_, _>>()?)
            }
            _ => Targets::Nodes(names.map(|name| self.named_node(name)).collect::<Result<_, _>>()?),
        })
    }

    fn named_node(&self, name: &str) -> Result<NodeName, String> {
        let (cluster, name) = (&self.shown().cluster, NodeName::from(name));
        if cluster.node(&name).is_some() {
            return Ok(name);
        }
        Err(format!("there is no node {name}{}", did_you_mean(nearest_node(&name, cluster))))
    }

    /// Finds a pod by `namespace/name`, or by its name: first in the namespace `default`, then in all namespaces if
    /// only one has a pod of this name.
    fn named_pod(&self, name: &str) -> Result<Key, String> {
        let cluster = &self.shown().cluster;
        let (namespace, pod) = name.split_once('/').unwrap_or(("default", name));
        let key = Key::new(namespace, pod);
        if cluster.pod(&key).is_some() {
            return Ok(key);
        }
        let of_name = cluster.pods().iter().filter(|pod| !name.contains('/') && pod.key.name == *name);
        let found: Vec<&Key> = of_name.map(|pod| &pod.key).take(LISTED).collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(format!("there is no pod {name}{}", did_you_mean(nearest_pod(&key, cluster)))),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(format!("there are several: {}", names.join(", ")))
            }
        }
    }

    /// Completes the last word of the typed argument, as far as it is unambiguous. The footer lists the candidates.
    /// Returns whether the typed text has an argument.
    pub(super) fn complete_argument(&mut self) -> bool {
        let Some(palette) = self.screen.overlays.palette() else { return false };
        let text = palette.input.value().to_owned();
        let Some((head, arguments)) = text.split_once(char::is_whitespace) else { return false };
        let name = self.preferences.aliases.resolve(head);
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            // The text is a search, unless it begins with the start of a name.
            return COMMANDS.iter().any(|command| command.takes.is_some() && command.name.starts_with(&name));
        };
        let word = match command.action {
            // A column may have several words.
            UserAction::Typed(TypedCommand::Sort) => arguments.trim_start_matches(['-', ' ']),
            _ => arguments.rsplit([' ', ',']).next().unwrap_or_default(),
        };
        let shown = self.shown();
        let cluster = &shown.cluster;
        let names: Box<dyn Iterator<Item = String>> = match command.action {
            UserAction::Plan(PlanKind::Evict | PlanKind::Delete) => {
                Box::new(cluster.pods().iter().map(|pod| pod.key.to_string()))
            }
            UserAction::Plan(_) | UserAction::Enter => {
                Box::new(cluster.nodes().iter().map(|node| node.name.to_string()))
            }
            UserAction::Typed(TypedCommand::Theme) => {
                Box::new(self.screen.themes().iter().map(|theme| theme.name().to_owned()))
            }
            UserAction::Typed(TypedCommand::Context) => Box::new(self.contexts.iter().cloned()),
            UserAction::Typed(TypedCommand::View) => Box::new(self.preferences.views.keys().cloned()),
            UserAction::Typed(TypedCommand::Zone) => {
                let zones = shown.views.zones.iter();
                Box::new(zones.map(|zone| shown.watchlist.zone_names().short(&zone.key)))
            }
            UserAction::Typed(TypedCommand::Namespace) => {
                Box::new(self.namespaces().into_iter().map(str::to_owned))
            }
            UserAction::Typed(TypedCommand::Sort) => {
                let columns =
                    self.screen.sort(self.screen.focus).map(|sort| sort.columns()).unwrap_or_default();
                Box::new(columns.into_iter().map(|(title, _)| title.to_owned()))
            }
            UserAction::Typed(TypedCommand::Group) => {
                let labels = cluster.nodes().iter().flat_map(|node| node.labels.keys());
                let mut names: BTreeSet<String> = labels.map(ToString::to_string).collect();
                names.extend(["zone", "pool", "role"].map(str::to_owned));
                Box::new(names.into_iter())
            }
            UserAction::Focus(digit) => {
                // The nodes are filtered, also while something else takes their place.
                let place = digit.checked_sub(1).filter(|_| digit != 2);
                let pane = place.and_then(|place| self.screen.panes().get(place).copied());
                let names = fields(pane.unwrap_or_default()).iter().map(|field| field.name);
                Box::new(names.filter(|name| !name.starts_with('-')).map(|name| format!("{name}:")))
            }
            _ => return true,
        };
        let candidates: Vec<String> = names.filter(|name| name.starts_with(word)).collect();
        let Some(common) = common_start(&candidates) else { return true };
        let end = if candidates.len() == 1 && !common.ends_with(':') { " " } else { "" };
        let completed = format!("{}{common}{end}", &text[..text.len() - word.len()]);
        if let Some(palette) = self.screen.overlays.palette_mut() {
            palette.set_text(completed);
        }
        if candidates.len() > 1 {
            let more = if candidates.len() > LISTED { " …" } else { "" };
            self.screen.message = Some(candidates[..candidates.len().min(LISTED)].join(" ") + more);
        }
        true
    }
}

/// Longest common prefix of the texts; `None` without texts.
pub(super) fn common_start(texts: &[String]) -> Option<&str> {
    let (first, rest) = texts.split_first()?;
    let length = first.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let is_common = |end: &usize| rest.iter().all(|text| text.get(..*end) == Some(&first[..*end]));
    Some(&first[..length.take_while(is_common).last().unwrap_or(0)])
}
