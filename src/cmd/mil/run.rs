//! `anneal mil run`: a program on the emulator, arrays in and out.

use super::npy;
use super::source::{Source, profile};
use crate::args::{ArithmeticChoice, MilRunArgs};
use crate::failure::{Failure, Outcome};
use ane::emulator::{Emulator, EmulatorOptions};
use ane::{Binding, Device, Dir, Field, Port, Queue, Surface, allocation};
use anyhow::{Context, Result, bail, ensure};
use cpu::{Pool, f16};
use mil::{Chip, DType, Profile};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::RealFs;

/// Longest time that a run may take.
const LIMIT: Duration = Duration::from_secs(3600);

pub(super) fn run(args: &MilRunArgs) -> Outcome {
    let source = Source::open(&args.file)?;
    let program = source.parse()?;
    let blobs = source.blobs(&program)?;
    let profile = profile(args.chip);
    let verified = mil::verify(program, blobs, profile).map_err(|said| source.failed(&said))?;
    if !verified.warnings().0.is_empty() {
        eprint!("{}", verified.warnings().render(&source.name, &source.text));
    }
    let chip = if let Profile::Chip(chip) = profile { chip } else { Chip::H16 };
    let pool = Arc::new(Pool::new(args.threads)?);
    let options = EmulatorOptions::new(chip, pool);
    let options = EmulatorOptions { any_profile: profile == Profile::Language, arithmetic: args.arithmetic.into(), ..options };
    let emulator = Emulator::new(options);
    let program = emulator.compile(&source.name, &verified).map_err(|e| match args.arithmetic {
        ArithmeticChoice::Fast => anyhow::anyhow!("{e}; --arithmetic exact asks for that one"),
        _ => e.into(),
    })?;
    let ports = program.ports().to_vec();
    let of = |dir| ports.iter().filter(move |p| p.dir == dir);
    for (i, (name, _)) in args.input.iter().enumerate() {
        if !of(Dir::In).any(|p| p.name == *name) {
            let known: Vec<&str> = of(Dir::In).map(|p| p.name.as_str()).collect();
            return Err(anyhow::anyhow!("--input {name}: the program's inputs are {}", known.join(", ")).into());
        }
        if args.input[..i].iter().any(|(other, _)| other == name) {
            return Err(anyhow::anyhow!("--input {name} is given twice").into());
        }
    }
    let mut surfaces = Vec::new();
    for port in &ports {
        let surface = Surface::for_ports(&emulator, &[port], allocation(&ports, port.dir))?;
        if port.dir == Dir::In {
            let what = args.input.iter().find(|(name, _)| *name == port.name);
            let (_, what) = what.with_context(|| format!("give --input {}=FILE.npy or {0}=random:SEED; it is {}", port.name, port.ty))?;
            fill(port, &surface, &input(port, what)?)?;
        }
        surfaces.push(surface);
    }
    let bind: Vec<(&str, &Surface)> = ports.iter().map(|p| p.name.as_str()).zip(&surfaces).collect();
    let binding = Binding::new(&program, &source.name, &bind)?;
    Queue::new(LIMIT).run(&binding).map_err(Failure::running)?;
    if let Some(dir) = &args.output {
        store::create_dirs(&RealFs, dir)?;
    }
    for (port, surface) in ports.iter().zip(&surfaces).filter(|(p, _)| p.dir == Dir::Out) {
        let bytes = bytes(port, surface).map_err(Failure::running)?;
        super::say(&format!("{}\n", summary(port, &bytes))).map_err(Failure::running)?;
        if let Some(dir) = &args.output {
            let path = dir.join(format!("{}.npy", port.name));
            let descr = format!("<{}", kind(port.ty.dtype).map_err(Failure::running)?);
            npy::write(&path, &descr, &port.ty.dims(), &bytes)
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(Failure::running)?;
        }
    }
    Ok(0)
}

/// NumPy's name of an element type that ports can have here.
fn kind(dtype: DType) -> Result<&'static str> {
    Ok(match dtype {
        DType::F16 => "f2",
        DType::F32 => "f4",
        DType::I16 => "i2",
        DType::U16 => "u2",
        DType::I32 => "i4",
        other => bail!("ports of {other} cannot be filled or read here; cast inside the program"),
    })
}

/// The numbers for a port, as `--input` says.
fn input(port: &Port, what: &str) -> Result<Vec<f64>> {
    if let Some(seed) = what.strip_prefix("random:") {
        let seed: u64 = seed.parse().with_context(|| format!("--input {}: `{seed}` is no seed, a number", port.name))?;
        return Ok(random(seed, port.ty.numel()));
    }
    let file = Path::new(what);
    let context = || format!("--input {}: {what}", port.name);
    let array = npy::read(&std::fs::read(file).with_context(context)?).with_context(context)?;
    ensure!(array.shape == port.ty.dims(), "--input {}: {what} has shape {:?}, the port is {}", port.name, array.shape, port.ty);
    Ok(array.values)
}

/// Uniform in ±1 in steps of 2^-23, from a seed (SplitMix64).
fn random(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// A surface's rows in units of two bytes, of which an element of 32 bits takes two.
fn field(port: &Port) -> Field {
    let units = (port.ty.dtype.bits() / 16) as usize;
    Field { row: 0, rows: port.rows(), col: 0, cols: port.cols() * units }
}

/// Writes numbers, rounded to the port's type.
fn fill(port: &Port, surface: &Surface, values: &[f64]) -> Result<()> {
    kind(port.ty.dtype)?;
    let bytes = |x: f64| match port.ty.dtype {
        DType::F16 => f16::from_f64(x).to_le_bytes().to_vec(),
        DType::F32 => (x as f32).to_le_bytes().to_vec(),
        DType::I32 => (x as i32).to_le_bytes().to_vec(),
        DType::U16 => (x as u16).to_le_bytes().to_vec(),
        _ => (x as i16).to_le_bytes().to_vec(),
    };
    let mut guard = surface.write()?;
    let mut view = guard.view_mut(field(port));
    for (r, row) in values.chunks_exact(port.cols()).enumerate() {
        let units: Vec<f16> = row.iter().flat_map(|&x| bytes(x)).collect::<Vec<u8>>().chunks_exact(2).map(unit).collect();
        view.row_mut(r).copy_from_slice(&units);
    }
    Ok(())
}

fn unit(bytes: &[u8]) -> f16 {
    f16::from_le_bytes([bytes[0], bytes[1]])
}

/// What a port holds, little-endian.
fn bytes(port: &Port, surface: &Surface) -> Result<Vec<u8>> {
    let guard = surface.read()?;
    let view = guard.view(field(port));
    Ok((0..view.rows).flat_map(|r| view.row(r).iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).collect())
}

/// One line on a result: type, range, and how many numbers are not finite.
fn summary(port: &Port, bytes: &[u8]) -> String {
    let values: Vec<f32> = match port.ty.dtype {
        DType::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        _ => bytes.chunks_exact(2).map(|b| unit(b).to_f32()).collect(),
    };
    let finite: Vec<f32> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let (low, high) = (finite.iter().copied().fold(f32::INFINITY, f32::min), finite.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let mean = finite.iter().map(|&x| f64::from(x)).sum::<f64>() / finite.len().max(1) as f64;
    let infinite = values.len() - finite.len();
    let rest = if infinite > 0 { format!(", {infinite} not finite") } else { String::new() };
    format!("{}  {}  min {low} max {high} mean {mean:.6}{rest}", port.name, port.ty)
}
