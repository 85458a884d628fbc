//! A compiled program and its calls.

use super::exec::Machine;
use super::lower;
use super::memory::{Space, outputs_are_distinct};
use super::plan::{Kind, Plan, plan};
use super::view::View;
use crate::device::{Call, CallStats, Dir, EvalError, Io, Port, Program};
use crate::{BindError, Memory};
use cpu::matmul::Path;
use cpu::{Finish, Pool};
use mil::{Blobs, Chip, Function};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What all programs of an emulator share.
pub(super) struct Shared {
    pool: Arc<Pool>,
    path: Path,
    finish: Finish,
    /// Programs alive.
    pub(super) live: AtomicU32,
    /// Scratch memory for whichever call runs: large enough for every program compiled so far. Calls take turns at it, as they
    /// would at the chip.
    arena: Mutex<Option<Memory>>,
}

/// A program's place among those alive.
pub(super) struct Seat(Arc<Shared>);

impl Shared {
    pub(super) fn new(pool: Arc<Pool>, path: Path, finish: Finish) -> Shared {
        Shared { pool, path, finish, live: AtomicU32::new(0), arena: Mutex::new(None) }
    }

    /// Takes a seat, or says how many there are.
    pub(super) fn seat(shared: &Arc<Shared>, limit: Option<u32>) -> Result<Seat, u32> {
        let taken = shared.live.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(shared.clone());
        match limit {
            Some(limit) if taken >= limit => Err(limit), // dropping the seat gives it back
            _ => Ok(seat),
        }
    }
}

impl Seat {
    /// The threads that all programs of the emulator compute with.
    pub(super) fn pool(&self) -> &Pool {
        &self.0.pool
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A function, planned.
pub(super) struct EmulatorProgram {
    name: String,
    ports: Vec<Port>,
    plan: Plan,
    seat: Seat,
}

impl EmulatorProgram {
    /// Lowers and plans a function.
    pub(super) fn compile(
        name: &str,
        function: &Function,
        blobs: &Blobs,
        ports: Vec<Port>,
        chip: Option<Chip>,
        seat: Seat,
    ) -> Result<EmulatorProgram, String> {
        let graph = lower::lower(function, blobs, chip)?;
        let views = |dir| {
            let of_dir = ports.iter().filter(move |p| p.dir == dir);
            of_dir.map(|p| View::rows(&p.ty.dims(), p.row_stride / 2)).collect::<Vec<View>>()
        };
        let plan = plan(&graph, &views(Dir::In), &views(Dir::Out))?;
        let bytes = plan.arena * 2;
        let mut arena = seat.0.arena.lock().unwrap_or_else(PoisonError::into_inner);
        if arena.as_ref().map_or(0, Memory::len) < bytes {
            *arena = Some(Memory::heap(bytes).map_err(|e| e.to_string())?);
        }
        drop(arena);
        Ok(EmulatorProgram { name: name.into(), ports, plan, seat })
    }
}

/// Whether the surfaces of a call hold the ports of a program, and none that is written is shared with another port.
pub(super) fn surfaces_fit(ports: &[Port], io: &Io) -> Result<(), String> {
    for (dir, surfaces) in [(Dir::In, &io.inputs), (Dir::Out, &io.outputs)] {
        let ports: Vec<&Port> = ports.iter().filter(|p| p.dir == dir).collect();
        if ports.len() != surfaces.len() || ports.iter().zip(surfaces).any(|(p, s)| s.memory().len() < p.bytes) {
            return Err(format!("surfaces do not fit the {} ports of this direction ({dir:?})", ports.len()));
        }
    }
    if !outputs_are_distinct(io) {
        return Err("an output surface shares memory with another surface".into());
    }
    Ok(())
}

impl Program for EmulatorProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn bind(self: Arc<Self>, io: Arc<Io>) -> Result<Box<dyn Call>, BindError> {
        let refused = |text: String| BindError::Refused { binding: self.name.clone(), text };
        surfaces_fit(&self.ports, &io).map_err(refused)?;
        Ok(Box::new(EmulatorCall { program: self, io }))
    }
}

struct EmulatorCall {
    program: Arc<EmulatorProgram>,
    io: Arc<Io>,
}

impl Call for EmulatorCall {
    fn run(&mut self) -> Result<CallStats, EvalError> {
        let begin = Instant::now();
        let EmulatorProgram { plan, seat, .. } = &*self.program;
        let shared = &seat.0;
        let machine = Machine { pool: &shared.pool, path: shared.path, finish: shared.finish };
        let mut arena = shared.arena.lock().unwrap_or_else(PoisonError::into_inner);
        let mut space = Space::new(&self.io, &plan.consts, arena.as_mut());
        let mut stats = CallStats::default();
        let mut before = begin;
        for step in &plan.steps {
            let (reads, writes) = space.lend(&step.reads, &step.writes);
            step.kernel.run(machine, &reads, writes);
            let now = Instant::now();
            let slot: &mut Duration = match step.kind() {
                Kind::Matmul => &mut stats.matmul,
                Kind::Elementwise => &mut stats.elementwise,
                Kind::Copy => &mut stats.copy,
            };
            *slot += now - before;
            before = now;
        }
        stats.elapsed = begin.elapsed();
        Ok(stats)
    }
}
