//! An op with the tensors that it is given, by parameter name.

use super::constants;
use super::rules::Rules;
use super::tensor::Tensor;
use cpu::Pool;
use mil::ops::{Call, Reject};
use mil::{Arg, Blobs, Handle, Type, Value};
use std::sync::Arc;

/// Values known so far, by index of the function's value.
pub(super) type Env = [Option<Arc<Tensor>>];

/// One op in one evaluation.
#[derive(Clone, Copy)]
pub(super) struct Args<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) rules: Rules,
    pub(super) pool: &'a Pool,
    pub(super) blobs: &'a Blobs,
    pub(super) env: &'a Env,
}

/// What the op table says against an argument. A verified program never gets here.
pub(super) fn reject(r: Reject) -> String {
    format!("{} {}: {}", r.param, r.message, r.help)
}

impl Args<'_> {
    /// Position of a parameter in the table entry.
    pub(super) fn index(&self, name: &str) -> Result<usize, String> {
        self.call.def.params.iter().position(|p| p.name == name).ok_or_else(|| format!("has no parameter `{name}`"))
    }

    /// Whether an argument was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index(name).is_ok_and(|i| self.call.has(i))
    }

    /// The tensor given for a parameter, or its default. NaN is read as the rules have it.
    pub(super) fn tensor(&self, name: &str) -> Result<Arc<Tensor>, String> {
        let i = self.index(name)?;
        match self.call.arg(i) {
            Some(Arg::Value(handle)) => self.value(*handle),
            Some(Arg::Literal(literal)) => Ok(Arc::new(constants::decode(literal, self.blobs)?)),
            _ => Ok(Arc::new(constants::decode(&self.call.literal(i).map_err(reject)?, self.blobs)?)),
        }
    }

    /// The same where the parameter may be left out.
    pub(super) fn optional(&self, name: &str) -> Result<Option<Arc<Tensor>>, String> {
        if self.has(name) { self.tensor(name).map(Some) } else { Ok(None) }
    }

    /// The tensors of a list parameter.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Arc<Tensor>>, String> {
        let i = self.index(name)?;
        self.call.list(i).iter().map(|v| self.value(*v)).collect()
    }

    fn value(&self, handle: Handle<Value>) -> Result<Arc<Tensor>, String> {
        let name = || &self.call.function.values[handle].name;
        let tensor = self.env[handle.index()].clone().ok_or_else(|| format!("`{}` is used before it is made", name()))?;
        if !tensor.data.iter().any(|x| x.is_nan()) {
            return Ok(tensor);
        }
        let data = tensor.data.iter().map(|&x| self.rules.operand(tensor.dtype, x)).collect();
        Ok(Arc::new(Tensor { data, ..(*tensor).clone() }))
    }

    /// The type of the n-th result.
    pub(super) fn result(&self, n: usize) -> &Type {
        &self.call.function.values[self.call.op.results[n]].ty
    }

    /// The n-th result, from a function of its index; rounded as the rules have it.
    pub(super) fn make(&self, n: usize, mut f: impl FnMut(&[usize]) -> f64) -> Tensor {
        let ty = self.result(n);
        Tensor::new(ty.dtype, &ty.dims(), |i| self.rules.store(ty.dtype, f(i)))
    }

    /// The only number of a parameter.
    pub(super) fn number(&self, name: &str) -> Result<f64, String> {
        match self.tensor(name)?.data.as_slice() {
            [x] => Ok(*x),
            many => Err(format!("{name} has {} elements where one is wanted", many.len())),
        }
    }

    /// The boolean of a parameter.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.number(name)? != 0.0)
    }

    /// The axis that a parameter names.
    pub(super) fn axis(&self, name: &str, rank: usize) -> Result<usize, String> {
        self.call.axis(self.index(name)?, rank).map_err(reject)
    }

    /// The axes that a parameter names; all of them where it was left out.
    pub(super) fn axes(&self, name: &str, rank: usize) -> Result<Vec<usize>, String> {
        if self.has(name) { self.call.axes(self.index(name)?, rank).map_err(reject) } else { Ok((0..rank).collect()) }
    }

    /// The string of a parameter.
    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.call.text(self.index(name)?).map_err(reject)
    }

    /// The number of a parameter that the op's form may lack.
    pub(super) fn number_or(&self, name: &str, absent: f64) -> Result<f64, String> {
        if self.index(name).is_ok() { self.number(name) } else { Ok(absent) }
    }
}
