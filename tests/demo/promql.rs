//! The subset of PromQL that the alert rules use, evaluated as Prometheus does: selectors, `rate`, `sum` and `max` with
//! `by`, comparisons with a number, and `and`. Anything else is an error.

use std::collections::BTreeMap;

use kordon_time::{Span, Timestamp};

/// Labels of a series; its name is the label `__name__`.
pub type Labels = BTreeMap<String, String>;

/// Values of series at one moment.
pub type Vector = Vec<(Labels, f64)>;

const NAME: &str = "__name__";

/// All scrapes, oldest first.
#[derive(Debug, Default)]
pub struct Scrapes(Vec<(Timestamp, Vector)>);

impl Scrapes {
    /// Adds a scrape in the OpenMetrics text format.
    pub fn add(&mut self, at: Timestamp, text: &str) {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        self.0.push((at, samples.map(sample).collect()));
    }

    pub fn times(&self) -> impl Iterator<Item = Timestamp> {
        self.0.iter().map(|(at, _)| *at)
    }

    /// Evaluates an expression at the time of a scrape.
    pub fn value(&self, expression: &Expression, at: Timestamp) -> Vector {
        match expression {
            // A series that is missing in the last scrape is stale at once.
            Expression::Selector(selector) => {
                let last = self.0.iter().rev().find(|(scraped, _)| *scraped <= at);
                let samples = last.into_iter().flat_map(|(_, samples)| samples);
                samples.filter(|(labels, _)| selector.selects(labels)).cloned().collect()
            }
            Expression::Rate(selector, range) => self.rate(selector, *range, at),
            Expression::Aggregation { operator, by, of } => {
                let mut groups: BTreeMap<Labels, f64> = BTreeMap::new();
                for (mut labels, value) in self.value(of, at) {
                    labels.retain(|label, _| by.contains(label));
                    let total = groups.entry(labels).or_insert(operator.neutral());
                    *total = operator.apply(*total, value);
                }
                groups.into_iter().collect()
            }
            Expression::Comparison { of, operator, number } => {
                let mut vector = self.value(of, at);
                vector.retain(|(_, value)| operator.holds(*value, *number));
                vector
            }
            Expression::And(left, right) => {
                let right: Vec<Labels> =
                    self.value(right, at).into_iter().map(|(labels, _)| nameless(labels)).collect();
                let mut left = self.value(left, at);
                left.retain(|(labels, _)| right.contains(&nameless(labels.clone())));
                left
            }
        }
    }

    /// Evaluates `rate` as Prometheus' `extrapolatedRate` does.
    fn rate(&self, selector: &Selector, range: Span, at: Timestamp) -> Vector {
        let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for (scraped, samples) in self.0.iter().filter(|(scraped, _)| *scraped > at - range && *scraped <= at)
        {
            let age = at.since(*scraped).as_secs_f64();
            for (labels, value) in samples.iter().filter(|(labels, _)| selector.selects(labels)) {
                series.entry(nameless(labels.clone())).or_default().push((age, *value));
            }
        }
        let of_series = |(labels, samples): (Labels, Vec<(f64, f64)>)| {
            let (first, last) = (samples.first()?, samples.last().filter(|_| samples.len() > 1)?);
            let resets = samples.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[0].1);
            let increase = last.1 - first.1 + resets.sum::<f64>();
            let sampled = first.0 - last.0;
            let interval = sampled / (samples.len() - 1) as f64;
            let within = |gap: f64| if gap < interval * 1.1 { gap } else { interval / 2.0 };
            let mut before = within(range.as_secs_f64() - first.0);
            if increase > 0.0 {
                // The extrapolation ends where the counter would be below zero.
                before = before.min(sampled * first.1 / increase);
            }
            let covered = sampled + before + within(last.0);
            Some((labels, increase * covered / sampled / range.as_secs_f64()))
        };
        series.into_iter().filter_map(of_series).collect()
    }
}

