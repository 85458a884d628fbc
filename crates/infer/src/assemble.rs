//! From program specs to bindings: compile first, allocate second, bind last.

use crate::error::InferError;
use crate::machine::Machine;
use crate::weights::{WeightSlot, place};
use ane::{Binding, Dir, Field, Program, Slot, Surface, allocation};
use cpu::ViewMut;
use half::f16;
use mil::{Blobs, Profile};
use model::programs::{Act, BlobContent, Content, FieldSpec, PortSpec, ProgramKind, ProgramSpec, Sharing, WeightPort, causal_mask};
use model::{ParamSpec, Role};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program bound for one layer (or one slice of the classifier, or all layers).
pub struct Unit {
    /// The binding that the queue runs.
    pub binding: Binding,
    spec: Arc<ProgramSpec>,
    layer: usize,
    surfaces: Vec<(String, Surface)>,
}

impl Unit {
    /// Which program it runs.
    pub fn kind(&self) -> ProgramKind {
        self.spec.kind
    }

    /// The window of input `act`.
    ///
    /// # Panics
    /// When the program has no such input: which program has what is fixed by `model`'s port tables.
    pub fn input(&self, act: Act) -> Slot {
        let found = self.spec.input(act);
        self.slot(found.map(|(i, f)| (i, f.clone())), act)
    }

    /// The window of output `act`.
    ///
    /// # Panics
    /// As [`Unit::input`].
    pub fn output(&self, act: Act) -> Slot {
        let found = self.spec.output(act);
        self.slot(found.map(|(i, f)| (self.spec.inputs.len() + i, f.clone())), act)
    }

    fn slot(&self, found: Option<(usize, FieldSpec)>, act: Act) -> Slot {
        let Some((port, field)) = found else { panic!("program {} has no {act:?}", self.spec.name()) };
        Slot { surface: self.surfaces[port].1.clone(), field: field_of(&field) }
    }

    /// Binds the same surfaces to a newly compiled program.
    fn rebind(&mut self, program: &Arc<dyn Program>) -> Result<(), InferError> {
        self.binding = bind(program, self.binding.name(), &self.surfaces)?;
        Ok(())
    }
}

fn bind(program: &Arc<dyn Program>, name: &str, surfaces: &[(String, Surface)]) -> Result<Binding, InferError> {
    let by_name: Vec<(&str, &Surface)> = surfaces.iter().map(|(n, s)| (n.as_str(), s)).collect();
    Ok(Binding::new(program, name, &by_name)?)
}

fn field_of(f: &FieldSpec) -> Field {
    Field { row: f.row, rows: f.rows, col: f.col, cols: f.cols }
}

/// A spec with its executables: one for all layers, or one a layer when the weights are baked in.
struct Loaded {
    spec: Arc<ProgramSpec>,
    programs: Vec<Arc<dyn Program>>,
}

/// Programs and surfaces in the making; what is shared among layers and directions is found here.
pub struct Assembly {
    machine: Machine,
    parameters: Vec<ParamSpec>,
    loaded: BTreeMap<(ProgramKind, usize), Loaded>,
    everyone: BTreeMap<(ProgramKind, usize, usize), Surface>,
    weight_surfaces: BTreeMap<(usize, WeightPort), Surface>,
    /// Where parameters lie: what has to be staged when they change.
    pub weights: Vec<WeightSlot>,
}

impl Assembly {
    /// Nothing yet, for a model with these parameters.
    pub fn new(machine: &Machine, parameters: Vec<ParamSpec>) -> Assembly {
        Assembly {
            machine: machine.clone(),
            parameters,
            loaded: BTreeMap::new(),
            everyone: BTreeMap::new(),
            weight_surfaces: BTreeMap::new(),
            weights: Vec::new(),
        }
    }

