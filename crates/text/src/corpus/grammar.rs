//! The story grammar: word lists, rules and plots, read from the two text files beside this one.

use std::collections::BTreeMap;

/// One entry of a word list: what a story calls it, and further fields the plots use.
pub(super) type Entry = Vec<String>;

/// The parsed grammar.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) lists: BTreeMap<String, Vec<Entry>>,
    pub(super) rules: BTreeMap<String, Vec<Template>>,
    pub(super) plots: Vec<Plot>,
}

/// A story's course: the facts it draws, and its sentences.
#[derive(Debug, Default)]
pub(super) struct Plot {
    pub(super) facts: Vec<(String, Draw)>,
    pub(super) lines: Vec<Template>,
}

/// How a fact comes about. Characters have the fields name, he, him, his, kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Draw {
    /// An entry of a list that no other fact of the story has.
    List(String),
    /// A girl or a boy.
    Child,
    /// An animal with a name.
    Pet,
    /// Either.
    Any,
    /// A toy with a color or a look, and the toy's fields.
    Thing,
}

/// A piece of text with gaps.
pub(super) type Template = Vec<Node>;

/// A part of a template.
#[derive(Debug)]
pub(super) enum Node {
    Text(String),
    Fact { name: String, field: usize, capital: bool },
    Fresh { list: String, capital: bool },
    Rule(String),
    Choice(Vec<Template>),
}

impl Draw {
    fn parse(text: &str) -> Self {
        match text {
            "@child" => Self::Child,
            "@pet" => Self::Pet,
            "@any" => Self::Any,
            "@thing" => Self::Thing,
            list => Self::List(list.to_owned()),
        }
    }
}

impl Grammar {
    /// Reads the two files. Every name used must be defined; the error names the line that is wrong.
    pub(super) fn parse(lists: &str, plots: &str) -> Result<Self, String> {
        let mut grammar = Self { lists: parse_lists(lists)?, rules: BTreeMap::new(), plots: Vec::new() };
        let mut rule: Option<&str> = None;
        for line in plots.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let wrong = |what: &str| format!("{what}: {line}");
            if let Some(name) = line.strip_prefix("rule ") {
                rule = Some(name);
                grammar.rules.insert(name.to_owned(), Vec::new());
            } else if line.starts_with("plot ") {
                rule = None;
                grammar.plots.push(Plot::default());
            } else if let Some((name, draw)) = line.strip_prefix("let ").and_then(|rest| rest.split_once(" = ")) {
                let plot = grammar.plots.last_mut().ok_or_else(|| wrong("a fact outside a plot"))?;
                plot.facts.push((name.to_owned(), Draw::parse(draw)));
            } else if let Some(text) = line.strip_prefix("- ") {
                let template = parse_template(text).map_err(|what| wrong(&what))?;
                let lines = match rule {
                    Some(name) => grammar.rules.get_mut(name),
                    None => grammar.plots.last_mut().map(|plot| &mut plot.lines),
                };
                lines.ok_or_else(|| wrong("a sentence outside a plot"))?.push(template);
            } else {
                return Err(wrong("neither a rule, a plot, a fact nor a sentence"));
            }
        }
        for plot in &grammar.plots {
            grammar.check_plot(plot)?;
        }
        Ok(grammar)
    }

    fn check_plot(&self, plot: &Plot) -> Result<(), String> {
        let mut fields = BTreeMap::new();
        for (name, draw) in &plot.facts {
            let n = match draw {
                Draw::Child | Draw::Pet | Draw::Any => 5,
                Draw::Thing => self.fields("toy")?,
                Draw::List(list) => self.fields(list)?,
            };
            fields.insert(name.as_str(), n);
        }
        plot.lines.iter().try_for_each(|line| self.check_template(line, &fields))
    }

    fn check_template(&self, template: &[Node], facts: &BTreeMap<&str, usize>) -> Result<(), String> {
        template.iter().try_for_each(|node| match node {
            Node::Text(_) => Ok(()),
            Node::Fact { name, field, .. } => match facts.get(name.as_str()) {
                Some(fields) if field < fields => Ok(()),
                _ => Err(format!("no fact {name} with a field {field}")),
            },
            Node::Fresh { list, .. } => self.fields(list).map(|_| ()),
            Node::Rule(name) => {
                let lines = self.rules.get(name).ok_or_else(|| format!("no rule {name}"))?;
                lines.iter().try_for_each(|line| self.check_template(line, facts))
            }
            Node::Choice(options) => options.iter().try_for_each(|option| self.check_template(option, facts)),
        })
    }

    /// Fields that every entry of a list has.
    fn fields(&self, list: &str) -> Result<usize, String> {
        self.lists.get(list).and_then(|entries| entries.iter().map(Vec::len).min()).ok_or_else(|| format!("no list {list}"))
    }

    /// Calls `f` with every piece of text that a story can contain.
    pub(super) fn for_each_text<'a>(&'a self, mut f: impl FnMut(&'a str)) {
        fn walk<'a>(template: &'a [Node], f: &mut impl FnMut(&'a str)) {
            for node in template {
                match node {
                    Node::Text(text) => f(text),
                    Node::Choice(options) => options.iter().for_each(|option| walk(option, f)),
                    Node::Fact { .. } | Node::Fresh { .. } | Node::Rule(_) => {}
                }
            }
        }
        self.lists.values().flatten().flatten().for_each(|field| f(field));
        let lines = self.rules.values().flatten().chain(self.plots.iter().flat_map(|plot| &plot.lines));
        lines.for_each(|line| walk(line, &mut f));
    }
}

