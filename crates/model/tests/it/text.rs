//! The text of a program, kept so that a change is seen.
