//! The node lifecycle controller: health, zones, rate-limited queues, taints, taint eviction.
