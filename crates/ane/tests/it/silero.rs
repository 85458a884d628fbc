//! Two real models, compiled by Apple's tools, with their weights: voice activity in speech, against their network in ONNX.
//!
//! The models are not part of this repository: they are looked for in the folder that `ANNEAL_CORPUS` names, or in `../shared/corpus`
//! beside the workspace, and the test says so where there are none. What they are compared with is committed (`oracle/silero.py`).

use crate::rig::options;
use ane::emulator::{Arithmetic, Emulator, EmulatorOptions, Mac};
use ane::{Binding, Device, Dir, Field, Queue, Surface, allocation};
use half::f16;
use mil::{Blobs, Profile, Verified, verify};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Samples of a frame, and those of the frame before that stand in front of it.
const FRAME: usize = 512;
const CONTEXT: usize = 64;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A compiled model of the corpus; `None` where there is no corpus.
fn model(name: &str) -> Option<Verified> {
    let corpus = std::env::var_os("ANNEAL_CORPUS").map_or_else(|| root().join("../shared/corpus"), PathBuf::from);
    let dir = corpus.join("mlmodelc").join(name);
    if !dir.exists() {
        eprintln!("skipped: no {}; set ANNEAL_CORPUS to a folder with mlmodelc/{name}", dir.display());
        return None;
    }
    let text = std::fs::read_to_string(dir.join("model.mil")).unwrap();
    let mut blobs = Blobs::default();
    let weights = std::fs::read(dir.join("weights/weight.bin")).unwrap();
    blobs.0.insert("@model_path/weights/weight.bin".into(), weights.into());
    let program = mil::parse(&text).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    Some(verify(program, blobs, Profile::Language).unwrap_or_else(|e| panic!("{name}: {e:?}")))
}

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(root().join("tests/golden").join(name)).unwrap()
}

/// The probability of each frame and the last state, as the oracle lays them out; every port is a row of fp32.
fn run(program: &Verified, arithmetic: Arithmetic) -> (Vec<f32>, Vec<f32>) {
    let device = Emulator::new(EmulatorOptions { arithmetic, ..options(2) });
    let compiled = device.compile("silero", program).unwrap();
    let ports = compiled.ports().to_vec();
    let surfaces: Vec<Surface> = ports.iter().map(|p| Surface::for_ports(&device, &[p], allocation(&ports, p.dir)).unwrap()).collect();
    let bind: Vec<(&str, &Surface)> = ports.iter().map(|p| p.name.as_str()).zip(&surfaces).collect();
    let (binding, queue) = (Binding::new(&compiled, "silero", &bind).unwrap(), Queue::new(Duration::from_secs(60)));
    let port = |name: &str| ports.iter().position(|p| p.name == name).unwrap();
    // Units of two bytes, of which an element takes two.
    let field = |i: usize| Field { row: 0, rows: 1, col: 0, cols: 2 * ports[i].cols() };
    let write = |name: &str, data: &[f32]| {
        let units: Vec<f16> = data.iter().flat_map(|x| [x.to_bits() as u16, (x.to_bits() >> 16) as u16].map(f16::from_bits)).collect();
        surfaces[port(name)].write().unwrap().view_mut(field(port(name))).row_mut(0).copy_from_slice(&units);
    };
    let read = |name: &str| {
        let guard = surfaces[port(name)].read().unwrap();
        let word = |u: &[f16]| f32::from_bits(u32::from(u[0].to_bits()) | u32::from(u[1].to_bits()) << 16);
        guard.view(field(port(name))).row(0).chunks_exact(2).map(word).collect::<Vec<f32>>()
    };
    assert_eq!(ports.iter().filter(|p| p.dir == Dir::In).count(), 3);
    let samples: Vec<f32> =
        golden("silero.wave.i16le").chunks_exact(2).map(|b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0).collect();
    let (mut h, mut c) = (vec![0.0; 128], vec![0.0; 128]);
    let mut probabilities = Vec::new();
    for (n, frame) in samples.chunks_exact(FRAME).enumerate() {
        let before = if n == 0 { &[0.0; CONTEXT] } else { &samples[n * FRAME - CONTEXT..n * FRAME] };
        write("audio_input", &[before, frame].concat());
        write("hidden_state", &h);
        write("cell_state", &c);
        queue.run(&binding).unwrap();
        probabilities.extend(read("vad_output"));
        (h, c) = (read("new_hidden_state"), read("new_cell_state"));
    }
    (probabilities, [h, c].concat())
}

/// Largest difference of a probability, and of a state relative to the largest one.
fn compare(name: &str, wanted: &str, arithmetic: Arithmetic) -> Option<(f32, f32)> {
    let program = model(name)?;
    let wanted: Vec<f32> = golden(wanted).chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let (probabilities, state) = run(&program, arithmetic);
    let (wanted_p, wanted_s) = wanted.split_at(wanted.len() - 256);
    assert_eq!(probabilities.len(), wanted_p.len());
    let worst = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let largest = wanted_s.iter().fold(0.0, |a: f32, x| a.max(x.abs()));
    let off = (worst(&probabilities, wanted_p), worst(&state, wanted_s) / largest);
    eprintln!("{name}, {arithmetic}: probabilities off by {:.2e}, states by {:.2e}", off.0, off.1);
    Some(off)
}

#[test]
fn voice_activity_agrees_with_onnx() {
    for (name, wanted) in [("silero-vad-unified-v6.0.0", "silero.fp16.f32le"), ("unified_int8", "silero.int8.f32le")] {
        if let Some((probability, state)) = compare(name, wanted, Arithmetic::Exact) {
            // A few units of fp16's last place, after sixty frames.
            assert!(probability < 2e-3 && state < 4e-3, "{name}: {probability}, {state}");
        }
    }
}

#[test]
fn voice_activity_survives_the_chips_arithmetic() {
    for mac in [Mac::Wide, Mac::Grid] {
        if let Some((probability, _)) = compare("silero-vad-unified-v6.0.0", "silero.fp16.f32le", Arithmetic::Fidelity(mac)) {
            assert!(probability < 1e-2, "{mac:?}: {probability}");
        }
    }
}
