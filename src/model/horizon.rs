//! Horizons of forecasts.

use kordon_time::Span;

/// Horizon of the usual forecast, which does not depend on the horizon of the chart. A node that fails now loses its
/// pods within this horizon, if the pods have the default tolerations.
pub const HORIZON: Span = Horizon::TenMinutes.span();

/// Horizon of the forecast chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Horizon {
    #[default]
    TenMinutes,
    HalfHour,
    TwoHours,
}

impl Horizon {
    pub const ALL: [Self; 3] = [Self::TenMinutes, Self::HalfHour, Self::TwoHours];

    pub const fn span(self) -> Span {
        Span::from_secs(match self {
            Self::TenMinutes => 600,
            Self::HalfHour => 1800,
            Self::TwoHours => 7200,
        })
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TenMinutes => "10 min",
            Self::HalfHour => "30 min",
            Self::TwoHours => "2 h",
        }
    }

    /// Returns the next longer horizon. After the longest horizon, returns the shortest.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::TenMinutes => Self::HalfHour,
            Self::HalfHour => Self::TwoHours,
            Self::TwoHours => Self::TenMinutes,
        }
    }

    /// Maximum time difference between the events of nodes that share a lane of the chart.
    pub const fn alike(self) -> Span {
        Span::from_nanos(self.span().as_nanos() / 20)
    }
}
