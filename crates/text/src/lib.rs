//! Tokenizers, the built-in corpus and readers of training data.
