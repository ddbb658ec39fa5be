//! Pods grouped by a common property.

use std::sync::Arc;

use super::{cow_map::CowMap, names::Key, pod::Pod};

/// Pods grouped by a key that many pods have in common, such as their node or their owner. Each group is sorted by the
/// keys of its pods.
///
/// The map takes one word for each pod. Copies are cheap; a write after a copy copies the words of one group.
#[derive(Clone, Debug)]
pub struct PodGroups<K>(CowMap<K, Arc<Vec<Arc<Pod>>>>);

impl<K> Default for PodGroups<K> {
    fn default() -> Self {
        Self(CowMap::default())
    }
}

impl<K: Ord + Clone> PodGroups<K> {
    /// The pods of a group, in order of their keys.
    pub fn pods(&self, group: &K) -> &[Arc<Pod>] {
        self.0.get(group).map_or(&[], |pods| pods)
    }

    /// Adds a pod to a group, or replaces the pod with the same key there.
    pub fn put(&mut self, group: &K, pod: &Arc<Pod>) {
        let Some(found) = self.0.find_row(group) else {
            self.0.insert(group.clone(), Arc::new(vec![pod.clone()]));
            return;
        };
        let pods = Arc::make_mut(found.into_mut());
        match find(pods, &pod.key) {
            Ok(place) => pods[place] = pod.clone(),
            Err(place) => pods.insert(place, pod.clone()),
        }
    }

    /// Replaces a pod in a group by its later version. The old version is found by its address, so that no other pod is
    /// read.
    pub fn replace(&mut self, group: &K, old: &Arc<Pod>, new: &Arc<Pod>) {
        let Some(found) = self.0.find_row(group) else { return self.put(group, new) };
        let Some(place) = found.value().iter().position(|pod| Arc::ptr_eq(pod, old)) else {
            return self.put(group, new);
        };
        Arc::make_mut(found.into_mut())[place] = new.clone();
    }

    pub fn remove(&mut self, group: &K, pod: &Key) {
        let Some(found) = self.0.find_row(group) else { return };
        let Ok(place) = find(found.value(), pod) else { return };
        if found.value().len() == 1 {
            self.0.remove(group);
        } else {
            Arc::make_mut(found.into_mut()).remove(place);
        }
    }
}

fn find(pods: &[Arc<Pod>], key: &Key) -> Result<usize, usize> {
    pods.binary_search_by(|pod| pod.key.cmp(key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn pod(name: u8, priority: i32) -> Arc<Pod> {
        Arc::new(Pod { key: Key::new("shop", &format!("p{name:03}")), priority, ..Pod::default() })
    }

    proptest! {
        #[test]
        fn groups_hold_what_was_put_and_not_removed_and_copies_stay_as_they_were(
            steps in prop::collection::vec((any::<bool>(), 0_u8..4, 0_u8..12), 1..200),
            copy_at in 0_usize..200,
        ) {
            let (mut ours, mut model) = (PodGroups::default(), BTreeMap::new());
            let mut copy = None;
            for (step, (is_put, group, name)) in steps.into_iter().enumerate() {
                if step == copy_at {
                    copy = Some((ours.clone(), model.clone()));
                }
                let pod = pod(name, i32::try_from(step).expect("few steps"));
                if is_put {
                    match model.insert((group, pod.key.clone()), pod.clone()) {
                        Some(old) => ours.replace(&group, &old, &pod),
                        None => ours.put(&group, &pod),
                    }
                } else {
                    ours.remove(&group, &pod.key);
                    model.remove(&(group, pod.key.clone()));
                }
            }
            for (ours, model) in copy.into_iter().chain([(ours, model)]) {
                for group in 0..4 {
                    let expected: Vec<_> =
                        model.iter().filter(|((of, _), _)| *of == group).map(|(_, pod)| pod.clone()).collect();
                    prop_assert_eq!(ours.pods(&group), expected);
                }
            }
        }
    }
}
