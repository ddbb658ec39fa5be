//! `--from` and `--with`: objects from files, which replace the objects of a cluster or are laid over them.

use std::path::PathBuf;

use clap::Args;

use super::{
    connection::ConnectionArgs,
    exit::{self, CliError},
    recorded::{RecordedTime, recorded_time},
};
use crate::{
    k8s::connect::{self, Connection},
    objects,
};

#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(next_help_heading = "Objects from files")]
pub struct SourceArgs {
    /// Read this file, folder or archive of Kubernetes objects instead of a cluster: JSON or YAML of kubectl get, a
    /// cluster-info dump, a must-gather, a support bundle; - is standard input
    #[arg(long, value_name = "PATH")]
    pub from: Option<PathBuf>,
    /// Lay the objects of this file over what is read, as if applied; may be repeated
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
    /// Take the files of --from as all that the cluster has: kinds that are missing in them have no objects
    #[arg(long, requires = "from")]
    complete: bool,
    /// The moment of --from or --recording: a time such as 2026-01-02T03:04:05Z, or -30s from the newest; 12m is from
    /// the start of a recording
    #[arg(long, value_name = "TIME", value_parser = recorded_time, allow_hyphen_values = true)]
    pub at: Option<RecordedTime>,
}

impl SourceArgs {
    /// Connects to the objects of `--from`, or to the cluster with the objects of `--with` laid over it.
    ///
    /// # Errors
    /// The files cannot be read, the flags contradict each other, or the cluster is not reached.
    pub async fn connect(&self, connection: ConnectionArgs) -> Result<Connection, CliError> {
        let connection = match &self.from {
            Some(_) => self.files(connection)?,
            None if self.at.is_some() => {
                return Err(CliError::Usage("--at needs --from or --recording".into()));
            }
            None => {
                let connection = connect::connect(&connection.options()).await?;
                if self.with.is_empty() {
                    connection
                } else {
                    objects::overlaid(connection, &self.with).await?
                }
            }
        };
        connection.notes.iter().for_each(|note| exit::note(note));
        Ok(connection)
    }

    /// Connects to the objects of `--from`.
    ///
    /// # Errors
    /// The files cannot be read, or the flags contradict each other.
    pub fn files(&self, mut connection: ConnectionArgs) -> Result<Connection, CliError> {
        let Some(from) = &self.from else { return Err(CliError::Usage("--from is missing".into())) };
        let namespace = connection.namespace.take();
        connection.refuse("--from asks no cluster")?;
        if let Some(RecordedTime::FromStart(_)) = self.at {
            let why = "--at of --from is a time, or a distance from the newest one as in -30s";
            return Err(CliError::Usage(why.into()));
        }
        let mut files = objects::connect(from, &self.with, self.complete, |newest| match self.at {
            Some(RecordedTime::At(at)) => Some(at),
            Some(RecordedTime::BeforeEnd(span)) => newest.map(|newest| newest - span),
            Some(RecordedTime::FromStart(_)) | None => newest,
        })?;
        if let Some(namespace) = namespace {
            files.namespace = namespace;
        }
        Ok(files)
    }

    /// Fails if objects of files were given to a command that writes.
    ///
    /// # Errors
    /// A flag for files was given.
    pub fn refuse_writes(&self) -> Result<(), CliError> {
        if *self == Self::default() {
            return Ok(());
        }
        let text = "--from and --with write nothing: leave them out, or leave out --enforce";
        Err(CliError::Usage(text.into()))
    }

    pub const fn has_files(&self) -> bool {
        self.from.is_some() || !self.with.is_empty()
    }
}
