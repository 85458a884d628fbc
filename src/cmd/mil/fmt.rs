//! `anneal mil fmt`: texts laid out.

use super::source::Source;
use crate::args::MilFmtArgs;
use crate::failure::{FAILED, Outcome};
use store::RealFs;

pub(super) fn run(args: &MilFmtArgs) -> Outcome {
    let mut code = 0;
    for file in &args.files {
        let source = Source::open(file)?;
        let text = mil::fmt(&source.text).map_err(|said| source.failed(&said))?;
        if args.stdout {
            super::say(&text)?;
        } else if text != source.text && args.check {
            super::say(&format!("{} is laid out otherwise\n", source.name))?;
            code = FAILED;
        } else if text != source.text {
            store::write_atomic(&RealFs, source.file(), text.as_bytes())?;
        }
    }
    Ok(code)
}
