//! Byte-level BPE trained here.

use crate::real;
use proptest::prelude::*;
use std::sync::LazyLock;
use text::corpus::Corpus;
use text::tokenizer::END_OF_TEXT;
use text::{Documents, Tokenizer, TokenizerError};

fn stories() -> Documents {
    Documents::from_corpus(&Corpus::new(1), 0..1000)
}

static STORIES: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::train_bpe(stories().texts(), 2048).unwrap());

/// The same tokenizer in the crate's own hands, without the short cut for words.
static GENERAL: LazyLock<tokenizers::Tokenizer> = LazyLock::new(|| tokenizers::Tokenizer::from_bytes(STORIES.to_json()).unwrap());

fn general(text: &str) -> Vec<u32> {
    GENERAL.encode_fast(text, false).unwrap().get_ids().to_vec()
}

#[test]
fn training_gives_the_same_bytes_every_time_and_with_any_number_of_threads() {
    let mut texts = vec![stories().texts().to_vec()];
    texts.extend(real("tinyshakespeare.txt").map(|path| vec![std::fs::read_to_string(path).unwrap()]));
    for texts in texts {
        let train = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Tokenizer::train_bpe(&texts, 4096).unwrap().to_json())
        };
        let first = train(1);
        for threads in [1, 2, 3, 4, 2] {
            assert!(first == train(threads));
        }
    }
}

#[test]
fn the_vocabulary_is_what_was_asked_for_or_what_the_data_yields() {
    assert_eq!(STORIES.vocab_size(), 2048);
    assert_eq!((STORIES.bos(), STORIES.eos()), (Some(0), Some(0)));
    assert_eq!(STORIES.encode(END_OF_TEXT).unwrap(), [0]);
    assert_eq!(Tokenizer::train_bpe(&["ab ab ab"], 1000).unwrap().vocab_size(), 259); // "ab" and " ab"
    assert_eq!(Tokenizer::train_bpe(&[""], 257).unwrap().vocab_size(), 257);
    assert!(matches!(Tokenizer::train_bpe(&["a"], 256), Err(TokenizerError::VocabTooSmall { asked: 256, least: 257 })));
    let loaded = Tokenizer::from_bytes("f", STORIES.to_json()).unwrap();
    assert_eq!(loaded.to_json(), STORIES.to_json());
    assert_eq!(loaded.describe(), "byte-level BPE of 2048 tokens");
}

#[test]
fn a_play_of_a_megabyte_is_learnt_and_encoded_in_a_moment() {
    let Some(path) = real("tinyshakespeare.txt") else { return };
    let plays = std::fs::read_to_string(path).unwrap();
    let start = std::time::Instant::now();
    let tokenizer = Tokenizer::train_bpe(&[&plays], 32_000).unwrap();
    let trained = start.elapsed();
    let ids = tokenizer.encode(&plays).unwrap();
    eprintln!("{} tokens: trained in {trained:?}, {} ids encoded in {:?}", tokenizer.vocab_size(), ids.len(), start.elapsed() - trained);
    assert!((10_000..32_000).contains(&tokenizer.vocab_size()));
    assert_eq!(tokenizer.decode(&ids).unwrap(), plays);
    let general = tokenizers::Tokenizer::from_bytes(tokenizer.to_json()).unwrap();
    assert!(general.encode_fast(plays.as_str(), false).unwrap().get_ids() == ids);
}

#[test]
fn a_stream_of_tokens_gives_whole_characters() {
    let text = "a naïve 日本語 🦙 end";
    let mut decoder = STORIES.decoder();
    let mut joined = String::new();
    for id in STORIES.encode(text).unwrap() {
        let piece = decoder.push(id).unwrap();
        assert!(!piece.contains('\u{FFFD}'));
        joined += &piece;
    }
    assert_eq!(joined, text);
    // Half a character at the end comes out, marked, and one that never ends does not hold the text back for ever.
    let mut decoder = STORIES.decoder();
    let half = STORIES.encode("🦙").unwrap()[0];
    let pushed: String = (0..40).map(|_| decoder.push(half).unwrap()).collect();
    assert!(pushed.chars().count() >= 30 && pushed.chars().all(|c| c == '\u{FFFD}'), "{pushed:?}");
    assert!(decoder.finish().unwrap().chars().all(|c| c == '\u{FFFD}'));
}

#[test]
fn limits_in_a_tokenizer_json_do_not_cut_training_data() {
    let mut json: serde_json::Value = serde_json::from_slice(&STORIES.to_json()).unwrap();
    json["truncation"] = serde_json::json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
    json["padding"] = serde_json::json!({"strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 0, "pad_type_id": 0, "pad_token": END_OF_TEXT});
    let text = "Once upon a time there was a naïve owl.";
    let limited = Tokenizer::from_bytes("f", json.to_string().into_bytes()).unwrap();
    assert_eq!(limited.encode(text).unwrap(), STORIES.encode(text).unwrap());
}

#[test]
fn other_kinds_of_tokenizer_json_work_or_say_why_not() {
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null, "decoder": null,
        "added_tokens": [{"id": 7, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"one": 0, "two": 3, "</s>": 7}, "unk_token": "none"},
    });
    let tokenizer = Tokenizer::from_bytes("f", json.to_string().into_bytes()).unwrap();
    assert_eq!((tokenizer.vocab_size(), tokenizer.bos(), tokenizer.eos()), (8, None, Some(7)));
    assert_eq!(tokenizer.encode("two one").unwrap(), [3, 0]);
    assert!(matches!(tokenizer.encode("three"), Err(TokenizerError::Encode(_))));
    let mut decoder = tokenizer.decoder();
    let pieces: Vec<_> = [3, 7, 0, 99, 3].into_iter().map(|id| decoder.push(id).unwrap()).collect();
    assert_eq!(pieces, ["two", "", " one", "", " two"]);
    let wrong = Tokenizer::from_bytes("my.json", b"{\"version\": \"1.0\"}".to_vec()).unwrap_err();
    assert!(matches!(wrong, TokenizerError::Json { .. }) && wrong.to_string().contains("my.json"), "{wrong}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_short_cut_for_words_changes_no_id(text in "([a-zA-Z]{1,6}|[ \t\n\r\u{b}]{1,3}|[0-9]{1,3}|'(s|t|re|ve|m|ll|d)|[!-~]|é|[\0-\u{1f}]|<\\|endoftext\\|>){0,40}") {
        let ids = STORIES.encode(&text).unwrap();
        prop_assert_eq!(&ids, &general(&text));
        prop_assert_eq!(STORIES.decode(&ids).unwrap(), text.replace(END_OF_TEXT, ""));
    }

    #[test]
    fn long_texts_are_cut_where_nothing_changes(text in "([a-z' .]{0,30}[é\u{a0} ]?[\n]{0,3}){300,500}") {
        prop_assert!(STORIES.encode(&text).unwrap() == general(&text));
    }

    #[test]
    fn streams_and_whole_texts_decode_alike(text in "\\PC{0,40}") {
        let ids = STORIES.encode(&text).unwrap();
        let mut decoder = STORIES.decoder();
        let mut joined: String = ids.iter().map(|id| decoder.push(*id).unwrap()).collect();
        joined += &decoder.finish().unwrap();
        prop_assert_eq!(joined, STORIES.decode(&ids).unwrap());
    }
}
