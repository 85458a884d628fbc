//! MIL, the language of Neural Engine programs: representation, op table, text, verifier, builder, weight files.