    /// Whether `values` are the model's: one vector a parameter, each as long as the configuration says.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self, values: &[Vec<f32>]) -> Result<(), InferError> {
        for (i, p) in self.parameters.iter().enumerate() {
            let found = values.get(i).map_or(0, Vec::len);
            if found != p.len() {
                return Err(InferError::Weights { name: p.name.clone(), found, wanted: p.len() });
            }
        }
        Ok(())
    }

    /// The index of a parameter by role and layer.
    pub fn param(&self, role: Role, layer: usize) -> usize {
        let found = self.parameters.iter().position(|p| p.role == role && p.layer.is_none_or(|l| l == layer));
        found.unwrap_or_else(|| panic!("the model has no {role:?}: port tables and parameters come from one configuration"))
    }

    /// Compiles `spec`: once, or once a layer of `0..layers` when its weights are constants. `variant` tells specs of one kind apart (slices).
    ///
    /// # Errors
    /// When it does not verify or compile.
    pub fn load(&mut self, spec: ProgramSpec, variant: usize, layers: usize, values: &[Vec<f32>]) -> Result<(), InferError> {
        let spec = Arc::new(spec);
        let count = if spec.is_baked() { layers } else { 1 };
        let programs = (0..count).map(|layer| self.compile(&spec, layer, values)).collect::<Result<_, _>>()?;
        self.loaded.insert((spec.kind, variant), Loaded { spec, programs });
        Ok(())
    }

    /// Loads a slice of the classifier. All slices have the same program: what the first compiled serves every one.
    ///
    /// # Errors
    /// As [`Assembly::load`].
    pub fn load_slice(&mut self, spec: &ProgramSpec, slice: usize) -> Result<(), InferError> {
        match self.loaded.get(&(spec.kind, 0)) {
            Some(first) => {
                let programs = first.programs.clone();
                self.loaded.insert((spec.kind, slice), Loaded { spec: Arc::new(spec.clone()), programs });
                Ok(())
            }
            None => self.load(spec.clone(), slice, 1, &[]),
        }
    }

    fn compile(&self, spec: &ProgramSpec, layer: usize, values: &[Vec<f32>]) -> Result<Arc<dyn Program>, InferError> {
        let chip = self.machine.device.info().chip;
        let name = if spec.is_baked() { format!("layer {layer} {}", spec.name()) } else { spec.name().to_string() };
        let blobs = self.blobs(spec, layer, values);
        let verified = mil::verify(spec.program.clone(), blobs, Profile::Chip(chip)).map_err(|diagnostics| InferError::Verify {
            program: name.clone(),
            chip,
            text: diagnostics.to_string(),
        })?;
        Ok(self.machine.device.compile(&name, &verified)?)
    }

    /// The weight files of `spec` for one layer.
    fn blobs(&self, spec: &ProgramSpec, layer: usize, values: &[Vec<f32>]) -> Blobs {
        let mut files = Blobs::default();
        for blob in &spec.blobs {
            let cols = blob.shape.last().copied().unwrap_or(1);
            let mut data = vec![f16::ZERO; blob.shape.iter().product()];
            match &blob.content {
                BlobContent::CausalMask => data = causal_mask(cols),
                BlobContent::Weights(fields) => {
                    for f in fields {
                        let Content::Weight(w) = &f.content else { continue };
                        let param = self.param(w.role, layer);
                        let start = f.row * cols + f.col;
                        let field = ViewMut { data: &mut data[start..], rows: f.rows, cols: f.cols, stride: cols };
                        place(&self.machine.pool, &values[param], self.width(param), field, w.transposed, &w.rows, &w.cols);
                    }
                }
            }
            files.0.insert(blob.path.clone(), mil::blob::single_f16(&data).into());
        }
        files
    }

    /// Length of a row of a parameter.
    pub fn width(&self, param: usize) -> usize {
        self.parameters[param].shape.last().copied().unwrap_or(1)
    }

    /// Compiles a layer's baked programs anew with changed weights, and binds them in place of the old.
    ///
    /// # Errors
    /// As [`Assembly::load`].
    pub fn rebake(&mut self, unit: &mut Unit, values: &[Vec<f32>]) -> Result<(), InferError> {
        if !unit.spec.is_baked() {
            return Ok(());
        }
        let program = self.compile(&unit.spec, unit.layer, values)?;
        unit.rebind(&program)?;
        if let Some(loaded) = self.loaded.get_mut(&(unit.spec.kind, 0)) {
            loaded.programs[unit.layer] = program;
        }
        Ok(())
    }

    /// Whether a program was loaded.
    pub fn has(&self, kind: ProgramKind) -> bool {
        self.loaded.contains_key(&(kind, 0))
    }

    /// Whether `act` is all that its port holds, so that another program's output can be bound there.
    pub fn takes_whole(&self, kind: ProgramKind, act: Act) -> bool {
        let port = |l: &Loaded| l.spec.input(act).is_some_and(|(i, _)| l.spec.inputs[i].fields.len() == 1);
        self.loaded.get(&(kind, 0)).is_some_and(port)
    }

    /// Binds program `kind` for `layer`. Surfaces in `given` stand for the ports that have those activations; all other ports get
    /// the surface that their [`Sharing`] says, made on first use.
    ///
    /// # Errors
    /// When memory is short or a given surface does not fit.
    ///
    /// # Panics
    /// When the program was not loaded.
    pub fn unit(&mut self, kind: ProgramKind, variant: usize, layer: usize, given: &[(Act, &Surface)]) -> Result<Unit, InferError> {
        let loaded = self.loaded.get(&(kind, variant)).unwrap_or_else(|| panic!("{kind} was not loaded"));
        let spec = loaded.spec.clone();
        let program = loaded.programs[layer.min(loaded.programs.len() - 1)].clone();
        let mut surfaces = Vec::new();
        let directions = [(Dir::In, &spec.inputs), (Dir::Out, &spec.outputs)];
        for (dir, port) in directions.into_iter().flat_map(|(dir, ports)| ports.iter().map(move |p| (dir, p))) {
            let handed = given.iter().find(|(act, _)| port.window(*act).is_some());
            let surface = match handed {
                Some((_, surface)) => (*surface).clone(),
                None => self.surface(&program, &spec, variant, layer, dir, port, surfaces.len())?,
            };
            surfaces.push((port.name.clone(), surface));
        }
        let binding = bind(&program, &format!("layer {layer} {kind}"), &surfaces)?;
        Ok(Unit { binding, spec, layer, surfaces })
    }

    #[allow(clippy::too_many_arguments)]
    fn surface(
        &mut self,
        program: &Arc<dyn Program>,
        spec: &ProgramSpec,
        variant: usize,
        layer: usize,
        dir: Dir,
        port: &PortSpec,
        index: usize,
    ) -> Result<Surface, InferError> {
        let known = match port.sharing {
            Sharing::All => self.everyone.get(&(spec.kind, variant, index)),
            Sharing::Weights(key) => self.weight_surfaces.get(&(weight_owner(key, layer), key)),
            Sharing::One => None,
        };
        if let Some(surface) = known {
            return Ok(surface.clone());
        }
        let reported: Vec<_> = program.ports().iter().filter(|p| p.name == port.name && p.dir == dir).collect();
        let bytes = self.allocation(program, spec, dir);
        let surface = Surface::for_ports(&*self.machine.device, &reported, bytes)?;
        for f in &port.fields {
            let Content::Weight(w) = &f.content else { continue };
            self.weights.push(WeightSlot {
                param: self.param(w.role, layer),
                slot: Slot { surface: surface.clone(), field: field_of(f) },
                transposed: w.transposed,
                rows: w.rows.clone(),
                cols: w.cols.clone(),
            });
        }
        match port.sharing {
            Sharing::All => drop(self.everyone.insert((spec.kind, variant, index), surface.clone())),
            Sharing::Weights(key) => drop(self.weight_surfaces.insert((weight_owner(key, layer), key), surface.clone())),
            Sharing::One => {}
        }
        Ok(surface)
    }

    /// Bytes for a surface: all ports of one direction are allocated alike. Programs that share a surface of weights are allocated alike
    /// too, or the one with the smaller ports would hold surfaces of two sizes.
    fn allocation(&self, program: &Arc<dyn Program>, spec: &ProgramSpec, dir: Dir) -> usize {
        let own = allocation(program.ports(), dir);
        if dir == Dir::Out {
            return own;
        }
        let weights = |s: &ProgramSpec| s.inputs.iter().map(|p| p.sharing).filter(|s| matches!(s, Sharing::Weights(_))).collect::<Vec<_>>();
        let keys = weights(spec);
        let meets = |l: &&Loaded| weights(&l.spec).iter().any(|key| keys.contains(key));
        self.loaded.values().filter(meets).map(|l| allocation(l.programs[0].ports(), Dir::In)).max().unwrap_or(own).max(own)
    }
}

