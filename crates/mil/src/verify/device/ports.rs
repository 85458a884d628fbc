//! Inputs and outputs.

use super::{Lint, error, warning};
use crate::ir::{DType, Def};

pub(super) static LINTS: &[Lint] = &[
    error(
        "port-width",
        "The last axis of a port is no multiple of 32.",
        "pad it with zeros",
        "programs.md 1 rule 2, 4 habit 8",
        |s, report| {
            for (_, port) in s.ports().filter(|(v, _)| !s.is_conv_weight(*v)) {
                let width = port.ty.shape.last().copied().unwrap_or(1);
                if width % 32 != 0 {
                    report(port.span, format!("port `{}` has {width} elements in its last axis, no multiple of 32", port.name));
                }
            }
        },
    ),
    warning(
        "port-width-64",
        "The width of an activation port is no multiple of 64.",
        "pad it with zeros",
        "programs.md 1 rule 2",
        |s, report| {
            for (_, port) in s.ports() {
                if let [1, _, 1, width] = port.ty.shape[..]
                    && width % 64 == 32
                {
                    report(port.span, format!("port `{}` has a width of {width}, no multiple of 64", port.name));
                }
            }
        },
    ),
    error(
        "port-order",
        "Ports are not declared in alphabetical order.",
        "rename or reorder them: the device binds by name order",
        "ane-facts 4, 9.8",
        |s, report| {
            for (what, list) in [("input", &s.function.params), ("output", &s.function.results)] {
                for pair in list.windows(2) {
                    let (a, b) = (&s.function.values[pair[0]], &s.function.values[pair[1]]);
                    if a.name >= b.name {
                        report(b.span, format!("{what} `{}` stands after `{}`", b.name, a.name));
                    }
                }
            }
        },
    ),
    warning(
        "port-bytes",
        "Ports of one direction have unequal sizes.",
        "allocate all of a direction at the largest, or pack them in one",
        "programs.md 1 rule 5, 4 habit 1",
        |s, report| {
            for (what, list) in [("input", &s.function.params), ("output", &s.function.results)] {
                let sizes = list.iter().map(|v| &s.function.values[*v]).map(|v| (v.ty.bytes(), v));
                let Some((largest, _)) = sizes.clone().max_by_key(|(n, _)| *n) else { continue };
                if let Some((n, port)) = sizes.clone().find(|(n, _)| *n != largest) {
                    report(port.span, format!("{what} `{}` has {n} bytes where another has {largest}", port.name));
                }
            }
        },
    ),
    warning(
        "port-type",
        "A port of fp32.",
        "cast on the CPU: the device passes 8 and 16 bits, and fp32 ports fail on some systems",
        "ane-measurements 1.5, ane-facts 1.3",
        |s, report| {
            for (_, port) in s.ports().filter(|(_, port)| port.ty.dtype == DType::F32) {
                report(port.span, format!("port `{}` is {}", port.name, port.ty));
            }
        },
    ),
    error("returned-input", "An input is returned as it is.", "return the result of a computation", "ane-measurements 5", |s, report| {
        for (_, value) in s.ports().skip(s.function.params.len()).filter(|(_, value)| matches!(value.def, Def::Param(_))) {
            report(value.span, format!("`{}`, an input, is returned", value.name));
        }
    }),
];
