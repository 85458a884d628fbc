//! Telling one story: facts are drawn, sentences chosen, gaps filled.

use super::grammar::{Draw, Entry, Grammar, Node};
use crate::rng::Dice;

/// The story that these dice tell.
pub(super) fn tell(grammar: &Grammar, dice: Dice) -> String {
    let mut teller = Teller { grammar, dice, facts: Vec::new() };
    let Some(plot) = teller.dice.pick(&grammar.plots) else { return String::new() };
    for (name, draw) in &plot.facts {
        let entry = teller.draw(draw);
        teller.facts.push((name, entry));
    }
    let mut text = String::new();
    for line in &plot.lines {
        teller.fill(line, &mut text);
        text.push(' ');
    }
    polish(&text)
}

struct Teller<'a> {
    grammar: &'a Grammar,
    dice: Dice,
    facts: Vec<(&'a str, Entry)>,
}

impl<'a> Teller<'a> {
    /// Draws until the name differs from every fact so far: a friend is not the hero, a second place is another place.
    fn draw(&mut self, draw: &Draw) -> Entry {
        let mut entry = self.draw_once(draw);
        for _ in 0..100 {
            if self.facts.iter().all(|(_, other)| other.first() != entry.first()) {
                break;
            }
            entry = self.draw_once(draw);
        }
        entry
    }

    fn draw_once(&mut self, draw: &Draw) -> Entry {
        match draw {
            Draw::List(list) => self.entry(list).cloned().unwrap_or_default(),
            Draw::Child => self.character(false),
            Draw::Pet => self.character(true),
            Draw::Any => {
                let pet = self.dice.below(5) < 2;
                self.character(pet)
            }
            Draw::Thing => {
                let list = if self.dice.below(2) == 0 { "color" } else { "look" };
                let look = self.first(list);
                let mut toy = self.entry("toy").cloned().unwrap_or_default();
                if let Some(name) = toy.first_mut() {
                    *name = format!("{look} {name}");
                }
                toy
            }
        }
    }

    /// Name, he, him, his, kind.
    fn character(&mut self, pet: bool) -> Entry {
        let she = self.dice.below(2) == 0;
        let (list, kind) = match (pet, she) {
            (true, _) => ("pet", self.first("animal")),
            (false, true) => ("girl", "girl"),
            (false, false) => ("boy", "boy"),
        };
        let pronouns = if she { ["she", "her", "her"] } else { ["he", "him", "his"] };
        [self.first(list)].into_iter().chain(pronouns).chain([kind]).map(str::to_owned).collect()
    }

    fn entry(&mut self, list: &str) -> Option<&'a Entry> {
        self.dice.pick_early(self.grammar.lists.get(list)?)
    }

    fn first(&mut self, list: &str) -> &'a str {
        self.entry(list).and_then(|entry| entry.first()).map_or("", String::as_str)
    }

    fn fill(&mut self, template: &'a [Node], out: &mut String) {
        for node in template {
            match node {
                Node::Text(text) => out.push_str(text),
                Node::Fact { name, field, capital } => {
                    let entry = self.facts.iter().find(|(fact, _)| fact == name).and_then(|(_, entry)| entry.get(*field));
                    push(out, entry.map_or("", String::as_str), *capital);
                }
                Node::Fresh { list, capital } => push(out, self.first(list), *capital),
                Node::Rule(name) => {
                    let line = self.grammar.rules.get(name).and_then(|lines| self.dice.pick(lines));
                    self.fill(line.map_or(&[], Vec::as_slice), out);
                }
                Node::Choice(options) => {
                    let option = self.dice.pick(options);
                    self.fill(option.map_or(&[], Vec::as_slice), out);
                }
            }
        }
    }
}

fn push(out: &mut String, text: &str, capital: bool) {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if capital => {
            out.extend(first.to_uppercase());
            out.push_str(chars.as_str());
        }
        _ => out.push_str(text),
    }
}

/// Single spaces, a capital letter at the start of each sentence, "an" before a vowel.
fn polish(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut out = String::with_capacity(text.len());
    let mut starts = true;
    for (at, word) in words.iter().enumerate() {
        if !out.is_empty() {
            out.push(' ');
        }
        let body = word.trim_start_matches('"');
        out.push_str(&word[..word.len() - body.len()]);
        push(&mut out, body, starts);
        if body.eq_ignore_ascii_case("a") && words.get(at + 1).is_some_and(|next| takes_an(next)) {
            out.push('n');
        }
        starts = word.ends_with(['.', '!', '?']);
    }
    out
}

fn takes_an(word: &str) -> bool {
    let word = word.trim_start_matches('"').to_ascii_lowercase();
    let sounds_consonant = ["uni", "use", "one"].iter().any(|start| word.starts_with(start));
    let sounds_vowel = ["honest", "hour"].iter().any(|start| word.starts_with(start));
    sounds_vowel || (word.starts_with(['a', 'e', 'i', 'o', 'u']) && !sounds_consonant)
}

#[cfg(test)]
mod tests {
    use super::polish;

    #[test]
    fn sentences_are_polished() {
        let text = " \"a owl!\"  said he.  a honest fox, a unicorn. \"is it?\" asked a bee. ";
        assert_eq!(polish(text), "\"An owl!\" said he. An honest fox, a unicorn. \"Is it?\" asked a bee.");
    }
}
