//! Which file imports from which: names are followed through re-exports to the file that has them.
//!
//! A file also depends on those that add methods to its types: whoever has a value can call them without an import.

use std::collections::{BTreeMap, BTreeSet};

/// What depends on what, by paths below `src`.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// A name that a file has from elsewhere; `*` where it takes all.
struct Import {
    name: String,
    path: Vec<String>,
}

/// One module that is a file.
struct Module {
    file: String,
    tokens: Vec<String>,
    imports: Vec<Import>,
}

/// All modules, by their paths from the crate's root.
struct Modules(BTreeMap<Vec<String>, Module>);

/// The graph of these files, given by their paths below `src` and their texts.
pub(crate) fn graph(files: &[(String, String)]) -> Graph {
    let modules = files.iter().map(|(file, text)| {
        let tokens = tokens(code_of(text));
        let imports = imports(&tokens);
        (module_of(file), Module { file: file.clone(), tokens, imports })
    });
    let modules = Modules(modules.collect());
    let mut graph: Graph = files.iter().map(|(file, _)| (file.clone(), BTreeSet::new())).collect();
    for (own, module) in &modules.0 {
        let imported = module.imports.iter().map(|import| import.path.clone());
        for path in imported.chain(paths(&module.tokens)) {
            if let Some(file) = modules.find(own, &path, 0) {
                graph.entry(module.file.clone()).or_default().insert(file);
            }
        }
        for path in impls(&module.tokens) {
            if let Some(file) = modules.find(own, &path, 0) {
                graph.entry(file).or_default().insert(module.file.clone());
            }
        }
    }
    graph
}

/// Files that depend on a file of another folder which depends on them.
pub(crate) fn in_circles(graph: &Graph) -> BTreeSet<(&str, &str)> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reached_from(graph, file))).collect();
    let mut found = BTreeSet::new();
    for (file, others) in &reached {
        let back = |other: &&str| reached[*other].contains(file) && folder_of(other) != folder_of(file);
        found.extend(others.iter().copied().filter(back).map(|other| (*file, other)));
    }
    found
}

fn reached_from<'g>(graph: &'g Graph, file: &str) -> BTreeSet<&'g str> {
    let mut found = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        for other in &graph[file] {
            if found.insert(other.as_str()) {
                next.push(other);
            }
        }
    }
    found
}

fn folder_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn module_of(file: &str) -> Vec<String> {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let path = path.strip_suffix("/mod").unwrap_or(if path == "lib" { "" } else { path });
    path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// What is not of the tests.
fn code_of(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

impl Modules {
    /// The file of what a path names that is written in the module `own`; none for what is no module's, and for a module
    /// itself, from which a longer path takes something.
    fn find(&self, own: &[String], path: &[String], depth: usize) -> Option<String> {
        if depth > 16 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(&[], rest, depth),
            "self" => self.walk(own, rest, depth),
            "super" => self.walk(&own[..own.len().checked_sub(1)?], rest, depth),
            _ if self.is_module(own, first) => self.walk(own, path, depth),
            _ => self.import(own, first, rest, depth),
        }
    }

    fn is_module(&self, place: &[String], name: &str) -> bool {
        self.0.contains_key(&below(place, name))
    }

    /// What the module `own` has by this name from elsewhere.
    fn import(&self, own: &[String], name: &str, rest: &[String], depth: usize) -> Option<String> {
        let imports = &self.0.get(own)?.imports;
        let named = imports.iter().find(|import| import.name == name && import.path != [name])?;
        self.find(own, &[&named.path[..], rest].concat(), depth + 1)
    }

    /// Goes down from a module.
    fn walk(&self, place: &[String], path: &[String], depth: usize) -> Option<String> {
        let (first, rest) = path.split_first()?;
        if first == "super" {
            return self.walk(&place[..place.len().checked_sub(1)?], rest, depth);
        }
        if self.is_module(place, first) {
            return self.walk(&below(place, first), rest, depth);
        }
        let imported = self.import(place, first, rest, depth);
        imported.or_else(|| self.0.get(place).map(|module| module.file.clone()))
    }
}

/// The path of a module inside another.
fn below(place: &[String], name: &str) -> Vec<String> {
    place.iter().cloned().chain([name.to_owned()]).collect()
}

/// Words, `::` and single signs of a text without its comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
        let length = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' => quoted(rest, '"'),
            '\'' if rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'') => quoted(rest, '\''),
            _ if rest.starts_with("::") => 2,
            _ if is_word(first) => rest.find(|sign| !is_word(sign)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_code = !token.starts_with("//") && !token.starts_with('"') && !first.is_whitespace();
        if is_code && !(first == '\'' && length > 1) {
            found.push(token.to_owned());
        }
        rest = after;
    }
    found
}

/// The length of the literal in front.
fn quoted(text: &str, mark: char) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if sign == mark => return at + sign.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// All that `use` brings.
fn imports(tokens: &[String]) -> Vec<Import> {
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| *token == "use") {
        let end = tokens[at..].iter().position(|token| token == ";").map_or(tokens.len(), |end| at + end);
        tree(&tokens[at + 1..end], &[], &mut found);
    }
    found
}

