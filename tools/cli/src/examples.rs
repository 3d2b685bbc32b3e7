//! What the help of each command begins with. A test reads each line as the command does.

pub(crate) const ALL: &str = "\
Examples:
  onetrip run pytest
  onetrip run --html report.html python app.py
  onetrip explain OT001
  onetrip ping postgres://db.example/shop";

pub(crate) const RUN: &str = "\
Examples:
  onetrip run pytest
  onetrip run --budget trips=200 --fail-on OT001 pytest
  onetrip run --html report.html python app.py
  onetrip run --remedies exact --rtt 13ms python app.py";

pub(crate) const GATEWAY: &str = "\
Examples:
  onetrip gateway --upstream postgres://db:5432
  onetrip gateway --listen 127.0.0.1:6432 --upstream postgres://db:5432 --trace day.trace
  onetrip gateway --listen 127.0.0.1:3307 --upstream mysql://db:3306";

#[cfg(feature = "capture")]
pub(crate) const ANALYZE: &str = "\
Examples:
  onetrip analyze shop.pcap
  tcpdump -i eth0 -s 0 -w - port 5432 | onetrip analyze -
  onetrip analyze --client client.pcap --server server.pcap";

#[cfg(feature = "capture")]
pub(crate) const CAPTURE: &str = "\
Examples:
  onetrip capture -i eth0
  onetrip capture -i any port 5432 or port 6432
  onetrip capture -i lo --format json -o shop.json port 5432";

pub(crate) const REPORT: &str = "\
Examples:
  onetrip report day.trace
  onetrip report --html day.html day.trace
  onetrip report --compare yesterday.trace --max-increase 5% day.trace";

pub(crate) const FORECAST: &str = "\
Examples:
  onetrip forecast day.trace
  onetrip forecast --at 0.4ms --at 12.9ms --chart day.svg day.trace";

pub(crate) const EXPLAIN: &str = "\
Examples:
  onetrip explain
  onetrip explain OT001
  onetrip explain n+1
  onetrip explain trip";

pub(crate) const EXPORT: &str = "\
Examples:
  onetrip export day.trace
  onetrip export --format csv -o day.csv day.trace";

#[cfg(feature = "embed")]
pub(crate) const SERVE: &str = "\
Examples:
  onetrip serve shop.db
  onetrip serve --listen 0.0.0.0:5433 --user ann --password-file secret.txt shop.db";

pub(crate) const DEMO: &str = "\
Examples:
  onetrip demo
  onetrip demo --employees 1000";

pub(crate) const PING: &str = "\
Examples:
  onetrip ping postgres://ann@db.example/shop
  onetrip ping -n 100 'host=db.example dbname=shop sslmode=require'
  onetrip ping mysql://ann@db.example/shop";

pub(crate) const READY: &str = "\
Examples:
  onetrip ready 127.0.0.1:6432
  onetrip ready --mysql --timeout 10s 127.0.0.1:3307";

pub(crate) const LINK: &str = "\
Examples:
  onetrip link --listen 127.0.0.1:6000 --to 10.0.0.5:5432 --rtt 13ms
  onetrip link --to 10.0.0.5:443 --rtt 70ms --jitter 5ms --bandwidth 32mbit";

#[cfg(feature = "lab")]
pub(crate) const LAB: &str = "\
Examples:
  onetrip lab list
  onetrip lab fetch
  onetrip lab --database postgres://ann@127.0.0.1/scratch loop";

#[cfg(feature = "lab")]
pub(crate) const TUNE: &str = "\
Examples:
  onetrip lab tune --trace day.trace
  onetrip lab tune --database postgres://ann@127.0.0.1/shop --table files";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  onetrip completions bash > ~/.local/share/bash-completion/completions/onetrip
  onetrip completions fish > ~/.config/fish/completions/onetrip.fish";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::args::{Cli, commands};

    /// The words of a line that begin with the command's name, as a shell gives them.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap_or_default().rsplit(" | ").next().unwrap_or_default();
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for character in line.trim().chars() {
            match character {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().expect("there is one").push(other),
            }
        }
        words
    }

    #[test]
    fn every_command_begins_its_help_with_examples_that_it_takes() {
        let root = Cli::command();
        for command in commands(&root) {
            let name = command.get_name();
            if command.is_hide_set() || name == "help" || ["list", "chart"].contains(&name) {
                continue;
            }
            let before = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            let mut lines = before.lines();
            assert_eq!(lines.next(), Some("Examples:"), "{name}");
            let mut count = 0;
            for line in lines {
                let words = words(line);
                assert_eq!(words[0], "onetrip", "{line}");
                assert!(
                    name == "onetrip" || words.iter().any(|word| word == name),
                    "{line} is not of {name}"
                );
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{line}: {error}");
                }
                count += 1;
            }
            assert!(count > 0, "{name}");
        }
    }
}