fn parse_lists(text: &str) -> Result<BTreeMap<String, Vec<Entry>>, String> {
    let mut lists = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, entries) = line.split_once(": ").ok_or_else(|| format!("no list: {line}"))?;
        let entries = entries.split(", ").map(|entry| entry.split('/').map(str::to_owned).collect()).collect();
        lists.insert(name.to_owned(), entries);
    }
    Ok(lists)
}

fn parse_template(text: &str) -> Result<Template, String> {
    let (template, rest) = parse_until(text, false)?;
    if rest.is_empty() { Ok(template) } else { Err(format!("unmatched {rest}")) }
}

/// Reads a template up to its end, or inside brackets up to the next `|` or `]`, which stays in the rest.
fn parse_until(text: &str, inside: bool) -> Result<(Template, &str), String> {
    let mut template = Vec::new();
    let mut rest = text;
    loop {
        let stop = rest.find(['{', '[', '|', ']']).unwrap_or(rest.len());
        if stop > 0 {
            template.push(Node::Text(rest[..stop].to_owned()));
        }
        rest = &rest[stop..];
        if let Some(after) = rest.strip_prefix('{') {
            let (slot, after) = after.split_once('}').ok_or("an open {")?;
            template.push(parse_slot(slot)?);
            rest = after;
        } else if rest.starts_with('[') {
            let mut options = Vec::new();
            while let Some(after) = rest.strip_prefix(if options.is_empty() { '[' } else { '|' }) {
                let (option, after) = parse_until(after, true)?;
                options.push(option);
                rest = after;
            }
            rest = rest.strip_prefix(']').ok_or("an open [")?;
            template.push(Node::Choice(options));
        } else if inside || rest.is_empty() {
            return Ok((template, rest));
        } else {
            return Err(format!("unmatched {rest}"));
        }
    }
}

fn parse_slot(slot: &str) -> Result<Node, String> {
    if let Some(rule) = slot.strip_prefix('+') {
        return Ok(Node::Rule(rule.to_owned()));
    }
    let capital = slot.trim_start_matches('*').starts_with(|c: char| c.is_ascii_uppercase());
    let slot = slot.to_ascii_lowercase();
    if let Some(list) = slot.strip_prefix('*') {
        return Ok(Node::Fresh { list: list.to_owned(), capital });
    }
    let pronoun = |word: &str| ["he", "him", "his", "kind"].iter().position(|p| *p == word).map(|at| at + 1);
    let (name, field) = match slot.split_once('.') {
        None => match pronoun(&slot) {
            Some(field) => ("hero", field),
            None => (slot.as_str(), 0),
        },
        Some((name, field)) => {
            let number = pronoun(field).or_else(|| field.parse().ok()).ok_or_else(|| format!("no field {field}"))?;
            (name, number)
        }
    };
    Ok(Node::Fact { name: name.to_owned(), field, capital })
}

#[cfg(test)]
mod tests {
    use super::Grammar;

    #[test]
    fn what_is_undefined_or_unbalanced_is_refused() {
        let lists = "toy: ball/kick it, kite/fly it\n";
        let parse = |line: &str| Grammar::parse(lists, &format!("plot p\nlet hero = @any\nlet t = toy\n{line}\n"));
        assert!(parse("- A {t}, [one|{t.1}|] {*Toy} {He} {hero.kind}.").is_ok());
        for wrong in ["- {u}", "- {t.2}", "- {t.x}", "- {*u}", "- {+u}", "- [a|b", "- a]", "- a|b", "- {t", "text", "let u = nolist"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Grammar::parse(lists, "- a sentence first").is_err());
        assert!(Grammar::parse("no list", "").is_err());
    }
}
