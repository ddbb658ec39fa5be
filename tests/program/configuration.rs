//! The configuration: settings from the file and the environment, and their errors.

use std::{fs, os::unix::fs::PermissionsExt};

use kordon::{
    app::ThemeName,
    ui::{Role, Theme},
};
use kordon_demo::api::ApiOptions;
use ratatui::style::Color;
use serde_json::{Value, json};

use crate::common::{
    program::{Server, Shell, path},
    terminal::Terminal,
};

/// Exit codes, as in `docs/reference/cli.md`.
const DONE: i32 = 0;
const USAGE: i32 = 2;
const GUARDED: i32 = 8;

/// Creates a shell with this configuration in its home folder.
fn configured(text: &str) -> Shell {
    let shell = Shell::new();
    let folder = shell.home.path().join(".config/kordon");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("config.toml"), text).expect("written");
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn predictions_rest_on_the_settings_that_are_configured_for_their_context() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let text = "[controller]\nnode-monitor-grace-period = \"70s\"\nnode-eviction-rate = 1\n\
                [contexts.here.controller]\nnode-eviction-rate = 0.5\n\
                [contexts.elsewhere.controller]\nnode-monitor-period = \"9s\"";
    let shell = configured(text);
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let status = async |more: &[&str]| {
        let line = [&["status", "--no-pods", "-o", "json", "--kubeconfig", &kubeconfig], more].concat();
        let output = shell.run(&line).await;
        assert_eq!(output.code, DONE, "{}", output.err);
        let status = output.json();
        let settings = status["controller"]["settings"].as_array().expect("settings").clone();
        move |flag: &str| {
            let of = settings.iter().find(|setting| setting["flag"] == flag).expect("a setting").clone();
            (
                of["value"].as_str().unwrap_or_default().to_owned(),
                of["origin"].as_str().unwrap_or_default().to_owned(),
            )
        }
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    let settings = status(&[]).await;
    assert_eq!(settings("node-monitor-grace-period"), pair("1m10s", "configuration"));
    assert_eq!(settings("node-eviction-rate"), pair("0.5", "configuration"));
    assert_ne!(settings("node-monitor-period").1, "configuration", "it is that of another context");
    let settings = status(&["--node-eviction-rate=2"]).await;
    assert_eq!(settings("node-eviction-rate"), pair("2", "override"));
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_operations_rest_on_the_settings_of_flags_and_configuration_too() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let off = "--controllers=*,-taint-eviction-controller";
    let cases: [(&str, &[&str], bool); 4] = [
        ("", &["taint"], true),
        ("", &["plan", "taint", off], false),
        ("", &["taint", off], false),
        ("[controller]\ncontrollers = \"*,-taint-eviction-controller\"", &["plan", "taint"], false),
    ];
    for (config, command, evicts) in cases {
        let line = [command, &["nodes", "general-1a-02", "away=now:NoExecute", "-s", &server.url]].concat();
        let table = configured(config).run(&line).await.done();
        let warning = "NoExecute taints evict no pods here: the controller for it does not run";
        assert_eq!(table.contains(warning), !evicts, "{line:?}: {table}");
        assert_eq!(table.contains("shop/"), evicts, "{line:?}: {table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_printed_with_its_origins_and_an_error_names_file_and_line() {
    let mut shell = configured("theme = \"light\"\n[drain]\nparallel = 3\nignore-daemonsets = true");
    shell.environment.push(("KORDON_DRAIN_PARALLEL".into(), "4".into()));
    let table = shell.run(&["config"]).await.done();
    let row = |key: &str| {
        let line = table.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert!(table.starts_with(path(&shell.home.path().join(".config/kordon/config.toml"))), "{table}");
    assert_eq!(row("theme "), "theme light file line 1");
    assert_eq!(row("drain.parallel"), "drain.parallel 4 environment KORDON_DRAIN_PARALLEL");
    assert_eq!(row("drain.ignore-daemonsets"), "drain.ignore-daemonsets true file line 4");
    assert!(row("drain.delete-emptydir-data").contains("false default"), "{table}");

    let shell = configured("theme = \"light\"\n\n[drian]\nparallel = 3");
    let error = shell.refused(&["drain", "n1"], USAGE).await;
    assert!(
        error.contains(".config/kordon/config.toml:3: unknown key \"drian\": did you mean \"drain\"?"),
        "{error}"
    );
    assert_eq!(shell.run(&["--help"]).await.code, DONE, "help needs no configuration");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_writes_refuses_in_a_read_only_context_and_names_the_line() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let shell = configured("[contexts.elsewhere]\nread-only = false\n[contexts.here]\nread-only = true");
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let node = "general-1a-02";
    let commands: [&[&str]; 5] = [
        &["drain", node, "--ignore-daemonsets", "--enforce", "--yes"],
        &["cordon", node, "--enforce", "--yes"],
        &["taint", "nodes", node, "a=b:NoSchedule", "--enforce", "--yes"],
        &["undo", "--enforce", "--yes"],
        &["controller", "--enforce", "--listen", "127.0.0.1:0"],
    ];
    for command in commands {
        let error = shell.refused(&[command, &["--kubeconfig", &kubeconfig]].concat(), GUARDED).await;
        assert!(error.contains("contexts.here.read-only in "), "{error}");
        assert!(error.contains("config.toml:4 makes context here read-only"), "{error}");
    }
    assert_eq!(server.written(), Vec::<String>::new());
    shell.run(&["cordon", node, "--kubeconfig", &kubeconfig]).await.done();
}

#[tokio::test(flavor = "multi_thread")]
async fn guard_rails_of_a_context_add_to_the_others_and_no_flag_loosens_them() {
    let server = Server::start(ApiOptions::default()).await;
    let _world = server.inhabit();
    server.govern().await;
    let shell =
        configured("[contexts.elsewhere.guards]\nmax-nodes = 0\n[contexts.here.guards]\nmax-nodes = 1");
    let kubeconfig = shell.kubeconfig(&server.url, json!({}));
    let (one, other) = ("general-1a-02", "general-1b-02");
    let cordon = async |words: &[&str]| {
        let line = [&["cordon", "--enforce", "--yes", "--kubeconfig", &kubeconfig], words].concat();
        shell.run(&line).await
    };
    for more in [&[][..], &["--max-nodes=5"]] {
        let refused = cordon(&[&[one, other], more].concat()).await;
        assert_eq!(refused.code, GUARDED, "{}", refused.err);
        assert!(refused.err.contains("--override max-nodes"), "{}", refused.err);
    }
    assert_eq!(server.written(), Vec::<String>::new());
    assert_eq!(cordon(&[one]).await.code, DONE);
    assert_eq!(cordon(&[one, other, "--override", "max-nodes"]).await.code, DONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_prints_every_error_of_a_file_with_its_line() {
    let shell = configured("theme = \"pink\"\n[drain]\nparalel = 3");
    let output = shell.run(&["config", "check"]).await;
    assert_eq!(output.code, USAGE);
    let lines: Vec<&str> = output.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", output.out);
    assert!(
        lines[0].contains("config.toml:1: theme = \"pink\" is not one of auto, dark, light"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].ends_with("config.toml:3: unknown key \"paralel\": did you mean \"parallel\"?"),
        "{}",
        lines[1]
    );
    assert!(output.err.contains("2 errors in "), "{}", output.err);
    let good = shell.file("good.toml", "theme = \"light\"");
    assert_eq!(shell.run(&["config", "check", &good]).await.done(), format!("{good}: ok\n"));
    assert!(Shell::new().run(&["config", "check"]).await.done().contains("no file"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_file_passes_the_check_and_the_schema_knows_its_tables() {
    let shell = Shell::new();
    let default = shell.run(&["config", "default"]).await.done();
    assert!(default.starts_with("#:schema ") && default.contains("#read-only = true"), "{default}");
    let file = shell.file("default.toml", &default);
    assert!(shell.run(&["config", "check", &file]).await.done().ends_with(": ok\n"));
    let schema: Value =
        serde_json::from_str(&shell.run(&["config", "schema"]).await.done()).expect("a JSON schema");
    for table in ["drain", "controller", "contexts", "keys", "aliases", "columns", "views"] {
        assert!(schema["properties"][table]["description"].is_string(), "{table}");
    }
    let plain = shell.run(&["config"]).await.done();
    assert_eq!(shell.run(&["config", "show"]).await.done(), plain);
}

/// Creates a shell with this configuration. Its editor is a script with these lines, in which `$1` is the file to edit.
fn with_editor(config: &str, script: &str) -> Shell {
    let mut shell = configured(config);
    let editor = shell.file("editor", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).expect("executable");
    shell.environment.push(("EDITOR".into(), editor));
    shell.environment.push(("PATH".into(), std::env::var("PATH").expect("a path")));
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_file_replaces_the_old_one_only_if_it_is_valid() {
    let read = |shell: &Shell| {
        fs::read_to_string(shell.home.path().join(".config/kordon/config.toml")).expect("the file")
    };
    let shell = with_editor("theme = \"light\"\n", "echo 'ascii = true' >> \"$1\"");
    assert!(shell.run(&["config", "edit"]).await.done().ends_with("config.toml: ok\n"));
    assert_eq!(read(&shell), "theme = \"light\"\nascii = true\n");

    let shell = with_editor("theme = \"light\"\n", "echo 'asci = true' >> \"$1\"");
    let error = shell.refused(&["config", "edit"], USAGE).await;
    assert!(error.contains("config.toml:2: unknown key \"asci\": did you mean \"ascii\"?"), "{error}");
    assert_eq!(read(&shell), "theme = \"light\"\n");
    let kept = error.trim().rsplit(' ').next().expect("a path");
    assert_eq!(
        fs::read_to_string(kept).expect("what was edited is kept"),
        "theme = \"light\"\nasci = true\n"
    );

    let shell = with_editor("theme = \"light\"\n", "true");
    assert_eq!(shell.run(&["config", "edit"]).await.done(), "nothing was changed\n");

    let shell = with_editor("theme = \"light\"\n", "exit 3");
    assert!(shell.refused(&["config", "edit"], 1).await.contains("the configuration is as it was"));
    assert!(configured("").refused(&["config", "edit"], USAGE).await.contains("set VISUAL or EDITOR"));

    // `config edit` also opens a broken file, so that it can be repaired.
    let shell = with_editor("tehme = 1", "echo 'theme = \"light\"' > \"$1\"");
    shell.run(&["config", "edit"]).await.done();
    assert_eq!(read(&shell), "theme = \"light\"\n");
}

#[test]
fn the_tour_is_shown_at_the_first_start_and_not_again() {
    let shell = configured("");
    let start = |is_first: bool, tour: &str| {
        let command = shell.under_terminal(&["demo", tour]);
        if is_first {
            fs::remove_file(shell.tour_seen()).expect("it was there");
        }
        Terminal::with(command)
    };
    let plain = |mut terminal: Terminal| {
        terminal.wait("control-plane-1a-01");
        assert!(!terminal.text().contains("Tour 1 of 6"), "{}", terminal.text());
        terminal.type_in("q");
        assert!(terminal.end().success());
    };
    plain(start(true, "--tour=false"));
    let mut first = start(true, "--tour");
    first.wait("Tour 1 of 6");
    first.type_in("\r");
    first.wait("Tour 2 of 6");
    first.type_in("\x1b");
    first.wait_gone("Tour 2 of 6");
    first.type_in("q");
    assert!(first.end().success());
    assert!(shell.tour_seen().exists());
    plain(start(false, "--tour"));
}

#[tokio::test]
async fn own_themes_inherit_and_their_mistakes_name_file_and_line() {
    let shell = configured("theme = \"mine\"\n[contexts.demo]\ntheme = \"team\"");
    let folder = shell.home.path().join(".config/kordon/themes");
    fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    let frame = async |arguments: &[&str]| {
        let line = [&["demo", "--snapshot", "frame.ansi", "--after", "1s"], arguments].concat();
        let output = shell.run(&line).await;
        (
            output.code,
            output.err,
            fs::read_to_string(shell.home.path().join("frame.ansi")).unwrap_or_default(),
        )
    };
    let output = shell.run(&["config"]).await;
    assert_eq!(output.code, 2, "there is none yet: {}", output.err);
    assert!(
        output.err.contains("config.toml:1: theme = \"mine\" is not one of auto, dark, light"),
        "{}",
        output.err
    );

    write("mine.toml", "inherits = \"team\"\nbase = { fg = \"#010203\", bg = \"#fdfefd\" }");
    write("team.toml", "inherits = \"nord\"\nbase = { fg = \"#040506\", bg = \"#fcfdfc\" }");
    let (code, err, team) = frame(&[]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(team.contains("48;2;252;253;252"), "the context's theme: {team}");
    let (_, _, mine) = frame(&["--theme", "mine"]).await;
    assert!(mine.contains("38;2;1;2;3") && mine.contains("48;2;253;254;253"), "{mine}");

    write("team.toml", "inherits = \"mine\"\nbase = \"red\"");
    let (code, err, _) = frame(&[]).await;
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("themes/mine.toml:1: the theme inherits from itself: team → mine → team"), "{err}");
    write("team.toml", "inherits = \"nord\"\n\n[node]\nraedy = \"red\"");
    let (_, err, _) = frame(&[]).await;
    assert!(err.contains("themes/team.toml:4: the theme has a role \"node.raedy\""), "{err}");
    let output = shell.run(&["config", "check"]).await;
    let line = output.out.lines().next().unwrap_or_default();
    assert!(line.contains("config.toml:1: ") && line.contains("themes/team.toml:4: "), "{}", output.out);
    assert_eq!((output.out.lines().count(), output.code), (2, USAGE), "both chosen themes: {}", output.out);
    // A broken theme that is not requested causes no message.
    let (code, err, _) = frame(&["--theme", "dark"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
}

#[tokio::test]
async fn no_color_overrides_the_theme_of_flag_and_configuration() {
    let mut shell = configured("theme = \"nord\"");
    let line = ["demo", "--snapshot", "frame.ansi", "--after", "1s"];
    let frame = async |shell: &Shell, more: &[&str]| {
        shell.run(&[&line, more].concat()).await.done();
        fs::read_to_string(shell.home.path().join("frame.ansi")).expect("a frame")
    };
    let has_colours = |frame: &str| frame.contains("38;2;") || frame.contains("48;2;");
    assert!(has_colours(&frame(&shell, &[]).await));
    shell.environment.push(("NO_COLOR".into(), "1".into()));
    assert!(!has_colours(&frame(&shell, &[]).await));
    assert!(!has_colours(&frame(&shell, &["--theme", "light"]).await));
}

/// The skin uses the colours `default` and `lightslategray`, like k9s's own skins.
#[tokio::test]
async fn a_skin_of_k9s_becomes_a_theme_whose_text_can_be_read() {
    let shell = configured("");
    let skin = "k9s:\n  body: {fgColor: dodgerblue, bgColor: white}\n  frame:\n    status: {completedColor: lightslategray}\n";
    let file = shell.file("navy.yaml", skin);
    let output = shell.run(&["theme", "convert", &file]).await;
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(output.out.contains("inherits = \"light\""), "{}", output.out);
    assert!(output.err.contains("note: base: #1e90ff has a contrast of "), "{}", output.err);
    let folder = shell.home.path().join(".config/kordon/themes");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("navy.toml"), &output.out).expect("written");
    let line = ["demo", "--snapshot", "frame.ansi", "--after", "1s", "--theme", "navy"];
    shell.run(&line).await.done();
    let frame = fs::read_to_string(shell.home.path().join("frame.ansi")).expect("a frame");
    assert!(frame.contains("48;2;255;255;255"), "{frame}");

    let other = shell.file("other.yaml", "theme: dark");
    let refused = shell.refused(&["theme", "convert", &other], 2).await;
    assert!(refused.contains("other.yaml is not a skin of k9s"), "{refused}");
}

#[test]
fn without_a_configured_theme_the_terminal_is_asked_for_its_background() {
    let shell = configured("");
    let background = |text: &str| {
        // Answers as xterm does: OSC 10, OSC 11, then the device attributes.
        let mut terminal = Terminal::with(shell.under_terminal(&["demo"]));
        terminal.wait_for_raw("\x1b]11;?");
        terminal.type_in(&format!("\x1b]10;rgb:8080/8080/8080\x1b\\\x1b]11;rgb:{text}\x1b\\\x1b[?62;c"));
        terminal.wait("control-plane-1a-01");
        let raw = terminal.raw();
        terminal.type_in("q");
        assert!(terminal.end().success());
        raw
    };
    let light = background("ffff/ffff/ffff");
    let dark = background("0000/0000/0000");
    let sets = |raw: &str, theme: ThemeName| {
        let Some(Color::Rgb(red, green, blue)) = Theme::bundled(theme).style(Role::Base).bg else {
            panic!("a colour")
        };
        raw.contains(&format!("48;2;{red};{green};{blue}"))
    };
    assert!(sets(&light, ThemeName::Light) && !sets(&light, ThemeName::Dark));
    assert!(sets(&dark, ThemeName::Dark) && !sets(&dark, ThemeName::Light));
}

#[test]
fn a_running_dashboard_reads_the_file_again_and_only_becomes_stricter() {
    let shell = configured("");
    let file = shell.home.path().join(".config/kordon/config.toml");
    let mut terminal = Terminal::with(shell.under_terminal(&["demo"]));
    // The terminal is wide enough for whole messages.
    terminal.resize(30, 160);
    terminal.wait("control-plane-1a-01");
    fs::write(&file, "[contexts.demo]\nword = \"PRODUCTION\"\ncolour = \"red\"").expect("written");
    terminal.wait(" PRODUCTION  demo");
    fs::write(&file, "[contexts.demo]\nred-only = true").expect("written");
    terminal.wait("config.toml:2: unknown key \"red-only\": did you mean \"read-only\"?");
    assert!(terminal.text().contains(" PRODUCTION  demo"), "an error changes nothing");
    fs::write(&file, "[contexts.demo]\nread-only = true").expect("written");
    terminal.wait("READ-ONLY");
    fs::write(&file, "").expect("written");
    terminal.wait("this session stays read-only");
    terminal.type_in(":enforce\r");
    terminal.wait("contexts.demo.read-only (config.toml:2)");
    terminal.type_in("\x1b\x1b");
    terminal.type_in("q");
    assert!(terminal.end().success());
}

#[test]
fn what_is_shown_is_kept_as_a_view_of_the_configuration() {
    let shell = configured("# mine\n[aliases]\nd = \"drain\"\n");
    let file = shell.home.path().join(".config/kordon/config.toml");
    let mut terminal = Terminal::with(shell.under_terminal(&["demo"]));
    terminal.resize(30, 160);
    terminal.wait("control-plane-1a-01");
    terminal.type_in("2/general\r");
    terminal.type_in(":sort pods\r");
    terminal.type_in(":save-view big one\r");
    terminal.wait("name the view in letters");
    terminal.type_in("\x1b");
    terminal.wait_gone("name the view in letters");
    terminal.type_in(":save-view big\r");
    terminal.wait("view big is in");
    let kept = "# mine\n[aliases]\nd = \"drain\"\n\n[views.big]\npane = \"nodes\"\nfilter = \"general\"\nsort = \"pods\"\n";
    assert_eq!(fs::read_to_string(&file).expect("the file"), kept);
    terminal.type_in("q");
    assert!(terminal.end().success());

    let mut terminal = Terminal::with(shell.under_terminal(&["demo"]));
    terminal.resize(30, 160);
    terminal.wait("control-plane-1a-01");
    terminal.type_in(":view big\r");
    terminal.wait("/general");
    terminal.type_in(":save-view big\r");
    terminal.wait("there is a view big already");
    terminal.type_in("\x1b");
    terminal.wait_gone("there is a view big already");
    terminal.type_in("q");
    assert!(terminal.end().success());
}
