//! Typed construction of programs in Rust.
//!
//! Every method checks its op against the op table at once, so a mistake is reported at the call that makes it. Arguments
//! become named constants, one for each distinct value, and names are unique; [`Builder::finish`] names the results and
//! checks that ports are declared in alphabetical order, so that binding by declaration and by name agree.
//!
//! ```
//! use mil::{Builder, Opset};
//! # fn main() -> Result<(), mil::BuildError> {
//! let mut b = Builder::new(Opset::Ios18);
//! let x = b.input("a_x", &[1, 64, 1, 96])?;
//! let act = b.slice(x, &[0, 0, 0, 0], &[1, 64, 1, 32])?;
//! let weight = b.slice(x, &[0, 0, 0, 32], &[1, 64, 1, 64])?;
//! let y = b.matmul(weight, false, act, false);
//! assert!(y.is_err(), "rows of 64 do not meet columns of 1: the matrices must be reshaped first");
//! let act = b.reshape(act, &[1, 64, 32])?;
//! let weight = b.reshape(weight, &[1, 64, 64])?;
//! let y = b.matmul(weight, true, act, false)?;
//! let y = b.reshape(y, &[1, 64, 1, 32])?;
//! let program = b.finish(&[("y", y)])?;
//! println!("{}", mil::print(&program));
//! # Ok(())
//! # }
//! ```

mod ops;

pub use ops::Conv;

use crate::arena::Handle;
use crate::ir::{Arg, DType, Def, Function, Literal, MAX_RANK, Op, Opset, Program, Span, Type, Value};
use crate::ops::{Call, Kind, Need, OpKind};
use crate::word;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A value of a program in the making; meaningful only with the [`Builder`] that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Val(Handle<Value>);

/// Why a call on a [`Builder`] was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {}{message}; {help}", if .param.is_empty() { String::new() } else { format!("`{}` ", .param) })]
pub struct BuildError {
    /// The op, or `input` and `finish` for the ports.
    pub op: &'static str,
    /// The parameter or port at fault; empty when it is the op as a whole.
    pub param: String,
    /// What is wrong, as a predicate of the parameter.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// A program in the making: one function, `main`.
#[derive(Clone, Debug)]
pub struct Builder {
    function: Function,
    /// Every name in use.
    names: BTreeSet<String>,
    /// Results made so far by each op, for their names.
    made: BTreeMap<&'static str, usize>,
    /// Constants by what they print as: equal arguments share one.
    constants: BTreeMap<String, Handle<Value>>,
}

impl Builder {
    /// An empty `main` in `opset`.
    pub fn new(opset: Opset) -> Builder {
        let function = Function {
            name: "main".into(),
            opset,
            params: Vec::new(),
            values: Default::default(),
            ops: Default::default(),
            attrs: Vec::new(),
            results: Vec::new(),
            span: Span::default(),
        };
        Builder { function, names: BTreeSet::new(), made: BTreeMap::new(), constants: BTreeMap::new() }
    }

    /// A parameter of the function, `tensor<fp16, shape>`.
    ///
    /// # Errors
    /// When the name is no identifier, is taken, or does not follow the earlier inputs alphabetically, or an axis is 0.
    pub fn input(&mut self, name: &str, shape: &[usize]) -> Result<Val, BuildError> {
        let refuse = |message: String, help| Err(BuildError { op: "input", param: name.into(), message, help });
        if !word::is_free_name(name) {
            return refuse("is no name that MIL takes".into(), "use letters, digits and _, and no word of the language");
        }
        if let Some(last) = self.function.params.last().map(|v| &self.function.values[*v].name)
            && last.as_str() >= name
        {
            return refuse(format!("is declared after `{last}`"), "declare inputs in alphabetical order: devices bind ports by name");
        }
        if shape.contains(&0) || shape.len() > MAX_RANK {
            return refuse(format!("has shape {shape:?}"), "give one to five axes with at least one element each");
        }
        if self.names.contains(name) {
            self.give_way(name);
        }
        self.names.insert(name.into());
        let index = self.function.params.len();
        let value = Value { name: name.into(), ty: Type::f16(shape), state: false, def: Def::Param(index), span: Span::default() };
        let handle = self.function.values.push(value);
        self.function.params.push(handle);
        Ok(Val(handle))
    }

    /// The shape of a value.
    ///
    /// # Panics
    /// When the value is of another builder.
    pub fn shape(&self, val: Val) -> Vec<usize> {
        self.function.values[val.0].ty.dims()
    }

