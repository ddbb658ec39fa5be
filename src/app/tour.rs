//! The tour: six steps that explain what is on the screen.

/// A step of the tour, in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TourStep {
    #[default]
    Strip,
    Verdict,
    Why,
    Plan,
    Enforce,
    Freeze,
}

impl TourStep {
    pub const ALL: [Self; 6] =
        [Self::Strip, Self::Verdict, Self::Why, Self::Plan, Self::Enforce, Self::Freeze];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Strip => "All nodes at once",
            Self::Verdict => "The verdict",
            Self::Why => "Why",
            Self::Plan => "Plans",
            Self::Enforce => "Enforce",
            Self::Freeze => "Freeze",
        }
    }

    /// Number of the step, from 1.
    pub const fn number(self) -> usize {
        self as usize + 1
    }

    /// The step after this one; `None` after the last.
    pub fn next(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }

    /// The step before this one; `None` before the first.
    pub fn previous(self) -> Option<Self> {
        Self::ALL.get((self as usize).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_follow_each_other_in_both_directions() {
        let there: Vec<TourStep> =
            std::iter::successors(Some(TourStep::default()), |step| step.next()).collect();
        assert_eq!(there, TourStep::ALL);
        let back: Vec<usize> = std::iter::successors(Some(TourStep::Freeze), |step| step.previous())
            .map(TourStep::number)
            .collect();
        assert_eq!(back, [6, 5, 4, 3, 2, 1]);
    }
}
