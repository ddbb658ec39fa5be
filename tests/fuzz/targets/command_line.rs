//! Fuzz targets: command lines, and the configuration file with defaults of their flags.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, str};

use kordon::cli::{self, Config};
use kordon_core::engine::{ServerVersion, Settings};

/// Input: arguments, one a line. They are accepted, or refused with an error that is harmless on a terminal.
pub fn arguments(data: &[u8]) {
    let words = data.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    if let Err(error) = cli::check(std::iter::once("kordon".into()).chain(words), &Config::default()) {
        super::assert_harmless(&error);
    }
}

/// Input: a configuration file. Every command and release accepts the settings of a valid file, and the settings can be
/// written and read again.
pub fn configuration(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let config = match cli::check_configuration(text) {
        Ok(config) => config,
        Err(error) => {
            assert!(error.starts_with("config.toml:"), "{error:?} does not name the file");
            return super::assert_harmless(&error);
        }
    };
    for line in ["kordon", "kordon status", "kordon drain n1", "kordon plan drain n1", "kordon demo"] {
        assert_eq!(cli::check(line.split(' ').map(Into::into), &config), Ok(()), "{line}");
    }
    for minor in [20, 26, 36] {
        config.set("prod", &mut Settings::defaults(ServerVersion::new(1, minor)));
    }
    let set = values(&config);
    let written = set.iter().map(|(key, value)| format!("{key} = {}\n", serde_json::json!(value)));
    let again = cli::check_configuration(&written.collect::<String>()).expect("what is set is valid");
    assert_eq!(values(&again), set);
}

/// Returns the settings in a file that are flags or settings of the controller. Others are left out: the names of
/// contexts may contain dots, and the values of the dashboard's settings may be lists.
fn values(config: &Config) -> Vec<(String, String)> {
    let is_text = |key: &str| {
        ["drain.", "controller."].iter().any(|table| key.starts_with(table)) || !key.contains('.')
    };
    let settings = config.effective().into_iter();
    let of_file = settings.filter(|setting| setting.from == "file" && is_text(&setting.key));
    of_file.filter_map(|setting| Some((setting.key, setting.value?))).collect()
}
