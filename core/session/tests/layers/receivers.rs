//! Who hears of which event: read from the lines of `on_event`, which has one for each event, also for those it ignores.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Events in the order of `events.rs`, and who does something about them, in the order in which they are told.
const HEARD: &str = "\
Opened: facts lobs begin
PathMeasured: facts flights
ParameterReported: facts flights cursors
UnknownReported: flights
SetRead: begin
Followed: begin
StatementSent: begin
ReadSent: flights
SavepointSent: flights lobs
TransactionBegun: facts flights lobs
LevelChanges: facts flights lobs
StateChanges: facts flights lobs statements chatter
DescriptorsDoubted: lobs
EndSent: facts unseen flights lobs
UnitReady: facts lobs begin cursors
TransactionOver: facts unseen flights lobs begin cursors
UnitFailed: lobs cursors
PortalLeaves: cursors
UnnamedPortalEnds: cursors
UnnamedPortalMade: unseen
UnnamedStatementMade: unseen
UnnamedStatementGone: unseen
CameUnasked: flights chatter
Disproved: flights lobs
";

/// The events that a file does something about: those of the lines of its `on_event` that are not empty.
fn heard_in(text: &str) -> BTreeSet<&str> {
    let body = text.split_once("fn on_event(").expect("it hears").1;
    let body = body.split_once("\n    }\n").expect("it ends").0;
    let (mut heard, mut pattern) = (BTreeSet::new(), Vec::new());
    for line in body.lines().map(str::trim_start) {
        if !line.starts_with("Event::") && !line.starts_with("| Event::") {
            continue;
        }
        let (events, made_of_it) = line.split_once("=>").unwrap_or((line, ""));
        let names = events.split("Event::").skip(1);
        pattern.extend(names.filter_map(|name| name.split(|next: char| !next.is_alphanumeric()).next()));
        if line.contains("=>") {
            let ended = std::mem::take(&mut pattern);
            if made_of_it.trim_start() != "{}" {
                heard.extend(ended);
            }
        }
    }
    heard
}

fn text_of<'a>(files: &'a [(PathBuf, String)], name: &str) -> &'a str {
    let is_it = |path: &PathBuf| path.ends_with(name);
    &files.iter().find(|(path, _)| is_it(path)).unwrap_or_else(|| panic!("no {name}")).1
}

/// What [`HEARD`] is by these files.
fn heard(files: &[(PathBuf, String)]) -> String {
    let tell = text_of(files, "session/list.rs").split_once("fn tell(").expect("it tells").1;
    let tell = tell.split_once("\n    }\n").expect("it ends").0;
    let calls = tell.lines().filter_map(|line| line.trim_start().split_once(".on_event("));
    let told =
        calls.map(|(receiver, _)| receiver.trim_start_matches("self.")).filter(|name| *name != "example");
    let receivers: Vec<(&str, BTreeSet<&str>)> = told
        .map(|name| {
            let places = ["", "services/", "remedies/"].map(|folder| format!("src/{folder}{name}"));
            let places = places.iter().flat_map(|place| [format!("{place}.rs"), format!("{place}/mod.rs")]);
            let hears = |(path, text): &&(PathBuf, String), place: &str| {
                path.ends_with(place) && text.contains("fn on_event(")
            };
            let file = |place: String| files.iter().find(|file| hears(file, &place));
            (name, heard_in(&places.into_iter().find_map(file).expect("its file").1))
        })
        .collect();
    assert_eq!(receivers.len(), 10);
    let list = text_of(files, "src/events.rs").split_once("enum Event").expect("a list").1;
    let events = list.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| {
        line.starts_with(|first: char| first.is_ascii_uppercase()) // neither a field nor a comment
    });
    let names = events.filter_map(|line| line.split(|next: char| !next.is_alphanumeric()).next());
    let shown = names.map(|event| {
        let hears = receivers.iter().filter(|(_, heard)| heard.contains(event)).map(|(name, _)| *name);
        format!("{event}: {}\n", hears.collect::<Vec<_>>().join(" "))
    });
    shown.collect()
}

#[test]
fn each_event_is_heard_by_these() {
    let found = heard(&super::files(""));
    assert_eq!(found, HEARD, "who hears of what has changed: is that meant?\n{found}");
}
