//! What the real kube-scheduler did, pod by pod, and what kordon makes of the same cluster at the same moment.

pub mod diary;
pub mod history;
pub mod population;
pub mod replay;
