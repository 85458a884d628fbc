//! Limits, profiles, layouts, failures.

use crate::rig::{Rig, STRIDES, language, options};
use ane::emulator::{Emulator, EmulatorOptions};
use ane::{Budget, CompileError, Device, Program};
use half::f16;
use mil::{Blobs, Builder, Chip, DType, Opset, Profile, Verified, verify};
use std::sync::Arc;

fn relu(profile: Profile) -> Verified {
    let mut builder = Builder::new(Opset::Ios18);
    let x = builder.input("x", &[1, 32, 1, 64]).unwrap();
    let y = builder.relu(x).unwrap();
    verify(builder.finish(&[("y", y)]).unwrap(), Blobs::default(), profile).unwrap()
}

#[test]
fn the_120th_compile_fails_for_good() {
    let emulator = Emulator::new(EmulatorOptions { any_profile: true, ..options(1) });
    let program = relu(Profile::Language);
    for _ in 0..119 {
        emulator.compile("p", &program).unwrap();
    }
    for _ in 0..2 {
        let error = emulator.compile("p", &program).map(|_| ()).unwrap_err();
        assert!(matches!(error, CompileError::Budget { n: 120, limit: 119, .. }), "{error}");
    }
    assert_eq!(emulator.budget(), Budget { compiles: 119, compile_limit: Some(119), live: 0, live_limit: Some(127) });
}

#[test]
fn a_failed_compile_counts() {
    let emulator = Emulator::new(EmulatorOptions { compile_limit: Some(2), ..options(1) });
    let mut builder = Builder::new(Opset::Ios18);
    let x = builder.input("x", &[1, 32, 1, 64]).unwrap();
    let wide = builder.cast(x, DType::F32).unwrap();
    let y = builder.cast(wide, DType::F16).unwrap();
    let error = emulator.compile("p", &language(builder.finish(&[("y", y)]).unwrap(), Blobs::default())).map(|_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cast") && text.contains("fp32"), "{text}");
    assert_eq!((emulator.budget().compiles, emulator.budget().live), (1, 0));
    emulator.compile("p", &relu(Profile::Language)).unwrap();
    assert!(matches!(emulator.compile("p", &relu(Profile::Language)), Err(CompileError::Budget { .. })));
}

#[test]
fn the_128th_live_program_waits_for_a_release() {
    let emulator = Emulator::new(EmulatorOptions { compile_limit: None, ..options(1) });
    let program = relu(Profile::Language);
    let mut alive: Vec<Arc<dyn Program>> = (0..127).map(|_| emulator.compile("p", &program).unwrap()).collect();
    assert!(matches!(emulator.compile("p", &program), Err(CompileError::Live { limit: 127, .. })));
    assert_eq!(emulator.budget().live, 127);
    // A binding keeps its program alive.
    let rig = Rig::new(&emulator, &alive[0]);
    alive.remove(0);
    assert!(emulator.compile("p", &program).is_err());
    drop(rig);
    // The queue's thread may let go of its last job a moment later.
    assert!((0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        emulator.budget().live == 126
    }));
    emulator.compile("p", &program).unwrap();
}

#[test]
fn only_programs_for_this_chip_are_taken() {
    let emulator = Emulator::new(EmulatorOptions { any_profile: false, compile_limit: Some(1), ..options(1) });
    for profile in [Profile::Language, Profile::Chip(Chip::H13)] {
        let error = emulator.compile("p", &relu(profile)).map(|_| ()).unwrap_err();
        assert!(matches!(error, CompileError::Profile { .. }), "{error}");
    }
    // What was never sent to the compiler does not count.
    emulator.compile("p", &relu(Profile::Chip(Chip::H16))).unwrap();
}

#[test]
fn rows_lie_as_reported() {
    let mut builder = Builder::new(Opset::Ios18);
    let x = builder.input("x", &[1, 3, 1, 40]).unwrap();
    let y = builder.transpose(x, &[0, 3, 2, 1]).unwrap();
    let program = language(builder.finish(&[("y", y)]).unwrap(), Blobs::default());
    let data: Vec<f16> = (0..120).map(|i| f16::from_f32(i as f32)).collect();
    for (stride, rows) in STRIDES.into_iter().zip([[80, 6], [128, 64], [128, 128]]) {
        let emulator = Emulator::new(EmulatorOptions { stride, ..options(1) });
        let compiled = emulator.compile("p", &program).unwrap();
        let ports = compiled.ports();
        assert_eq!([ports[0].row_stride, ports[1].row_stride], rows);
        assert_eq!(ports[1].bytes, 40 * rows[1]);
        let y = Rig::new(&emulator, &compiled).run(std::slice::from_ref(&data));
        assert!(y[0].iter().enumerate().all(|(i, y)| *y == data[i % 3 * 40 + i / 3]));
    }
}

#[test]
fn the_same_call_gives_the_same_again() {
    let emulator = Emulator::new(options(2));
    let mut builder = Builder::new(Opset::Ios18);
    let x = builder.input("x", &[1, 64, 64]).unwrap();
    let p = builder.softmax(x, -1).unwrap();
    let y = builder.matmul(p, false, x, true).unwrap();
    let program = language(builder.finish(&[("y", y)]).unwrap(), Blobs::default());
    let first = Rig::new(&emulator, &emulator.compile("p", &program).unwrap());
    let second = Rig::new(&emulator, &emulator.compile("p", &program).unwrap());
    let data: Vec<f16> = (0..4096).map(|i| f16::from_f32((i * 7 % 13) as f32 - 6.0)).collect();
    let other: Vec<f16> = data.iter().map(|x| f16::from_f32(x.to_f32() * 0.5)).collect();
    // Calls share scratch memory; none may see another's.
    let once = first.run(std::slice::from_ref(&data));
    second.run(std::slice::from_ref(&other));
    assert_eq!(first.run(&[data]), once);
    assert_ne!(second.run(&[other]), once);
}
