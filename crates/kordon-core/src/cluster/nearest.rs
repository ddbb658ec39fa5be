//! Suggestions for a name that does not exist.

use super::{Cluster, Key, NodeName, Scope, Selector};

/// Returns the known name that is nearest to `name`; none if no name is near. A name is near if at most a third of its
/// letters differ, or if it contains `name`. Upper and lower case are the same.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let letters = name.chars().count();
    let most = (letters / 3).max(1);
    let distance = |known: &str| {
        let known = known.to_lowercase();
        let differ = strsim::damerau_levenshtein(&name, &known);
        match differ {
            _ if differ <= most && differ < letters => Some(differ),
            _ if letters >= SHORTEST_PART && known.contains(name.as_str()) => Some(most + differ),
            _ => None,
        }
    };
    let near = known.into_iter().filter_map(|known| Some((distance(known)?, known)));
    near.min().map(|(_, known)| known)
}

/// Returns the known node whose name is nearest to `name`; none if no name is near.
pub fn nearest_node(name: &NodeName, cluster: &Cluster) -> Option<NodeName> {
    nearest(name, cluster.nodes().iter().map(|node| &*node.name)).map(NodeName::from)
}

/// Returns the known pod that was probably meant: a pod of the same name in another namespace, otherwise the pod with
/// the nearest name in this namespace, otherwise in any namespace. Of several namespaces, the one with the nearest name
/// is chosen.
pub fn nearest_pod(key: &Key, cluster: &Cluster) -> Option<Key> {
    let elsewhere = |name: &str| {
        let of_name = cluster.pods().iter().map(|pod| &pod.key).filter(|pod| *pod.name == *name);
        let distance = |pod: &Key| strsim::damerau_levenshtein(&key.namespace, &pod.namespace);
        of_name.min_by_key(|pod| (distance(pod), *pod)).cloned()
    };
    let here = || {
        let names = cluster.pods_in(&key.namespace).map(|pod| &*pod.key.name);
        nearest(&key.name, names).map(|name| Key::new(&key.namespace, name))
    };
    let anywhere = || {
        let names = cluster.pods().iter().map(|pod| &*pod.key.name);
        nearest(&key.name, names).and_then(elsewhere)
    };
    elsewhere(&key.name).or_else(here).or_else(anywhere)
}

/// Returns the scopes (sets of pods) in which [`nearest_pod`] looks: the pods of the namespace, because they can be
/// read faster, and all pods.
pub fn scopes_near_pod(key: &Key) -> [Scope; 2] {
    [Some(key.namespace.clone()), None].map(|namespace| Scope::PodsWith(namespace, Selector::default()))
}

/// Formats a question such as `; did you mean web-1, web-2?`; empty if there are no names.
pub fn did_you_mean<T: ToString>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(", ")) }
}

/// Minimum length of a name that is looked for inside other names. A shorter name would be part of too many names.
const SHORTEST_PART: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_or_unfinished_name_has_a_nearest_one_and_another_word_has_none() {
        let known = ["memory-1a-01", "memory-1a-02", "web-7d9f-x2k4q", "b"];
        let near = |name| nearest(name, known);
        assert_eq!(near("memroy-1a-02"), Some("memory-1a-02"));
        assert_eq!(near("memory-1a-1"), Some("memory-1a-01"));
        assert_eq!(near("web"), Some("web-7d9f-x2k4q"));
        assert_eq!(near("MEMORY-1A-01"), Some("memory-1a-01"));
        assert_eq!(near("database-0"), None);
        assert_eq!(near("c"), None, "nothing of it is right");
        assert_eq!(near(""), None);
    }
}
