//! An op with its arguments resolved.

use super::{Kind, Lit, Need, OpDef, Param, Reject};
use crate::Handle;
use crate::ir::{Arg, DType, Function, Literal, Op, Type, Value};

/// An op with its arguments resolved: what shape rules, costs and executors look at.
///
/// Parameters are addressed by their index in [`OpDef::params`]. On a verified program every accessor that fits the
/// parameter's kind succeeds.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The function around it.
    pub function: &'a Function,
    /// The op.
    pub op: &'a Op,
    /// Its table entry.
    pub def: &'static OpDef,
}

impl<'a> Call<'a> {
    /// The op with its table entry for the function's opset.
    ///
    /// # Errors
    /// When the opset has no form of this op.
    pub fn new(function: &'a Function, op: &'a Op) -> Result<Call<'a>, Reject> {
        match op.kind.def(function.opset) {
            Some(def) => Ok(Call { function, op, def }),
            None => Err(Reject {
                param: "",
                message: format!("{} does not exist in {}", op.kind.name(), function.opset),
                help: "raise the function's opset",
            }),
        }
    }

    /// What was given for parameter `i`.
    pub fn arg(&self, i: usize) -> Option<&'a Arg> {
        self.op.arg(self.def.params[i].name)
    }

    /// The value given for parameter `i`, if it was a value.
    pub fn value(&self, i: usize) -> Option<Handle<Value>> {
        match self.arg(i) {
            Some(Arg::Value(v)) => Some(*v),
            _ => None,
        }
    }

    /// The values given for list parameter `i`; a single value counts as a list of one.
    pub fn list(&self, i: usize) -> &'a [Handle<Value>] {
        match self.arg(i) {
            Some(Arg::List(vs)) => vs,
            Some(Arg::Value(v)) => std::slice::from_ref(v),
            _ => &[],
        }
    }

    /// The type of what was given for parameter `i`; the type of a default where nothing was.
    ///
    /// # Errors
    /// When nothing was given and there is no default, or a list was given.
    pub fn ty(&self, i: usize) -> Result<Type, Reject> {
        match self.arg(i) {
            Some(Arg::Value(v)) => Ok(self.function.values[*v].ty.clone()),
            Some(Arg::Literal(l)) => Ok(l.ty()),
            _ => self.literal(i).map(|l| l.ty()),
        }
    }

    /// The constant given for parameter `i`, or its default.
    ///
    /// # Errors
    /// When it is no constant, or absent without default.
    pub fn literal(&self, i: usize) -> Result<Literal, Reject> {
        let param = &self.def.params[i];
        let refuse = |message: String, help| Err(Reject { param: param.name, message, help });
        match self.arg(i) {
            Some(Arg::Literal(l)) => Ok(l.clone()),
            Some(Arg::Value(v)) => match self.function.constant(*v) {
                Some(l) => Ok(l.clone()),
                None => refuse(format!("is `{}`, which is not a constant", self.function.values[*v].name), "give a value made by `const`"),
            },
            Some(Arg::List(_)) => refuse("is a tuple where one value is wanted".into(), "give one value"),
            None => {
                // Only parameters after the first have defaults that depend on the first, so this does not recurse further.
                let rank = || if i == 0 { 0 } else { self.ty(0).map_or(0, |t| t.shape.len()) };
                let dtype = || if i == 0 { DType::F16 } else { self.ty(0).map_or(DType::F16, |t| t.dtype) };
                match param.need {
                    Need::Default(Lit::False) => Ok(Literal::bool(false)),
                    Need::Default(Lit::True) => Ok(Literal::bool(true)),
                    Need::Default(Lit::Int(n)) => Ok(Literal::int(n)),
                    Need::Default(Lit::Float(x)) => Ok(Literal::Floats(Type::scalar(dtype()), vec![dtype().round(x)])),
                    Need::Default(Lit::Ones) => Ok(Literal::ints(&vec![1; rank()])),
                    Need::Default(Lit::Falses) => {
                        Ok(Literal::Ints(Type { dtype: DType::Bool, shape: vec![rank() as u64] }, vec![0; rank()]))
                    }
                    Need::Default(Lit::Text(s)) => Ok(Literal::Text(s.into())),
                    Need::Required | Need::Optional => refuse("is missing".into(), "give it"),
                }
            }
        }
    }

    /// Whether parameter `i` was given.
    pub fn has(&self, i: usize) -> bool {
        self.arg(i).is_some()
    }

    /// Integers (or booleans as 0 and 1) of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of integers.
    pub fn ints(&self, i: usize) -> Result<Vec<i64>, Reject> {
        match self.literal(i)? {
            Literal::Ints(_, values) => Ok(values),
            _ => Err(self.reject(i, "must be integers", "give an integer constant written in the program")),
        }
    }

    /// The one integer of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of one integer.
    pub fn int(&self, i: usize) -> Result<i64, Reject> {
        match self.ints(i)?.as_slice() {
            [one] => Ok(*one),
            many => Err(self.reject(i, format!("must be one integer, not {}", many.len()), "give a scalar")),
        }
    }

    /// The one floating-point number of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of one number.
    pub fn float(&self, i: usize) -> Result<f64, Reject> {
        match self.literal(i)? {
            Literal::Floats(_, values) if values.len() == 1 => Ok(values[0]),
            _ => Err(self.reject(i, "must be one floating-point number", "give a scalar constant written in the program")),
        }
    }

    /// The boolean of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant boolean.
    pub fn flag(&self, i: usize) -> Result<bool, Reject> {
        Ok(self.int(i)? != 0)
    }

    /// The booleans of constant parameter `i`, one per axis of a tensor of rank `rank`.
    ///
    /// # Errors
    /// When it is not a constant of `rank` booleans.
    pub fn mask(&self, i: usize, rank: usize) -> Result<Vec<bool>, Reject> {
        Ok(self.ints_of(i, rank)?.into_iter().map(|b| b != 0).collect())
    }

    /// Exactly `count` integers of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of that many integers.
    pub fn ints_of(&self, i: usize, count: usize) -> Result<Vec<i64>, Reject> {
        let values = self.ints(i)?;
        if values.len() == count {
            return Ok(values);
        }
        Err(self.reject(i, format!("has {} entries where {count} are wanted", values.len()), "give one entry for each axis"))
    }

    /// Exactly `count` positive integers of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant of that many positive integers.
    pub fn positive(&self, i: usize, count: usize) -> Result<Vec<u64>, Reject> {
        let values = self.ints_of(i, count)?;
        match values.iter().map(|&n| u64::try_from(n).ok().filter(|&n| n > 0)).collect() {
            Some(values) => Ok(values),
            None => Err(self.reject(i, format!("is {values:?}"), "give positive numbers")),
        }
    }

    /// Whether every parameter that decides a shape is known when the program is compiled; else a type rule has nothing
    /// to go by, and the declared type is trusted.
    pub fn sizes_known(&self) -> bool {
        let known = |(i, p): (usize, &Param)| p.kind != Kind::Size || !self.has(i) || self.literal(i).is_ok();
        self.def.params.iter().enumerate().all(known)
    }

    /// The axis that constant parameter `i` names, negative counted from the end of `rank` axes.
    ///
    /// # Errors
    /// When it is no constant integer or no axis.
    pub fn axis(&self, i: usize, rank: usize) -> Result<usize, Reject> {
        self.wrap(i, self.int(i)?, rank)
    }

    /// The distinct axes that constant parameter `i` names, in the order written, negative counted from the end.
    ///
    /// # Errors
    /// When they are no constant integers, no axes, or one is named twice.
    pub fn axes(&self, i: usize, rank: usize) -> Result<Vec<usize>, Reject> {
        let mut axes = Vec::new();
        for axis in self.ints(i)? {
            let axis = self.wrap(i, axis, rank)?;
            if axes.contains(&axis) {
                return Err(self.reject(i, format!("names axis {axis} twice"), "name each axis once"));
            }
            axes.push(axis);
        }
        Ok(axes)
    }

    fn wrap(&self, i: usize, axis: i64, rank: usize) -> Result<usize, Reject> {
        let n = rank as i64; // ranks are vector lengths, far below 2^63
        match if axis < 0 { axis.checked_add(n) } else { Some(axis) } {
            Some(a) if (0..n).contains(&a) => Ok(a as usize),
            _ => Err(self.reject(i, format!("is axis {axis}, of a tensor with {rank} axes"), "axes run from -rank to rank-1")),
        }
    }

    /// The string of constant parameter `i`.
    ///
    /// # Errors
    /// When it is not a constant string.
    pub fn text(&self, i: usize) -> Result<String, Reject> {
        match self.literal(i)? {
            Literal::Text(s) => Ok(s),
            _ => Err(self.reject(i, "must be a string", "give a string constant")),
        }
    }

    /// A refusal that blames parameter `i`.
    pub fn reject(&self, i: usize, message: impl Into<String>, help: &'static str) -> Reject {
        Reject { param: self.def.params[i].name, message: message.into(), help }
    }

    /// The types of every tensor given: tensor parameters and the members of lists, in the order of the table.
    pub fn operands(&self) -> impl Iterator<Item = Type> + use<'_, 'a> {
        (0..self.def.params.len()).flat_map(move |i| match self.def.params[i].kind {
            Kind::Tensor => self.has(i).then(|| self.ty(i).ok()).flatten().into_iter().collect(),
            Kind::List => self.list(i).iter().map(|v| self.function.values[*v].ty.clone()).collect(),
            Kind::Size | Kind::Const => Vec::new(),
        })
    }
}
