//! The command line: one file per subcommand, arguments become options once.
