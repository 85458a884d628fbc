//! A program's text, with the weight files beside it.

use crate::args::ChipChoice;
use anyhow::{Context, Result};
use mil::{Arg, Blobs, Diagnostics, Literal, Profile, Program};
use std::path::{Component, Path, PathBuf};

/// A text as read.
pub(super) struct Source {
    /// What messages call it.
    pub(super) name: String,
    /// The text.
    pub(super) text: String,
    file: PathBuf,
    /// What `@model_path` stands for.
    dir: PathBuf,
}

/// The profile that a `--chip` asks for.
pub(super) fn profile(chip: Option<ChipChoice>) -> Profile {
    chip.map_or(Profile::Language, |chip| Profile::Chip(train::plan::ChipName::from(chip).chip()))
}

impl Source {
    /// Reads a text, or the one in a compiled model's directory.
    pub(super) fn open(path: &Path) -> Result<Source> {
        let file = if path.is_dir() { path.join("model.mil") } else { path.to_path_buf() };
        let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            anyhow::anyhow!(
                "{} is no text: byte {} is not UTF-8; mil blobs lists weight files",
                file.display(),
                e.utf8_error().valid_up_to()
            )
        })?;
        let dir = match file.parent() {
            Some(dir) if dir != Path::new("") => dir.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Ok(Source { name: file.display().to_string(), text, file, dir })
    }

    /// Where the text is.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The program.
    ///
    /// # Errors
    /// With the whole rendering of what is wrong.
    pub(super) fn parse(&self) -> Result<Program> {
        mil::parse(&self.text).map_err(|said| self.failed(&said))
    }

    /// What is wrong, as one error.
    pub(super) fn failed(&self, said: &Diagnostics) -> anyhow::Error {
        anyhow::anyhow!("{} cannot be used\n{}", self.name, said.render(&self.name, &self.text).trim_end())
    }

    /// The weight files that a program names, as far as they are there. The verifier says what is missing.
    pub(super) fn blobs(&self, program: &Program) -> Result<Blobs> {
        let mut blobs = Blobs::default();
        for path in paths(program) {
            if blobs.0.contains_key(path) {
                continue;
            }
            let Some(file) = self.inside(path) else { continue };
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read weight file {}", file.display()))?;
            blobs.0.insert(path.into(), bytes.into());
        }
        Ok(blobs)
    }

    /// The file of a path under `@model_path`, if it exists. Neither `..` nor a link leads out of the directory.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let plain = Path::new(path.strip_prefix("@model_path/")?);
        if !plain.components().all(|c| matches!(c, Component::Normal(_))) {
            return None;
        }
        let file = self.dir.join(plain).canonicalize().ok()?;
        (file.starts_with(self.dir.canonicalize().ok()?) && file.is_file()).then_some(file)
    }
}

/// Paths of all constants in weight files.
fn paths(program: &Program) -> impl Iterator<Item = &str> {
    let ops = program.functions.iter().flat_map(|f| f.ops.iter().map(|(_, op)| op));
    let literals = ops.flat_map(|op| {
        let args = op.args.iter().filter_map(|(_, arg)| if let Arg::Literal(l) = arg { Some(l) } else { None });
        op.attrs.iter().map(|(_, l)| l).chain(args)
    });
    literals.filter_map(|l| if let Literal::Blob { path, .. } = l { Some(path.as_str()) } else { None })
}