/// An expression whose value is a vector.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Selector(Selector),
    Rate(Selector, Span),
    Aggregation { operator: Aggregator, by: Vec<String>, of: Box<Expression> },
    Comparison { of: Box<Expression>, operator: Comparator, number: f64 },
    And(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregator {
    Sum,
    Max,
}

impl Aggregator {
    const fn neutral(self) -> f64 {
        match self {
            Self::Sum => 0.0,
            Self::Max => f64::NEG_INFINITY,
        }
    }

    fn apply(self, total: f64, value: f64) -> f64 {
        match self {
            Self::Sum => total + value,
            Self::Max => total.max(value),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    Equal,
    Less,
    Greater,
}

impl Comparator {
    #[expect(clippy::float_cmp, reason = "as Prometheus compares")]
    fn holds(self, value: f64, number: f64) -> bool {
        match self {
            Self::Equal => value == number,
            Self::Less => value < number,
            Self::Greater => value > number,
        }
    }
}

/// A metric name, and the allowed values of its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    name: String,
    matchers: Vec<(String, Vec<String>)>,
}

impl Selector {
    fn selects(&self, labels: &Labels) -> bool {
        let value = |label: &str| labels.get(label).map_or("", String::as_str);
        value(NAME) == self.name
            && self.matchers.iter().all(|(label, values)| values.iter().any(|one| one == value(label)))
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Panics
    /// The text is not an expression of the supported subset of PromQL.
    pub fn parse(text: &str) -> Self {
        let mut tokens = Tokens { rest: text };
        let parsed = tokens.expression();
        assert_eq!(tokens.rest.trim(), "", "not understood: {text}");
        parsed
    }
}

/// The part of an expression that is not parsed yet.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn expression(&mut self) -> Expression {
        let mut left = self.comparison();
        while self.takes("and") {
            left = Expression::And(Box::new(left), Box::new(self.comparison()));
        }
        left
    }

    fn comparison(&mut self) -> Expression {
        let of = Box::new(self.operand());
        let operators = [("==", Comparator::Equal), ("<", Comparator::Less), (">", Comparator::Greater)];
        let found = operators.into_iter().find(|(text, _)| self.takes(text));
        let Some((_, operator)) = found else { return *of };
        let number = self.word(|letter| letter.is_ascii_digit() || letter == '.');
        Expression::Comparison { of, operator, number: number.parse().expect("a number") }
    }

    fn operand(&mut self) -> Expression {
        if self.takes("(") {
            let inner = self.expression();
            self.must_take(")");
            return inner;
        }
        let name = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        match name {
            "rate" => {
                self.must_take("(");
                let name = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                let selector = self.selector(name);
                self.must_take("[");
                let range = humantime::parse_duration(self.word(char::is_alphanumeric)).expect("a duration");
                self.must_take("]");
                self.must_take(")");
                Expression::Rate(selector, range.into())
            }
            "sum" | "max" => {
                let operator = if name == "sum" { Aggregator::Sum } else { Aggregator::Max };
                let by = if self.takes("by") {
                    self.list("(", ")", |tokens| tokens.label().to_owned())
                } else {
                    Vec::new()
                };
                self.must_take("(");
                let of = Box::new(self.expression());
                self.must_take(")");
                Expression::Aggregation { operator, by, of }
            }
            name => Expression::Selector(self.selector(name)),
        }
    }

    fn selector(&mut self, name: &str) -> Selector {
        assert!(!name.is_empty(), "a metric is missing before {}", self.rest);
        let matchers = if self.rest.trim_start().starts_with('{') {
            self.list("{", "}", Self::matcher)
        } else {
            Vec::new()
        };
        Selector { name: name.into(), matchers }
    }

    fn matcher(&mut self) -> (String, Vec<String>) {
        let label = self.label().to_owned();
        let is_pattern = self.takes("=~");
        if !is_pattern {
            self.must_take("=");
        }
        self.must_take("\"");
        let (value, rest) = self.rest.split_once('"').expect("a closing quote");
        self.rest = rest;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_|".contains(letter);
        assert!(value.chars().all(is_plain), "patterns are alternatives of words: {value}");
        let values = if is_pattern { value.split('|').collect() } else { vec![value] };
        (label, values.into_iter().map(str::to_owned).collect())
    }

    fn list<T>(&mut self, opens: &str, closes: &str, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        self.must_take(opens);
        let mut items = vec![item(self)];
        while self.takes(",") {
            items.push(item(self));
        }
        self.must_take(closes);
        items
    }

    fn label(&mut self) -> &'a str {
        self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let text = self.rest.trim_start();
        let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        self.rest = &text[end..];
        &text[..end]
    }

    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn must_take(&mut self, text: &str) {
        assert!(self.takes(text), "{text} is missing before {}", self.rest);
    }
}

fn nameless(mut labels: Labels) -> Labels {
    labels.remove(NAME);
    labels
}

/// Parses a line `name{label="value",…} number`.
fn sample(line: &str) -> (Labels, f64) {
    let (series, number) = line.rsplit_once(' ').expect("a value");
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let mut sample = Labels::from([(NAME.into(), name.into())]);
    let mut rest = labels.trim_end_matches('}');
    while let Some((label, quoted)) = rest.split_once("=\"") {
        let end = closing_quote(quoted);
        let value = quoted[..end].replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
        sample.insert(label.trim_start_matches(',').into(), value);
        rest = &quoted[end + 1..];
    }
    (sample, number.parse().expect("a number"))
}