/// Slices of the classifier belong to no layer.
fn weight_owner(key: WeightPort, layer: usize) -> usize {
    if matches!(key, WeightPort::Classifier(_)) { usize::MAX } else { layer }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::network::{Network, Use};
    use ane::null::Null;
    use model::Shape;
    use model::programs::{Attention, Options, Weights};

    #[test]
    fn inputs_of_a_program_are_allocated_alike() {
        let pool = Arc::new(cpu::Pool::new(1).unwrap());
        let machine = Machine { device: Arc::new(Null::new(mil::Chip::H16)), pool, path: cpu::matmul::Path::Portable };
        let config = model::Preset::by_name("stories260k").unwrap().config;
        let values: Vec<Vec<f32>> = config.parameters().iter().map(|p| vec![0.0; p.len()]).collect();
        for weights in [Weights::Ports, Weights::Packed] {
            let options = Options { weights, attention: Attention::Split };
            let mut net = Network::new(&machine, &config, Shape { batch: 8, seq: 256 }, options, &values, Use::Training).unwrap();
            let mut backward = Vec::new();
            for kind in [ProgramKind::FfnBwd, ProgramKind::FfnBwdW2, ProgramKind::FfnBwdW13, ProgramKind::QkvBwd, ProgramKind::WoBwd] {
                if net.assembly.has(kind) {
                    backward.push(net.assembly.unit(kind, 0, 0, &[]).unwrap());
                }
            }
            let forward = net.layers[0].attn.units().into_iter().chain([&net.layers[0].ffn.forward]);
            for unit in forward.chain(&backward) {
                let inputs = unit.surfaces[..unit.spec.inputs.len()].iter().map(|(_, s)| s.memory().len()).collect::<Vec<_>>();
                assert!(inputs.iter().all(|&n| n == inputs[0]), "{weights:?} {}: {inputs:?}", unit.spec.name());
            }
        }
    }
}