    /// Any op of the table with arguments as they are; the methods by op say the same in fewer words.
    ///
    /// # Errors
    /// When the arguments do not fit the op.
    pub fn op(&mut self, kind: OpKind, args: Vec<(&'static str, Arg)>) -> Result<Vec<Val>, BuildError> {
        let op_name = kind.name();
        let refuse = |param: &str, message: String, help| BuildError { op: op_name, param: param.into(), message, help };
        let Some(def) = kind.def(self.function.opset) else {
            return Err(refuse("", format!("does not exist in {}", self.function.opset), "build for a later opset"));
        };
        let mut named = Vec::with_capacity(args.len());
        for (param, arg) in args {
            if !def.params.iter().any(|p| p.name == param) {
                return Err(refuse(param, "is no parameter".into(), "see the op table"));
            }
            let values = match &arg {
                Arg::Value(v) => std::slice::from_ref(v),
                Arg::List(vs) => vs.as_slice(),
                Arg::Literal(_) => &[],
            };
            if values.iter().any(|v| self.function.values.get(*v).is_none()) {
                return Err(refuse(param, "is a value of another program".into(), "use values of this builder"));
            }
            if matches!(&arg, Arg::Literal(l) if l.ty().shape.contains(&0)) {
                return Err(refuse(param, "is empty".into(), "give at least one entry"));
            }
            named.push((param.to_string(), arg));
        }
        for param in def.params {
            let given = named.iter().find(|(n, _)| n == param.name).map(|(_, a)| a);
            match given {
                None if matches!(param.need, Need::Required) => return Err(refuse(param.name, "is missing".into(), "give it")),
                Some(Arg::List(_)) if param.kind != Kind::List => return Err(refuse(param.name, "is a list".into(), "give one value")),
                _ => {}
            }
        }
        let mut op = Op { kind, args: named, attrs: Vec::new(), results: Vec::new(), span: Span::default() };
        let call = Call { function: &self.function, op: &op, def };
        crate::ops::check_domains(&call).map_err(|r| refuse(r.param, r.message, r.help))?;
        let types = match def.infer {
            Some(infer) => infer(&call).map_err(|r| refuse(r.param, r.message, r.help))?,
            None => return Err(refuse("", "has no type rule".into(), "write it as text, with its type declared")),
        };
        if let Some(ty) = types.iter().find(|t| t.shape.len() > MAX_RANK) {
            return Err(refuse(
                "",
                format!("gives {ty}, of rank {}", ty.shape.len()),
                "MIL has five axes at most: merge some with reshape",
            ));
        }
        // Constants come last: a call that is refused leaves nothing behind.
        op.args = op.args.into_iter().map(|(param, arg)| (param, self.name_literal(arg))).collect();
        let number = self.made.entry(op_name).or_default();
        let stem = format!("{op_name}_{number}");
        *number += 1;
        let several = types.len() > 1;
        let names = types.iter().enumerate().map(|(i, _)| if several { format!("{stem}_{i}") } else { stem.clone() }).collect();
        Ok(self.push(op, names, types).into_iter().map(Val).collect())
    }

    /// The finished program: `results` are returned in this order under these names.
    ///
    /// # Errors
    /// When a result is an input or a constant, is returned twice, or is not `fp16` or `fp32`; when names are not
    /// identifiers, clash with an input, or are not in alphabetical order; when a value is never used.
    pub fn finish(mut self, results: &[(&str, Val)]) -> Result<Program, BuildError> {
        let refuse = |param: &str, message: String, help| BuildError { op: "finish", param: param.into(), message, help };
        if results.is_empty() {
            return Err(refuse("", "nothing is returned".into(), "return at least one value"));
        }
        for (i, (name, Val(handle))) in results.iter().enumerate() {
            let Some(value) = self.function.values.get(*handle) else {
                return Err(refuse(name, "is a value of another program".into(), "use values of this builder"));
            };
            if !word::is_free_name(name) {
                return Err(refuse(name, "is no name that MIL takes".into(), "use letters, digits and _, and no word of the language"));
            }
            if i > 0 && results[i - 1].0 >= *name {
                return Err(refuse(name, format!("is returned after `{}`", results[i - 1].0), "return values in alphabetical order"));
            }
            if self.function.params.iter().any(|p| self.function.values[*p].name == *name) {
                return Err(refuse(name, "is the name of an input too".into(), "use another name"));
            }
            if results[..i].iter().any(|(_, v)| v.0 == *handle) {
                return Err(refuse(name, "returns a value that is returned already".into(), "return it once"));
            }
            if matches!(value.def, Def::Param(_)) || self.function.constant(*handle).is_some() {
                return Err(refuse(name, "returns an input or a constant".into(), "return the result of a computation"));
            }
            if !matches!(value.ty.dtype, DType::F16 | DType::F32) {
                return Err(refuse(name, format!("has elements of {}", value.ty.dtype), "return fp16 or fp32"));
            }
        }
        for (name, Val(handle)) in results {
            if self.names.contains(*name) {
                self.give_way(name);
            }
            self.rename(*handle, name);
            self.function.results.push(*handle);
        }
        if let Some(dead) = crate::live::dead_values(&self.function).first() {
            let name = self.function.values[*dead].name.clone();
            return Err(refuse(&name, "is never used".into(), "do not make it, or return it"));
        }
        let build_info = BUILD_INFO.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Ok(Program { version: (1, 3), build_info, functions: vec![self.function] })
    }

    /// A literal becomes a constant with a name; anything else stays.
    fn name_literal(&mut self, arg: Arg) -> Arg {
        match arg {
            Arg::Literal(literal) => Arg::Value(self.constant(literal)),
            other => other,
        }
    }

    /// The constant that holds `literal`, made when no equal one exists.
    fn constant(&mut self, literal: Literal) -> Handle<Value> {
        let key = format!("{literal:?}");
        if let Some(&known) = self.constants.get(&key) {
            return known;
        }
        let name = constant_name(&literal);
        let ty = literal.ty();
        let op =
            Op { kind: OpKind::Const, args: Vec::new(), attrs: vec![("val".into(), literal)], results: Vec::new(), span: Span::default() };
        let handle = self.push(op, vec![name], vec![ty])[0];
        self.constants.insert(key, handle);
        handle
    }

    /// Appends an op with results of these names, made unique.
    fn push(&mut self, mut op: Op, names: Vec<String>, types: Vec<Type>) -> Vec<Handle<Value>> {
        let handle = Handle::new(self.function.ops.len());
        for (i, (name, ty)) in names.into_iter().zip(types).enumerate() {
            let name = self.fresh(name);
            if i == 0 {
                op.attrs.insert(0, ("name".into(), Literal::Text(name.clone())));
            }
            op.results.push(self.function.values.push(Value { name, ty, state: false, def: Def::Op(handle, i), span: Span::default() }));
        }
        let results = op.results.clone();
        self.function.ops.push(op);
        results
    }

    /// `name`, or `name` with the first number that makes it unique; taken from now on.
    fn fresh(&mut self, name: String) -> String {
        let free = |n: &String| !self.names.contains(n);
        let unique = if free(&name) { name } else { (2..).map(|i| format!("{name}_{i}")).find(free).unwrap_or(name) };
        self.names.insert(unique.clone());
        unique
    }

    /// Frees `name`, which a value that is no port holds.
    fn give_way(&mut self, name: &str) {
        let holder = self.function.values.iter().find(|(_, v)| v.name == name).map(|(h, _)| h);
        if let Some(holder) = holder {
            let other = self.fresh(format!("{name}_"));
            self.rename(holder, &other);
        }
    }

    fn rename(&mut self, handle: Handle<Value>, name: &str) {
        let value = &mut self.function.values[handle];
        let old = std::mem::replace(&mut value.name, name.into());
        self.names.remove(&old);
        self.names.insert(name.into());
        if let Def::Op(op, 0) = value.def
            && let Some((_, attr)) = self.function.ops[op].attrs.iter_mut().find(|(n, _)| n == "name")
        {
            *attr = Literal::Text(name.into());
        }
    }
}

/// What the chip's compiler expects to find (ane-facts 5.1).
const BUILD_INFO: [(&str, &str); 4] = [
    ("coremlc-component-MIL", "3510.2.1"),
    ("coremlc-version", "3505.4.1"),
    ("coremltools-component-milinternal", ""),
    ("coremltools-version", "9.0"),
];

/// A readable name that says the value: `i_0_0_0_32`, `b_true`, `s_valid`, `f_0_5`, `wq`.
fn constant_name(literal: &Literal) -> String {
    let mut name = String::new();
    let numbers = |letter: &str, words: Vec<String>| {
        // A long list would make a name nobody reads.
        let tail = if words.len() > 6 { vec![format!("x{}", words.len())] } else { words };
        tail.iter().fold(letter.to_string(), |name, w| name + "_" + &w.replace('-', "m").replace('.', "_"))
    };
    match literal {
        Literal::Ints(ty, values) if ty.dtype == DType::Bool => {
            let words = values.iter().map(|v| if *v != 0 { "true".into() } else { "false".into() });
            name += &numbers("b", words.collect());
        }
        Literal::Ints(_, values) => name += &numbers("i", values.iter().map(i64::to_string).collect()),
        Literal::Floats(_, values) => name += &numbers("f", values.iter().map(f64::to_string).collect()),
        Literal::Text(text) => name = format!("s_{text}"),
        Literal::Texts(_, values) => name += &numbers("s", values.clone()),
        Literal::Blob { path, .. } => {
            let file = path.rsplit('/').next().unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = write!(name, "w_{}", file.strip_suffix(".bin").unwrap_or(file));
        }
    }
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