fn closing_quote(quoted: &str) -> usize {
    let mut is_escaped = false;
    let ends = quoted.char_indices().find(|(_, letter)| {
        let ends = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    ends.expect("a closing quote").0
}

/// The time at which an alert became pending, for each series of its expression. The alert fires once it has been
/// pending for the rule's `for` duration.
#[derive(Debug, Default)]
pub struct Pending(BTreeMap<Labels, Timestamp>);

impl Pending {
    /// Evaluates a rule. Returns whether it fires.
    pub fn evaluate(&mut self, value: &Vector, lasts: Span, at: Timestamp) -> bool {
        let active: Vec<Labels> = value.iter().map(|(labels, _)| nameless(labels.clone())).collect();
        self.0.retain(|labels, _| active.contains(labels));
        for labels in active {
            self.0.entry(labels).or_insert(at);
        }
        self.0.values().any(|since| at.since(*since) >= lasts)
    }
}

/// Values are from Prometheus' own tests of `rate` (promql/promqltest/testdata/functions.test), and from its
/// documentation.
#[test]
fn expressions_have_the_values_that_prometheus_gives_them() {
    let at = |minutes: i64| Timestamp::from_secs(1_800_000_000 + 60 * minutes);
    let rate = |every: i64, values: &[i64], range: &str, minutes: i64| {
        let mut scrapes = Scrapes::default();
        values
            .iter()
            .zip(0..)
            .for_each(|(value, step)| scrapes.add(at(step * every), &format!("c_total {value}")));
        let vector = scrapes.value(&Expression::parse(&format!("rate(c_total[{range}])")), at(minutes));
        vector.first().map(|(_, rate)| (rate * 10_000.0).round() / 10_000.0)
    };
    let steps = |from: i64, by: i64, to: i64| (0..=to).map(|step| from + by * step).collect::<Vec<i64>>();
    assert_eq!(rate(5, &steps(0, 80, 10), "50m", 50), Some(0.2667));
    let reset_in_the_middle = [steps(0, 27, 4), steps(0, 27, 5)].concat();
    assert_eq!(rate(5, &reset_in_the_middle, "50m", 50), Some(0.08));
    let reset_at_the_end = [steps(0, 10, 9), vec![0, 10]].concat();
    assert_eq!(rate(5, &reset_at_the_end, "5m", 50), None, "one sample");
    assert_eq!(rate(5, &reset_at_the_end, "6m", 50), Some(0.0));
    for (first, expected) in [(0, 0.5), (60, 0.55), (120, 0.6), (180, 0.6), (240, 0.6)] {
        assert_eq!(rate(4, &steps(first, 240, 10)[..3], "20m", 10), Some(expected), "from {first}");
        assert_eq!(rate(4, &steps(first, 240, 10), "20m", 50), Some(0.6));
    }

    let value = |text: &str, expression: &str| {
        let mut scrapes = Scrapes::default();
        scrapes.add(at(0), text);
        let vector = scrapes.value(&Expression::parse(expression), at(0));
        let labels = |labels: Labels| labels.into_iter().map(|(label, value)| format!("{label}={value}"));
        let row =
            |(of, value): (Labels, f64)| format!("{} {value}", labels(of).collect::<Vec<_>>().join(","));
        vector.into_iter().map(row).collect::<Vec<_>>()
    };
    let zones = "# TYPE n gauge\nn{zone=\"a\",x=\"1\"} 2\nn{zone=\"a\",x=\"2\"} 3\nn{zone=\"b\",x=\"1\"} 0\nm{zone=\"b\",x=\"1\"} 7";
    assert_eq!(value(zones, "sum by (zone) (n) > 0"), ["zone=a 5"]);
    assert_eq!(value(zones, "max by (zone) (n)"), ["zone=a 3", "zone=b 0"]);
    assert_eq!(value(zones, "n == 0 and m > 2"), ["__name__=n,x=1,zone=b 0"]);
    assert_eq!(value(zones, "n{x=~\"1|3\"} < 1"), ["__name__=n,x=1,zone=b 0"]);
    assert_eq!(value(zones, "sum(n{x=\"2\"})"), [" 3"]);
    assert_eq!(value("n{a=\"\\\"q\\\\,\"} 1.5", "n"), ["__name__=n,a=\"q\\, 1.5"]);
}
