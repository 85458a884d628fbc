//! `anneal mil blobs`: what a weight file holds.

use crate::args::MilBlobsArgs;
use crate::failure::Outcome;
use anyhow::Context;

pub(super) fn run(args: &MilBlobsArgs) -> Outcome {
    let file = std::fs::read(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let blobs = mil::blob::read(&file).with_context(|| format!("{} is no weight file", args.file.display()))?;
    let mut out = format!("{:>12} {:>8} {:>12} {:>12}\n", "offset", "type", "elements", "bytes");
    for blob in blobs {
        // Types without a word in programs are called as the format calls them.
        let kind = blob.kind.dtype().map_or_else(|| format!("{:?}", blob.kind).to_lowercase(), |dtype| dtype.to_string());
        let bits = blob.data.len() as u64 * 8 - blob.padding_bits;
        out += &format!("{:>12} {kind:>8} {:>12} {:>12}\n", blob.offset, bits / blob.kind.bits(), blob.data.len());
    }
    super::say(&out)?;
    Ok(0)
}
