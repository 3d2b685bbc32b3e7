use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::StyledStr;
use clap::{Arg, Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::examples;
use crate::exit::ExitCode;
use crate::output::{Stream, print};

#[derive(Debug, Args)]
#[command(before_help = examples::COMPLETIONS)]
pub(crate) struct CompletionsOptions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// Where the pages go: onetrip.1 and one for each command
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// `onetrip completions SHELL`.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "onetrip", &mut script);
    let script = String::from_utf8(script).context("the completions are not text")?;
    print(Stream::Output, |_| script)?;
    Ok(ExitCode::SUCCESS)
}

/// `onetrip man DIRECTORY`.
pub(crate) fn man(options: &ManOptions) -> Result<ExitCode> {
    let written = std::fs::create_dir_all(&options.directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &options.directory));
    written.with_context(|| format!("cannot write pages into {}", options.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// `onetrip texts`: what `--help` says of each command and option, below a heading that names it. `scripts/prose` reads it.
pub(crate) fn texts() -> Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let mut page = String::new();
    write_texts(&command, &mut page);
    print(Stream::Output, |_| page)?;
    Ok(ExitCode::SUCCESS)
}

fn write_texts(command: &clap::Command, page: &mut String) {
    let name = name_of(command);
    write_text(name, texts_of(command), page);
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        write_argument(name, argument, page);
    }
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        write_texts(sub, page);
    }
}

fn name_of(command: &clap::Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// What `--help` says of a command before its options, of the command itself, and after them.
fn texts_of(command: &clap::Command) -> [Option<&StyledStr>; 3] {
    [
        command.get_before_long_help().or_else(|| command.get_before_help()),
        command.get_long_about().or_else(|| command.get_about()),
        command.get_after_long_help().or_else(|| command.get_after_help()),
    ]
}

/// What `--help` says of an option.
fn help_of(argument: &Arg) -> Option<&StyledStr> {
    argument.get_long_help().or_else(|| argument.get_help())
}

fn write_argument(command: &str, argument: &Arg, page: &mut String) {
    let name = match argument.get_long() {
        Some(long) => format!("{command} --{long}"),
        None => format!("{command} {}", argument.get_id()),
    };
    write_text(&name, [help_of(argument)], page);
    for value in argument.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        write_text(&format!("{name} {}", value.get_name()), [value.get_help()], page);
    }
}

fn write_text<'a>(name: &str, texts: impl IntoIterator<Item = Option<&'a StyledStr>>, page: &mut String) {
    page.push_str(&format!("# {name}\n\n"));
    for text in texts.into_iter().flatten() {
        page.push_str(&format!("{text}\n\n"));
    }
}

/// `onetrip reference`: docs/commands.md.
pub(crate) fn reference() -> Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let mut page = String::from(
        "# Commands and options\n\n`cargo xtask docs` makes this page from the texts of `--help`. A build without some features has \
         fewer commands\n([install](install.md)).\n",
    );
    for command in command.get_subcommands() {
        write_reference(command, &mut page);
    }
    print(Stream::Output, |_| page)?;
    Ok(ExitCode::SUCCESS)
}

fn write_reference(command: &clap::Command, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let text = |text: Option<&StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let [before, about, after] = texts_of(command).map(text);
    page.push_str(&format!("\n## {}\n\n{}.\n", name_of(command), about.trim_end_matches('.')));
    if let Some((_, examples)) = before.split_once("Examples:\n") {
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        page.push_str(&format!("\n```sh\n{}\n```\n", lines.join("\n")));
    }
    if !after.is_empty() {
        page.push_str(&format!("\n{}\n", escaped(&after)));
    }
    let is_told = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    let mut headings: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for argument in command.get_arguments().filter(is_told) {
        let usual = if argument.is_positional() { "Arguments" } else { "Options" };
        let heading = argument.get_help_heading().unwrap_or(usual);
        match headings.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => headings.push((heading, vec![argument])),
        }
    }
    for (heading, arguments) in headings {
        page.push_str(&format!("\n**{heading}**\n\n"));
        arguments.into_iter().for_each(|argument| write_option(argument, page));
    }
    for sub in command.get_subcommands() {
        write_reference(sub, page);
    }
}

/// An item of a list: the names of an option and of its value, what it does, and its values.
fn write_option(argument: &Arg, page: &mut String) {
    let takes_value = argument.get_action().takes_values();
    let values = argument.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
    let value = if takes_value { values.collect::<Vec<_>>().join(" ") } else { String::new() };
    let may_lack_value = argument.get_num_args().is_some_and(|number| number.min_values() == 0);
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let shown = match names.join(", ") {
        names if takes_value && may_lack_value => format!("{names}[={value}]"),
        names => [names, value].join(" "),
    };
    let help = help_of(argument).map(ToString::to_string).unwrap_or_default();
    let mut paragraphs = help.split("\n\n").map(escaped);
    let mut item = format!("- `{}`: {}", shown.trim(), paragraphs.next().unwrap_or_default());
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if takes_value && !defaults.is_empty() && !argument.is_hide_default_value_set() {
        item.push_str(&format!(" [default: {}]", defaults.join(" ")));
    }
    for paragraph in paragraphs {
        item.push_str(&format!("\n\n  {paragraph}"));
    }
    page.push_str(&item);
    page.push('\n');
    let possible = argument.get_possible_values();
    let shown = possible
        .iter()
        .filter(|value| !value.is_hide_set() && takes_value && !argument.is_hide_possible_values_set());
    for value in shown {
        match value.get_help() {
            Some(help) => {
                page.push_str(&format!("  - `{}`: {}\n", value.get_name(), escaped(&help.to_string())))
            }
            None => page.push_str(&format!("  - `{}`\n", value.get_name())),
        }
    }
}

/// What would be markup is none.
fn escaped(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_and_option_of_the_help_has_a_text() {
        let mut command = Cli::command();
        command.build();
        let mut page = String::new();
        write_texts(&command, &mut page);
        let mut lines = page.lines().filter(|line| !line.is_empty()).peekable();
        let mut headings = 0;
        while let Some(line) = lines.next() {
            let Some(name) = line.strip_prefix("# ") else { continue };
            headings += 1;
            let is_value = name.split(' ').count() > 3;
            let has_text = lines.peek().is_some_and(|next| !next.starts_with("# "));
            assert!(has_text || is_value, "{name} has no text");
        }
        assert!(headings > 100, "{headings} headings are not all");
        assert!(page.contains("# onetrip run --remedies\n"), "{page}");
        assert!(!page.contains("# onetrip texts"), "{page}");
    }
}
