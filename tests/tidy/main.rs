//! Checks of sources and documents that neither the compiler nor clippy can make.

mod circles;
mod conventions;
mod documents;
mod glossary;
mod habits;
mod layers;
mod names;
mod references;
mod repository;
mod scenarios;
mod source;
mod test_index;

fn expect_none(wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
