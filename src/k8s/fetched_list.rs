//! Lists of objects that are not watched, each read by one request.

use std::time::Duration;

use kube::Client;
use serde::de::DeserializeOwned;

use super::{
    decode::items::items,
    watch::{self, WatchError},
};
use kordon_core::cluster::{FetchedList, Name};

/// Maximum size of a list, in bytes.
const LONGEST: usize = 64 << 20;

/// Time limit for reading a list.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads all objects at a path. `parse` reads them from the body of the response.
pub async fn read<T>(
    client: &Client,
    path: &str,
    parse: impl FnOnce(&[u8]) -> Result<Vec<T>, String>,
) -> FetchedList<T> {
    match watch::read(client, path, PATIENCE, LONGEST).await {
        Ok(list) => match parse(&list) {
            Ok(found) => FetchedList::Read(found),
            Err(why) => FetchedList::Unreadable(why.as_str().into()),
        },
        Err(WatchError::NotServed(_)) => FetchedList::NotServed,
        Err(why) => {
            let why = why.words().unwrap_or_else(|| "the answer has expired".into());
            FetchedList::Unreadable(why.as_str().into())
        }
    }
}

/// Reads the objects at a path.
///
/// # Errors
/// The objects cannot be read, or are not served; the reason.
pub async fn items_at<T: DeserializeOwned>(client: &Client, path: &str) -> Result<Vec<T>, Name> {
    match read(client, path, |list| items(list, "list")).await {
        FetchedList::Read(items) => Ok(items),
        FetchedList::Unreadable(why) => Err(why),
        FetchedList::NotRead | FetchedList::NotServed => {
            Err(format!("the server does not serve {path}").into())
        }
    }
}
