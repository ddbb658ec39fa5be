//! The lists of the dashboard's panes as commands: `kordon nodes`, `zones`, `pods`, `events` and `evictions`.

pub mod events;
pub mod evictions;
pub mod nodes;
pub mod pods;
pub mod zones;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::{self, CliError},
    once::OnceArgs,
    page::{Emphasis, Page},
};
use crate::{
    app::{
        Filter, Pane, Sort, SortColumn, filter_fields,
        filter_words::{unknown_label, unknown_name, unknown_value},
        filterable_rows::{VisitRows, visit_model_rows},
        sorting::column_and_direction,
    },
    model::Model,
};
use kordon_core::{
    cluster::nearest::{did_you_mean, nearest},
    plan::words::counted,
};

/// Arguments that every list takes. A list may have more arguments.
#[derive(Args, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    once: OnceArgs,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Args, Clone, Debug)]
pub struct FilterArgs {
    /// List only rows that pass this filter, as after `/` in the dashboard: 'zone:a state=Silent pods>20'
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
    /// List only rows with these labels, as in kubectl: 'pool=spot,tier in (a, b)'
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
}

impl FilterArgs {
    /// Parses the filter for the rows of a pane.
    ///
    /// # Errors
    /// A term cannot be read, or no row of the pane can pass it.
    pub fn for_pane(&self, pane: Pane) -> Result<Filter, CliError> {
        let words = self.filter.as_deref().unwrap_or_default();
        let selector = self.selector.as_ref().map(|labels| format!("-l {labels}")).unwrap_or_default();
        for (flag, text) in [("--filter", words), ("--selector", &selector)] {
            if let Some(error) = Filter::parse(text).error(filter_fields::fields(pane)) {
                return Err(CliError::Usage(format!("{flag}: {error}")));
            }
        }
        Ok(Filter::parse(&format!("{words} {selector}")))
    }

    /// Parses the filter for the rows of a pane, and adds the namespace of `--namespace`, if it was given.
    ///
    /// # Errors
    /// As for [`for_pane`](Self::for_pane).
    pub fn in_namespace(&self, pane: Pane, connection: &ConnectionArgs) -> Result<Filter, CliError> {
        let filter = self.for_pane(pane)?;
        let Some(namespace) = &connection.namespace else { return Ok(filter) };
        Ok(Filter::parse(&format!("ns={namespace} {}", filter.text())))
    }
}

#[derive(Args, Clone, Debug)]
pub struct SortArgs {
    /// Sort by this column, as `s` does in the dashboard; COLUMN:reversed is the other direction
    #[arg(long, value_name = "COLUMN[:reversed]")]
    sort: Option<String>,
}

impl SortArgs {
    /// The column to sort by, and the direction.
    ///
    /// # Errors
    /// The list cannot be sorted by this column.
    pub fn column<C: SortColumn>(&self) -> Result<Sort<C>, CliError> {
        let Some(text) = &self.sort else { return Ok(Sort::default()) };
        let (name, direction) = column_and_direction(text);
        let title = name.to_lowercase().replace(['-', '_'], " ");
        let column = C::from_title(&title).ok_or_else(|| no_column::<C>(name, &title))?;
        Ok(Sort::new(column, direction))
    }
}

/// The error for a column that does not exist. `name` is what the user typed, `title` the same name as a column title.
fn no_column<C: SortColumn>(name: &str, title: &str) -> CliError {
    let titles: Vec<&str> = C::ALL.iter().map(|column| column.title()).collect();
    let help = match nearest(title, titles.iter().copied()) {
        Some(meant) => did_you_mean([meant]),
        None => format!("; it can be sorted by: {}", titles.join(", ")),
    };
    CliError::Usage(format!("--sort: the list has no column {name}{help}"))
}

/// Checks the words of a filter against the rows of a list of the model.
///
/// # Errors
/// A name in the filter is no field and no label of any row.
pub fn check_filter(filter: &Filter, pane: Pane, model: &Model) -> Result<(), CliError> {
    check_filter_of(filter, pane, &|visit| {
        visit_model_rows(model, pane, visit);
    })
}

/// Checks the words of a filter against the rows of a list. Notes a value that no row has, and a label of `--selector`.
///
/// # Errors
/// A name in the filter is no field and no label of any row.
fn check_filter_of(filter: &Filter, pane: Pane, rows: &VisitRows<'_>) -> Result<(), CliError> {
    if let Some(unknown) = unknown_name(filter, pane, rows) {
        return Err(CliError::Usage(format!("--filter: {unknown}")));
    }
    if let Some(unknown) = unknown_value(filter, pane, rows) {
        exit::note(&format!("--filter: {unknown}"));
    }
    // As in kubectl, a selector that selects nothing is no error.
    if let Some(unknown) = unknown_label(filter, pane, rows) {
        exit::note(&format!("--selector: {unknown}"));
    }
    Ok(())
}

/// Says that a list is empty, and whether that is because of the filter.
pub fn say_empty(out: &mut Page, all: usize, (one, several): (&str, &str), filter: &Filter) {
    let text = match all {
        0 => format!("no {several}"),
        _ => format!("{} in all, none matches {}", counted(all, one, several), filter.text()),
    };
    out.line(Emphasis::Plain, &text);
}

/// Text of an answer: `yes`, `no`, or a dash if the answer is not known.
fn yes_or_no(answer: impl Into<Option<bool>>) -> &'static str {
    match answer.into() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::NodeColumn;

    fn sort(text: &str) -> Result<Sort<NodeColumn>, String> {
        let args = SortArgs { sort: Some(text.into()) };
        args.column().map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_named_as_in_the_headings() {
        let sort_by = |column, reversed| Ok(Sort { column, reversed });
        assert_eq!(sort("zone"), sort_by(NodeColumn::Zone, false));
        assert_eq!(sort("CPU REQ:reversed"), sort_by(NodeColumn::Cpu, true));
        assert_eq!(sort("cpu-req"), sort_by(NodeColumn::Cpu, false));
        let error = |text| sort(text).expect_err("no such column");
        assert_eq!(error("pds"), "--sort: the list has no column pds; did you mean pods?");
        assert!(error("x:y").contains("it can be sorted by: state, node, zone"), "{}", error("x:y"));
    }

    #[test]
    fn a_namespace_is_a_condition_of_the_filter() {
        let filter = FilterArgs { filter: None, selector: Some("app=web".into()) };
        let mut connection = ConnectionArgs::default();
        connection.namespace = Some("shop".into());
        let text = |connection: &ConnectionArgs| {
            let filter = filter.in_namespace(Pane::Pending, connection).expect("a filter");
            filter.text().to_owned()
        };
        assert_eq!(text(&connection), "ns=shop -l app=web");
        assert_eq!(text(&ConnectionArgs::default()), "-l app=web");
    }

    #[test]
    fn a_filter_that_no_row_can_pass_is_an_error() {
        let filter =
            |text: &str| FilterArgs { filter: Some(text.into()), selector: None }.for_pane(Pane::Nodes);
        assert!(filter("zone:a pods>20").is_ok());
        let error = filter("pod>20").expect_err("no such field").to_string();
        assert_eq!(error, "--filter: pod cannot be compared; did you mean pods?");
    }
}
