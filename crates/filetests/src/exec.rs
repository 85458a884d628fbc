//! Running programs.

use crate::directives::{File, Output, Run, Target};
use ane::{Binding, Device, Dir, Field, Port, Queue, Surface, allocation};
use half::f16;
use mil::{DType, Profile};
use std::sync::Arc;
use std::time::Duration;

/// Longest time that a run may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Wrong elements that are listed.
const SHOWN: usize = 8;

/// Compiles the program once and makes every run of the file; gives their number.
pub(crate) fn run(file: &File<'_>, target: &Target, device: &dyn Device) -> Result<usize, String> {
    let program = mil::parse(file.text).map_err(|d| d.render("", file.text))?;
    let profile = match target {
        Target::Emulator(None, _) => Profile::Language,
        Target::Emulator(Some(chip), _) => Profile::Chip(*chip),
        Target::Ane => Profile::Chip(device.info().chip),
    };
    let verified = mil::verify(program, file.blobs(), profile).map_err(|d| d.render("", file.text))?;
    let program = device.compile("filetest", &verified).map_err(|e| e.to_string())?;
    let rig = Rig::new(device, &program)?;
    for run in &file.runs {
        rig.run(run).map_err(|e| format!("line {}: {e}", run.line))?;
    }
    Ok(file.runs.len())
}

/// A program bound to surfaces of its own.
struct Rig {
    ports: Vec<(Port, Surface)>,
    binding: Binding,
    queue: Queue,
}

impl Rig {
    fn new(device: &dyn Device, program: &Arc<dyn ane::Program>) -> Result<Rig, String> {
        let all = program.ports().to_vec();
        let surface = |p: &Port| Surface::for_ports(device, &[p], allocation(&all, p.dir)).map_err(|e| e.to_string());
        let ports = all.iter().map(|p| Ok((p.clone(), surface(p)?))).collect::<Result<Vec<_>, String>>()?;
        let bind: Vec<(&str, &Surface)> = ports.iter().map(|(p, s)| (p.name.as_str(), s)).collect();
        let binding = Binding::new(program, "filetest", &bind).map_err(|e| e.to_string())?;
        Ok(Rig { ports, binding, queue: Queue::new(LIMIT) })
    }

    fn run(&self, run: &Run) -> Result<(), String> {
        let of = |dir| self.ports.iter().filter(move |(p, _)| p.dir == dir);
        if let Some((name, _)) = run.inputs.iter().find(|(name, _)| !of(Dir::In).any(|(p, _)| p.name == *name)) {
            return Err(format!("`{name}` is no input"));
        }
        for (port, surface) in of(Dir::In) {
            let values = run.inputs.iter().find(|(name, _)| *name == port.name).map(|(_, values)| values);
            write(port, surface, values.ok_or_else(|| format!("input `{}` is not given", port.name))?)?;
        }
        self.queue.run(&self.binding).map_err(|e| e.to_string())?;
        for output in &run.outputs {
            let port = of(Dir::Out).find(|(p, _)| p.name == output.name);
            let (port, surface) = port.ok_or_else(|| format!("`{}` is no output", output.name))?;
            compare(output, port.ty.dtype, &read(port, surface)?)?;
        }
        Ok(())
    }
}

/// Units of two bytes, of which an fp32 element takes two.
fn field(port: &Port) -> Result<Field, String> {
    match port.ty.dtype {
        DType::F16 => Ok(Field { row: 0, rows: port.rows(), col: 0, cols: port.cols() }),
        DType::F32 => Ok(Field { row: 0, rows: port.rows(), col: 0, cols: port.cols() * 2 }),
        other => Err(format!("port `{}` is of {other}: fp16 and fp32 are filled and read", port.name)),
    }
}

fn write(port: &Port, surface: &Surface, values: &[f32]) -> Result<(), String> {
    if values.len() != port.ty.numel() {
        return Err(format!("{} numbers are given for `{}`, {}", values.len(), port.name, port.ty));
    }
    let mut guard = surface.write().map_err(|e| e.to_string())?;
    let mut view = guard.view_mut(field(port)?);
    for (r, row) in values.chunks_exact(port.cols()).enumerate() {
        let units: Vec<f16> = match port.ty.dtype {
            DType::F16 => row.iter().map(|&x| f16::from_f32(x)).collect(),
            _ => row.iter().flat_map(|x| [x.to_bits() as u16, (x.to_bits() >> 16) as u16].map(f16::from_bits)).collect(),
        };
        view.row_mut(r).copy_from_slice(&units);
    }
    Ok(())
}

fn read(port: &Port, surface: &Surface) -> Result<Vec<f32>, String> {
    let guard = surface.read().map_err(|e| e.to_string())?;
    let view = guard.view(field(port)?);
    let rows = (0..view.rows).map(|r| view.row(r));
    Ok(match port.ty.dtype {
        DType::F16 => rows.flat_map(|row| row.iter().map(|x| x.to_f32()).collect::<Vec<f32>>()).collect(),
        _ => rows.flat_map(|row| row.chunks_exact(2).map(wide).collect::<Vec<f32>>()).collect(),
    })
}

fn wide(units: &[f16]) -> f32 {
    f32::from_bits(u32::from(units[0].to_bits()) | u32::from(units[1].to_bits()) << 16)
}

fn compare(output: &Output, dtype: DType, found: &[f32]) -> Result<(), String> {
    let Output { name, values, tolerance } = output;
    if values.len() != found.len() {
        return Err(format!("`{name}` has {} elements, {} are expected", found.len(), values.len()));
    }
    let fits = |want: f32, is: f32| match tolerance {
        // Decimal digits name the number that they round to.
        None => dtype.round(want.into()) as f32 == is,
        Some(tol) => want == is || (want.is_finite() && (want - is).abs() <= tol * want.abs().max(1.0)),
    };
    let wrong = values.iter().zip(found).enumerate().filter(|(_, (want, is))| !fits(**want, **is));
    let shown: Vec<String> = wrong.take(SHOWN).map(|(i, (want, is))| format!("`{name}`[{i}] is {is}, {want} is expected")).collect();
    if shown.is_empty() { Ok(()) } else { Err(shown.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_or_near() {
        let output = |values: &[f32], tolerance| Output { name: "y".into(), values: values.to_vec(), tolerance };
        let f16 = |values: &[f32], tolerance, found: &[f32]| compare(&output(values, tolerance), DType::F16, found);
        assert_eq!(f16(&[0.1, -0.0, f32::INFINITY], None, &[0.099_975_586, 0.0, f32::INFINITY]), Ok(()));
        assert!(f16(&[0.1], None, &[0.100_036_62]).is_err());
        assert_eq!(f16(&[0.0, 100.0, f32::INFINITY], Some(0.01), &[0.009, 100.9, f32::INFINITY]), Ok(()));
        for (want, found) in [(0.0, 0.011), (100.0, 101.1), (1.0, f32::NAN), (f32::INFINITY, 65504.0), (65504.0, f32::INFINITY)] {
            assert!(f16(&[want], Some(0.01), &[found]).is_err(), "{want} {found}");
        }
        assert!(f16(&[1.0], None, &[1.0, 1.0]).is_err_and(|e| e.contains("2 elements, 1 are expected")));
    }
}
