//! Damage to a checkpoint: truncations, flipped bits, files missing or of another checkpoint.

use crate::common::{Snapshot, config, run, slices};
use model::Rope;
use std::path::{Path, PathBuf};
use store::safetensors::Reader;
use store::{FileSystem, MemFs, checkpoint, find_latest, hf, list_steps, llama2c, set_aside};

/// A run with step 1 and step 2, and the files of step 2.
fn two_checkpoints() -> (MemFs, Snapshot, Vec<PathBuf>) {
    let fs = MemFs::default();
    let one = Snapshot::new(config(Rope::Half, true), 1);
    one.save(&fs, run(), 1).unwrap();
    Snapshot::new(config(Rope::Half, true), 2).save(&fs, run(), 2).unwrap();
    let dir = checkpoint::path(run(), 2);
    let files = fs.list(&dir).unwrap().into_iter().map(|e| dir.join(e.name)).collect();
    (fs, one, files)
}

fn assert_skipped(fs: &MemFs, what: &str) {
    let found = find_latest(fs, run()).unwrap();
    let taken = found.checkpoint.unwrap();
    assert_eq!((taken.step(), found.skipped.len()), (1, 1), "{what} went unnoticed");
    assert_eq!(found.skipped[0].dir, checkpoint::path(run(), 2));
}

#[test]
fn truncations_and_flipped_bits_are_noticed() {
    let (fs, one, files) = two_checkpoints();
    let mut cases = 0;
    for file in &files {
        let whole = fs.read(file).unwrap();
        // Small files at every byte, the tensor files at every seventh; bits in turn.
        for at in (0..whole.len()).step_by(if whole.len() > 4096 { 7 } else { 1 }) {
            fs.put(file, &whole[..at]).unwrap();
            assert_skipped(&fs, &format!("{} cut at {at}", file.display()));
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs.put(file, &flipped).unwrap();
            assert_skipped(&fs, &format!("{} flipped at {at}", file.display()));
            cases += 2;
        }
        let longer = [&whole[..], b" "].concat();
        fs.put(file, &longer).unwrap();
        assert_skipped(&fs, &format!("a byte after {}", file.display()));
        fs.remove_file(file).unwrap();
        assert_skipped(&fs, &format!("{} missing", file.display()));
        fs.put(file, &fs.read(&checkpoint::path(run(), 1).join(file.file_name().unwrap())).unwrap()).unwrap();
        if file.file_name().unwrap() != "config.json" {
            assert_skipped(&fs, &format!("{} of step 1", file.display()));
        }
        fs.put(file, &whole).unwrap();
        cases += 3;
    }
    println!("bit walk: {cases} cases");
    assert!(cases > 2000);
    // All of step 1 under the name of step 2.
    for file in &files {
        fs.put(file, &fs.read(&checkpoint::path(run(), 1).join(file.file_name().unwrap())).unwrap()).unwrap();
    }
    assert_skipped(&fs, "step 1 under the name of step 2");
    one.assert_is(&fs, &find_latest(&fs, run()).unwrap().checkpoint.unwrap());
}

#[test]
fn the_manifest_counts_by_every_bit() {
    let (fs, _, files) = two_checkpoints();
    let manifest = files.iter().find(|f| f.ends_with("manifest.json")).unwrap();
    let whole = fs.read(manifest).unwrap();
    for at in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        fs.put(manifest, &flipped).unwrap();
        assert_skipped(&fs, &format!("manifest bit {at}"));
    }
}

#[test]
fn damaged_checkpoints_are_moved_aside_and_kept() {
    let (fs, one, files) = two_checkpoints();
    for _ in 0..2 {
        fs.put(&files[0], b"{}").unwrap();
        let found = find_latest(&fs, run()).unwrap();
        let moved = set_aside(&fs, run(), &found.skipped).unwrap();
        assert_eq!(list_steps(&fs, run()).unwrap(), [1]);
        assert_eq!(fs.read(&moved[0].join(files[0].file_name().unwrap())).unwrap(), b"{}");
        one.save(&fs, run(), 2).unwrap();
    }
    let names: Vec<String> = fs.list(&run().join("corrupt")).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["step-00000002", "step-00000002.2"]);
}

/// Model files that no manifest guards: a truncation anywhere is refused with both lengths, a flip never panics.
#[test]
fn truncated_model_files_are_refused() {
    let fs = MemFs::default();
    let saved = Snapshot::new(config(Rope::Half, false), 5);
    let (bin, dir) = (Path::new("/m.bin"), Path::new("/hf"));
    llama2c::write(&fs, bin, &saved.config, &slices(&saved.data[0])).unwrap();
    let whole = fs.read(bin).unwrap();
    for at in 0..whole.len() {
        fs.put(bin, &whole[..at]).unwrap();
        let error = llama2c::read(&fs, bin).unwrap_err().to_string();
        assert!(error.contains(&format!("is {at} bytes long")), "{error}");
        assert!(at < 28 || error.contains(&whole.len().to_string()), "{error}");
    }
    for bit in 0..28 * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs.put(bin, &flipped).unwrap();
        if let Ok((config, params)) = llama2c::read(&fs, bin) {
            assert_eq!(params.len(), config.parameters().len());
        }
    }

    hf::write_dir(&fs, dir, &saved.config, &slices(&saved.data[0]), store::safetensors::Dtype::F32, Default::default(), &[]).unwrap();
    let file = dir.join("model.safetensors");
    let whole = fs.read(&file).unwrap();
    for at in 0..whole.len() {
        fs.put(&file, &whole[..at]).unwrap();
        let error = Reader::open(&fs, &file).err().unwrap().to_string();
        assert!(error.contains("model.safetensors"), "{error}");
    }
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    for at in 0..header {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs.put(&file, &flipped).unwrap();
        let _ = hf::read_dir(&fs, dir);
    }
}
