//! An embedded cluster: API, kubelets, workloads, incidents.
