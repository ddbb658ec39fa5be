//! How far ahead forecasts look.

use super::Model;
use kordon_core::forecast::Forecast;
use kordon_time::Span;

/// How far ahead forecasts look whatever is shown: an eviction under the default tolerations, and then some.
pub const HORIZON: Span = Horizon::TenMinutes.span();

/// How far ahead the chart of the forecast looks.
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

    /// The one after it; after the last, the first.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::TenMinutes => Self::HalfHour,
            Self::HalfHour => Self::TwoHours,
            Self::TwoHours => Self::TenMinutes,
        }
    }

    /// By how much the times of nodes may differ that share a lane of the chart.
    pub const fn alike(self) -> Span {
        Span::from_nanos(self.span().as_nanos() / 20)
    }
}

impl Model {
    /// The forecast that looks so far ahead; the usual one while there is no other.
    pub fn forecast_until(&self, horizon: Horizon) -> Option<&Forecast> {
        let far = self.outlook.as_deref().filter(|_| horizon != Horizon::TenMinutes);
        far.or(self.forecast.as_deref())
    }
}
