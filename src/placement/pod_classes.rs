//! The pods of the cluster by what other pods can tell apart: their namespace and labels.

use std::{collections::BTreeMap, sync::Arc};

use super::ids::{Ids, address_of, address_of_name};
use crate::cluster::{Labels, Namespace, Pod, Selector};

/// All crowds, and how many of each are on which node.
///
/// The pods of one ReplicaSet are one crowd: selectors are matched with crowds, not with pods.
#[derive(Clone, Debug, Default)]
pub(super) struct PodClasses {
    all: Vec<Arc<PodClass>>,
    in_namespace: Arc<BTreeMap<Namespace, Vec<u32>>>,
    ids: Arc<CrowdIds>,
}

/// The pods of a namespace that have the same labels.
#[derive(Clone, Debug)]
pub(super) struct PodClass {
    pub namespace: Namespace,
    pub labels: Labels,
    /// Where they are, by node.
    pub on: Vec<Presence>,
}

/// How many of a crowd are on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Presence {
    pub node: u32,
    pub all: u32,
    /// Those of them that are being deleted.
    pub leaving: u32,
}

impl Presence {
    /// Those that stay.
    pub fn staying(self) -> i64 {
        i64::from(self.all - self.leaving)
    }
}

#[derive(Clone, Debug, Default)]
struct CrowdIds {
    /// By where namespace and labels lie, which is quick; what lies there is kept by `kept`.
    by_address: Ids<(usize, usize)>,
    by_content: Ids<(Namespace, Labels)>,
    kept: Vec<(Namespace, Labels)>,
}

impl PodClasses {
    /// The number of the crowd that a pod belongs to, made where it is the first.
    pub fn number_of(&mut self, pod: &Pod) -> u32 {
        let address = (address_of_name(&pod.key.namespace.0), address_of(&pod.labels));
        if let Some(number) = self.ids.by_address.number(&address) {
            return number;
        }
        let content = (pod.key.namespace.clone(), pod.labels.clone());
        let ids = Arc::make_mut(&mut self.ids);
        let number = ids.by_content.number(&content).unwrap_or_else(|| {
            let number = u32::try_from(self.all.len()).expect("fewer crowds than pods");
            let (namespace, labels) = content.clone();
            Arc::make_mut(&mut self.in_namespace).entry(namespace.clone()).or_default().push(number);
            self.all.push(Arc::new(PodClass { namespace, labels, on: Vec::new() }));
            ids.by_content.insert(content.clone(), number);
            number
        });
        ids.by_address.insert(address, number);
        ids.kept.push(content);
        number
    }

    /// Notes a pod down without looking whether its crowd is on the node already; [`PodClasses::settle`] must follow.
    pub fn throw_in(&mut self, number: u32, node: u32, leaving: bool) {
        let pod_class = Arc::make_mut(&mut self.all[number as usize]);
        pod_class.on.push(Presence { node, all: 1, leaving: u32::from(leaving) });
    }

    /// Puts in order what was thrown in.
    pub fn settle(&mut self) {
        for pod_class in &mut self.all {
            let on = &mut Arc::make_mut(pod_class).on;
            on.sort_unstable_by_key(|presence| presence.node);
            on.dedup_by(|later, earlier| {
                let same = later.node == earlier.node;
                if same {
                    earlier.all += later.all;
                    earlier.leaving += later.leaving;
                }
                same
            });
            on.shrink_to_fit();
        }
    }

    pub fn add(&mut self, number: u32, node: u32, leaving: bool) {
        let on = &mut Arc::make_mut(&mut self.all[number as usize]).on;
        let place = on.partition_point(|presence| presence.node < node);
        if on.get(place).is_none_or(|presence| presence.node != node) {
            on.insert(place, Presence { node, all: 0, leaving: 0 });
        }
        on[place].all += 1;
        on[place].leaving += u32::from(leaving);
    }

    pub fn remove(&mut self, number: u32, node: u32, leaving: bool) {
        let on = &mut Arc::make_mut(&mut self.all[number as usize]).on;
        let place = on.partition_point(|presence| presence.node < node);
        on[place].all -= 1;
        on[place].leaving -= u32::from(leaving);
        if on[place].all == 0 {
            on.remove(place);
        }
    }

    /// The crowds in some namespaces that a selector selects, with their numbers, ascending in each namespace.
    pub fn selected<'a>(
        &'a self,
        within: &'a NamespaceScope,
        selector: &'a Selector,
    ) -> impl Iterator<Item = (u32, &'a PodClass)> {
        self.within(within).filter(|(_, pod_class)| selector.matches(&pod_class.labels))
    }

    fn within<'a>(&'a self, within: &'a NamespaceScope) -> impl Iterator<Item = (u32, &'a PodClass)> {
        let (everywhere, some) = match within {
            NamespaceScope::Everywhere => (Some(0..self.all.len()), [].as_slice()),
            NamespaceScope::Some(namespaces) => (None, namespaces.as_slice()),
        };
        let some = some.iter().filter_map(|namespace| self.in_namespace.get(namespace)).flatten().copied();
        let all = everywhere.into_iter().flatten().map(|number| u32::try_from(number).expect("numbered so"));
        all.chain(some).map(|number| (number, &*self.all[number as usize]))
    }
}

/// Some namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamespaceScope {
    Everywhere,
    /// Each once.
    Some(Vec<Namespace>),
}
