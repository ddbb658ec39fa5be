//! Widgets that are independent of Kubernetes: they take texts, numbers and styles.

pub mod bar;
pub mod countdown;
pub mod field;
pub mod gauge;
pub mod range_bar;
pub mod segments;
pub mod sheet;
pub mod stacked;
pub mod strip;
pub mod table;
pub mod time_axis;
pub mod waves;

pub use bar::bar;
pub use countdown::Urgency;
pub use gauge::gauge;
pub use range_bar::{range_axis, range_bar};
pub use segments::Segments;
pub use sheet::sheet;
pub use stacked::stacked;
pub use strip::strip;
pub use table::{Cell, Column, Heading, TableWidget, Width};
pub use time_axis::TimeAxis;
pub use waves::{WaveLane, waves};
