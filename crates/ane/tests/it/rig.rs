//! Compiling and running programs in tests.

use ane::emulator::{Emulator, EmulatorOptions, RowStride};
use ane::{Binding, CallStats, Device, Dir, Field, Port, Program, Queue, Surface, allocation};
use cpu::Pool;
use cpu::matmul::Path;
use half::f16;
use mil::{Blobs, Chip, Profile, Verified, verify};
use std::sync::Arc;
use std::time::Duration;

/// Small random numbers (SplitMix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Uniform in ±1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(crate) fn fill(&mut self, n: usize, mut f: impl FnMut(&mut Rng) -> f32) -> Vec<f16> {
        (0..n).map(|_| f16::from_f32(f(self))).collect()
    }
}

pub(crate) fn paths() -> Vec<Path> {
    let mut paths = vec![Path::Portable];
    if Path::amx_available() {
        paths.push(Path::Amx);
    }
    paths
}

/// An emulator that takes any program, on `threads` threads.
pub(crate) fn options(threads: usize) -> EmulatorOptions {
    let pool = Arc::new(Pool::new(threads).unwrap());
    EmulatorOptions { any_profile: true, ..EmulatorOptions::new(Chip::H16, pool) }
}

pub(crate) fn language(program: mil::Program, blobs: Blobs) -> Verified {
    verify(program, blobs, Profile::Language).unwrap()
}

/// A program bound to surfaces of its own.
pub(crate) struct Rig {
    pub(crate) ports: Vec<Port>,
    pub(crate) surfaces: Vec<Surface>,
    pub(crate) binding: Binding,
    pub(crate) queue: Queue,
}

fn field(port: &Port) -> Field {
    Field { row: 0, rows: port.rows(), col: 0, cols: port.cols() }
}

impl Rig {
    pub(crate) fn new(device: &dyn Device, program: &Arc<dyn Program>) -> Rig {
        let ports = program.ports().to_vec();
        let surface = |p: &Port| Surface::for_ports(device, &[p], allocation(&ports, p.dir)).unwrap();
        let surfaces: Vec<Surface> = ports.iter().map(surface).collect();
        let bind: Vec<(&str, &Surface)> = ports.iter().map(|p| p.name.as_str()).zip(&surfaces).collect();
        let binding = Binding::new(program, "test", &bind).unwrap();
        Rig { ports, surfaces, binding, queue: Queue::new(Duration::from_secs(60)) }
    }

    pub(crate) fn write(&self, i: usize, data: &[f16]) {
        let port = &self.ports[i];
        assert_eq!(port.ty.numel(), data.len());
        let mut guard = self.surfaces[i].write().unwrap();
        let mut view = guard.view_mut(field(port));
        for (r, row) in data.chunks_exact(port.cols()).enumerate() {
            view.row_mut(r).copy_from_slice(row);
        }
    }

    pub(crate) fn read(&self, i: usize) -> Vec<f16> {
        let guard = self.surfaces[i].read().unwrap();
        let view = guard.view(field(&self.ports[i]));
        (0..view.rows).flat_map(|r| view.row(r).to_vec()).collect()
    }

    /// Fills the inputs, in the order of the ports, runs, and reads all outputs.
    pub(crate) fn run(&self, inputs: &[Vec<f16>]) -> Vec<Vec<f16>> {
        let of = |dir| (0..self.ports.len()).filter(move |&i| self.ports[i].dir == dir);
        of(Dir::In).zip(inputs).for_each(|(i, data)| self.write(i, data));
        self.go();
        of(Dir::Out).map(|i| self.read(i)).collect()
    }

    pub(crate) fn go(&self) -> CallStats {
        self.queue.run(&self.binding).unwrap()
    }
}

/// Compiles and runs once.
pub(crate) fn evaluate(options: EmulatorOptions, program: &Verified, inputs: &[Vec<f16>]) -> Vec<Vec<f16>> {
    let emulator = Emulator::new(options);
    let compiled = emulator.compile("test", program).unwrap();
    Rig::new(&emulator, &compiled).run(inputs)
}

/// Every reported layout.
pub(crate) const STRIDES: [RowStride; 3] = [RowStride::Dense, RowStride::Align64, RowStride::Align128];