/// One tree of a `use`, whose paths begin with `prefix`.
fn tree(tokens: &[String], prefix: &[String], found: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "::" => {}
            "{" => {
                let end = tokens.len() - 1;
                return branches(&tokens[at + 1..end]).for_each(|branch| tree(branch, &path, found));
            }
            "as" => return found.extend(tokens.get(at + 1).map(|name| Import { name: name.clone(), path })),
            _ => path.push(token.clone()),
        }
        at += 1;
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    found.extend(path.last().cloned().map(|name| Import { name, path }));
}

/// Splits at the commas that are not inside braces.
fn branches(tokens: &[String]) -> impl Iterator<Item = &[String]> {
    let mut depth = 0;
    tokens.split(move |token| {
        depth += i32::from(token == "{") - i32::from(token == "}");
        depth == 0 && token == ","
    })
}

/// All paths of more than one name.
fn paths(tokens: &[String]) -> impl Iterator<Item = Vec<String>> {
    let starts = (0..tokens.len()).filter(|at| {
        let is_first = *at == 0 || tokens[at - 1] != "::";
        is_first && is_name(&tokens[*at]) && tokens.get(at + 1).is_some_and(|next| next == "::")
    });
    starts.map(|at| path_at(&tokens[at..]))
}

fn path_at(tokens: &[String]) -> Vec<String> {
    let mut path = Vec::new();
    for pair in tokens.chunks(2) {
        path.extend(pair.first().filter(|name| is_name(name)).cloned());
        if pair.get(1).is_none_or(|sign| sign != "::") {
            break;
        }
    }
    path
}

/// The types to which methods are added.
fn impls(tokens: &[String]) -> impl Iterator<Item = Vec<String>> {
    let starts = tokens.iter().enumerate().filter(|(_, token)| *token == "impl");
    starts.filter_map(|(at, _)| {
        // An argument or a return type may be an `impl` as well, and begins no block.
        let begins = at == 0 || matches!(tokens[at - 1].as_str(), "}" | ";" | "]");
        let mut head = tokens[at + 1..].split(|token| token == "{").next()?;
        if head.first().is_some_and(|token| token == "<") {
            head = &head[head.iter().position(|token| token == ">")? + 1..];
        }
        let is_inherent = begins && !head.iter().any(|token| token == "for");
        is_inherent.then(|| path_at(head))
    })
}

#[test]
fn a_name_is_followed_to_the_file_that_has_it() {
    let graph = graph_of(&[
        ("lib.rs", "mod low;\nmod high;"),
        ("low/mod.rs", "mod inner;\npub(crate) use inner::{Other as Renamed, Thing};\nfn own() {}"),
        ("low/inner.rs", "pub(crate) struct Thing; pub(crate) struct Other;"),
        ("high/mod.rs", "mod text;\nuse crate::low;\nfn all() { low::own(); }"),
        (
            "high/text.rs",
            "use crate::low::{self, Renamed};\n// crate::high::all\nconst A: &str = \"crate::high::all\";",
        ),
    ]);
    assert_eq!(graph["high/text.rs"], ["low/inner.rs".to_owned()].into());
    assert_eq!(graph["high/mod.rs"], ["low/mod.rs".to_owned()].into());
}

#[test]
fn a_circle_of_imports_is_seen_and_so_is_one_of_methods() {
    let circles = |low: &'static str| {
        let graph = graph_of(&[
            ("lib.rs", "mod low;\nmod high;"),
            ("low/mod.rs", low),
            ("high/mod.rs", "use crate::low::Thing;\nmod beside;\nmod tells;\npub(crate) fn tell() {}"),
            ("high/beside.rs", "fn beside() { super::tells::all() }"),
            ("high/tells.rs", "pub(crate) fn all() { super::beside::beside() }"),
        ]);
        in_circles(&graph).into_iter().map(|(one, _)| one.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(circles("pub(crate) struct Thing;"), [""; 0], "beside each other they may");
    assert_eq!(
        circles("pub(crate) struct Thing; fn f() { crate::high::tell() }"),
        ["high/mod.rs", "low/mod.rs"]
    );
    let of_tests = "pub(crate) struct Thing;\n#[cfg(test)]\nmod tests { use crate::high::tell; }";
    assert_eq!(circles(of_tests), [""; 0]);
    let graph = graph_of(&[
        ("lib.rs", "mod low;\nmod high;"),
        ("low.rs", "pub(crate) struct Thing<T>(T);"),
        ("high/mod.rs", "use crate::low::Thing;\nimpl<T> Thing<T> { fn adds(&self) {} }"),
    ]);
    assert_eq!(in_circles(&graph).len(), 2);
}

fn graph_of(files: &[(&str, &str)]) -> Graph {
    let files = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
    graph(&files.collect::<Vec<_>>())
}
