//! The built-in stories.

use std::collections::{BTreeSet, HashMap, HashSet};
use text::corpus::{Corpus, finished_sentences, known_share, words, words_of};

#[test]
fn a_story_is_a_function_of_seed_and_number() {
    let corpus = Corpus::new(5);
    assert_eq!(corpus.story(123), Corpus::new(5).story(123));
    assert_ne!(corpus.story(123), corpus.story(124));
    assert_ne!(corpus.story(123), Corpus::new(6).story(123));
}

#[test]
fn stories_are_clean_text_of_the_right_length() {
    for index in 0..5_000 {
        let story = Corpus::new(1).story(index);
        assert!(!story.contains(['{', '}', '[', ']', '|', '*', '+', '/', '\n', '_']) && story.is_ascii(), "{story}");
        assert!(!story.contains("  ") && !story.contains(" .") && !story.contains(" ,") && !story.contains("\"\""), "{story}");
        assert!(story.trim_end_matches('"').ends_with(['.', '!']) && story.starts_with(char::is_uppercase), "{story}");
        assert_eq!(story.matches('"').count() % 2, 0, "{story}");
        let length = words_of(&story).count();
        assert!((60..=160).contains(&length), "{length} words: {story}");
        assert!(finished_sentences(&story) >= 6, "{story}");
        assert!((known_share(&story) - 1.0).abs() < 1e-9, "{story}");
    }
}

#[test]
fn the_vocabulary_is_a_few_thousand_words_and_nearly_all_of_it_is_used() {
    let corpus = Corpus::new(1);
    let (mut seen, mut unique, mut count) = (BTreeSet::new(), HashSet::new(), 0);
    let stories = 20_000;
    for story in (0..stories).map(|index| corpus.story(index)) {
        count += words_of(&story).count();
        seen.extend(words_of(&story));
        unique.insert(story);
    }
    eprintln!("{} words, {} seen in {stories} stories of {} words", words().len(), seen.len(), count / stories as usize);
    assert!((2_000..4_000).contains(&words().len()));
    assert!(seen.is_subset(words()));
    assert!(seen.len() * 100 >= words().len() * 97);
    assert_eq!(unique.len(), stories as usize);
}

/// What coherence means here: a name or a thing comes back, and only those that the story has.
#[test]
fn the_hero_of_a_story_stays_its_hero() {
    let corpus = Corpus::new(1);
    for story in (0..2_000).map(|index| corpus.story(index)) {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for word in story.split(|c: char| !c.is_alphabetic()).filter(|word| word.starts_with(char::is_uppercase)) {
            *counts.entry(word).or_default() += 1;
        }
        assert!(counts.values().any(|n| *n >= 3), "{story}");
    }
}

#[test]
fn samples_are_judged() {
    let corpus = Corpus::new(1);
    let story = corpus.story(17);
    let piece = story.split_whitespace().take(40).collect::<Vec<_>>().join(" ").to_uppercase();
    let longer = format!("And then. {story} The end.");
    let new = "Tom and Mia went to the moon in a teapot. They liked it there.";
    assert_eq!(corpus.find_copies(0..50, &[&story, &piece, &longer, new]), [Some(17), Some(17), Some(17), None]);
    assert_eq!(corpus.find_copies(0..17, &[&story]), [None]);
    assert_eq!(finished_sentences("\"Where is it?\" asked Tom. Mia said, \"Here!\" They left, and"), 2);
    assert_eq!(finished_sentences("... ! no end"), 0);
    assert!((known_share("Tom zzyzx qwrt the") - 0.5).abs() < 1e-9);
    assert!(known_share("") < 1e-9);
}
