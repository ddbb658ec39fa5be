//! Themes of the user: files in `themes` of the configuration folder, which inherit from others.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    app::{OwnTheme, ThemeChoice, ThemeName},
    executor::guards,
    ui::{Theme, ThemeError, theme::ThemeParent},
};
use kordon_core::cluster::nearest::{did_you_mean, nearest};

/// The folder of the user's themes.
#[derive(Clone, Debug, Default)]
pub struct OwnThemes(Option<PathBuf>);

/// Why a theme of the user cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OwnThemeError {
    #[error("cannot read the theme {}: {error}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{}:{}: {error}", path.display(), error.line())]
    Bad { path: PathBuf, error: ThemeError },
    #[error("{}:{line}: there is no theme {name:?} to inherit from{}", path.display(), did_you_mean(meant))]
    NoParent { path: PathBuf, line: usize, name: String, meant: Option<String> },
    /// A theme inherits from itself. `chain` has the names on the way from the theme back to itself.
    #[error("{}:{line}: the theme inherits from itself: {}", path.display(), chain.join(" → "))]
    Circle { path: PathBuf, line: usize, chain: Vec<String> },
}

impl OwnThemes {
    /// Returns this user's folder of themes, whether or not it exists.
    pub fn find() -> Self {
        Self(guards::configuration_folder().map(|folder| folder.join("themes")))
    }

    /// Names of the themes, in alphabetical order: those of the files `NAME.toml`.
    pub fn names(&self) -> Vec<String> {
        let entries = self.0.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let mut names: Vec<String> = paths.filter_map(|path| name_of(&path)).collect();
        names.sort();
        names
    }

    /// Reads a theme, and those that it inherits from.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, a theme does not exist, or one inherits from itself.
    pub fn read(&self, name: &str) -> Result<ThemeChoice, OwnThemeError> {
        let (root, theme) = self.read_with_parents(name, &mut Vec::new())?;
        let own = OwnTheme { name: name.to_owned(), root, styles: theme.into_styles() };
        Ok(ThemeChoice::Own(Arc::new(own)))
    }

    /// Reads a theme. `heirs` are the themes that inherit from it.
    fn read_with_parents(
        &self,
        name: &str,
        heirs: &mut Vec<String>,
    ) -> Result<(ThemeName, Theme), OwnThemeError> {
        let path = self.path(name);
        let text =
            fs::read_to_string(&path).map_err(|error| OwnThemeError::Io { path: path.clone(), error })?;
        let bad = |error| OwnThemeError::Bad { path: path.clone(), error };
        let parent = Theme::parent(&text).map_err(bad)?;
        heirs.push(name.to_owned());
        let (root, inherited) = match parent {
            None => (ThemeName::default(), Theme::bundled(ThemeName::default()).clone()),
            Some(parent) => self.read_parent(parent, &path, heirs)?,
        };
        Ok((root, Theme::parse_over(&text, &inherited).map_err(bad)?))
    }

    /// Reads the theme that the file at `path` inherits from; that file is the last of the heirs. A file with the name
    /// of a bundled theme inherits from the bundled theme.
    fn read_parent(
        &self,
        (name, line): ThemeParent,
        path: &Path,
        heirs: &mut Vec<String>,
    ) -> Result<(ThemeName, Theme), OwnThemeError> {
        let bundled = ThemeName::parse(&name);
        if let Some(place) = heirs.iter().position(|heir| *heir == name)
            && (bundled.is_none() || place + 1 < heirs.len())
        {
            let chain = heirs[place..].iter().cloned().chain([name]).collect();
            return Err(OwnThemeError::Circle { path: path.to_owned(), line, chain });
        }
        let known = self.names();
        if known.contains(&name) && !heirs.contains(&name) {
            return self.read_with_parents(&name, heirs);
        }
        let Some(bundled) = bundled else {
            let names =
                known.iter().map(String::as_str).chain(ThemeName::ALL.iter().map(|name| name.as_str()));
            let meant = nearest(&name, names).map(str::to_owned);
            return Err(OwnThemeError::NoParent { path: path.to_owned(), line, name, meant });
        };
        Ok((bundled, Theme::bundled(bundled).clone()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.clone().unwrap_or_default().join(format!("{name}.toml"))
    }
}

/// Name of the theme that the file at `path` has; `None` if it is not a file of a theme.
fn name_of(path: &Path) -> Option<String> {
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let name = path.file_stem()?.to_str().filter(|_| is_toml)?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    name.chars().all(is_name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;
    use crate::ui::Role;

    /// Writes these themes to files, and reads the first of them.
    fn read(files: &[(&str, &str)]) -> Result<ThemeChoice, String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(format!("{name}.toml")), text).expect("written");
        }
        let themes = OwnThemes(Some(folder.path().to_owned()));
        themes.read(files[0].0).map_err(|error| {
            let text = error.to_string();
            text.replace(&format!("{}/", folder.path().display()), "")
        })
    }

    #[test]
    fn roles_come_from_the_nearest_theme_that_sets_them() {
        let files = [
            ("mine", "inherits = \"team\"\nkey = \"#010203\""),
            ("team", "inherits = \"nord\"\nkey = \"red\"\nborder = \"#040506\""),
        ];
        let mine = read(&files).expect("valid");
        assert_eq!((mine.name(), mine.root()), ("mine", ThemeName::Nord));
        let theme = Theme::chosen(&mine);
        let colour = |role| theme.style(role).fg;
        assert_eq!(colour(Role::Key), Some(Color::Rgb(1, 2, 3)));
        assert_eq!(colour(Role::Border), Some(Color::Rgb(4, 5, 6)));
        assert_eq!(colour(Role::NodeReady), Theme::bundled(ThemeName::Nord).style(Role::NodeReady).fg);
        assert_eq!(read(&[("bare", "key = \"red\"")]).expect("valid").root(), ThemeName::Dark);
    }

    #[test]
    fn a_file_with_the_name_of_a_bundled_theme_changes_that_one() {
        let nord = read(&[("nord", "inherits = \"nord\"\nkey = \"red\"")]).expect("valid");
        assert_eq!((nord.name(), nord.root()), ("nord", ThemeName::Nord));
        assert_eq!(Theme::chosen(&nord).style(Role::Key).fg, Some(Color::Red));
    }

    #[test]
    fn mistakes_name_the_file_and_the_line() {
        let error = |files: &[(&str, &str)]| read(files).expect_err("a mistake");
        let circle = [("a", "\ninherits = \"b\""), ("b", "inherits = \"c\""), ("c", "# c\ninherits = \"a\"")];
        assert_eq!(error(&circle), "c.toml:2: the theme inherits from itself: a → b → c → a");
        assert_eq!(error(&[("a", "inherits = \"a\"")]), "a.toml:1: the theme inherits from itself: a → a");
        let parent = error(&[("a", "inherits = \"nrod\"")]);
        assert_eq!(parent, "a.toml:1: there is no theme \"nrod\" to inherit from; did you mean nord?");
        let role = error(&[("a", "[node]\nraedy = \"red\"")]);
        assert!(role.starts_with("a.toml:2: the theme has a role \"node.raedy\""), "{role}");
        let colour = error(&[("a", "inherits = \"b\""), ("b", "base = \"#12\"")]);
        assert!(colour.starts_with("b.toml:1: the theme's role \"base\" has \"#12\""), "{colour}");
        assert!(error(&[("a", "base =")]).starts_with("a.toml:1: the theme is not TOML"));
    }
}
