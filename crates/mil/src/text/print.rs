//! Programs as canonical text, one statement a line, as the chip's compiler takes it (ane-facts 5.1); in the dialect of the
//! program's version.

use crate::ir::{Arg, Attribute, AttributeType, AttributeValue, DType, Function, Literal, Op, Program, Type, Value};
use crate::ops::OpKind;
use std::fmt::{self, Display, Formatter, Write};

/// The canonical text of a program, in the dialect of its version: `program(1.0)` writes scalars as `tensor<fp16, []>` and the
/// arguments of `constexpr_*` ops in the trailing brackets; those after it write `fp16`. `print ∘ parse` is the identity on
/// canonical text, and `parse ∘ print` on programs.
///
/// Numbers are written exactly: floating-point ones as hexadecimal, `0x1.8p+1`.
///
/// # Panics
/// When handles do not belong to the program.
pub fn print(program: &Program) -> String {
    let mut printer = Printer { out: String::new(), tensors_only: program.version <= (1, 0) };
    printer.program(program);
    printer.out
}

struct Printer {
    out: String,
    /// Scalars are written as tensors of rank 0.
    tensors_only: bool,
}
struct Quoted<'a>(&'a str);
struct Hex(f64);

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Writing to a String cannot fail.
    fn show(&mut self, item: impl Display) {
        let _ = write!(self.out, "{item}");
    }

    fn list<I: IntoIterator>(&mut self, items: I, mut one: impl FnMut(&mut Self, I::Item)) {
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            one(self, item);
        }
    }

    fn program(&mut self, program: &Program) {
        self.show(format_args!("program({}.{})\n", program.version.0, program.version.1));
        if !program.build_info.is_empty() {
            self.put("[buildInfo = dict<");
            self.list([(); 2], |p, ()| p.ty(&Type::scalar(DType::String)));
            self.put(">({");
            self.list(&program.build_info, |p, (k, v)| p.show(format_args!("{{{}, {}}}", Quoted(k), Quoted(v))));
            self.put("})]\n");
        }
        self.put("{\n");
        for function in &program.functions {
            self.function(function);
        }
        self.put("}\n");
    }

    fn function(&mut self, function: &Function) {
        self.show(format_args!("    func {}<{}>(", function.name, function.opset));
        self.list(&function.params, |p, v| p.declaration(&function.values[*v]));
        self.put(")");
        if !function.attrs.is_empty() {
            self.put(" [");
            self.list(&function.attrs, Printer::attribute);
            self.put("]");
        }
        self.put(" {\n");
        for (_, op) in function.ops.iter() {
            self.statement(function, op);
        }
        self.put("    } -> (");
        self.list(&function.results, |p, v| p.put(&function.values[*v].name));
        self.put(");\n");
    }

    fn declaration(&mut self, value: &Value) {
        if value.state {
            self.put("state<");
        }
        self.ty(&value.ty);
        self.put(if value.state { "> " } else { " " });
        self.put(&value.name);
    }

    fn statement(&mut self, function: &Function, op: &Op) {
        self.put("        ");
        self.list(&op.results, |p, v| p.declaration(&function.values[*v]));
        if !op.results.is_empty() {
            self.put(" = ");
        }
        self.put(op.kind.name());
        let argument = |p: &mut Printer, (name, arg): &(String, Arg)| {
            p.show(format_args!("{name} = "));
            p.argument(function, arg);
        };
        let attribute = |p: &mut Printer, (name, literal): &(String, Literal)| {
            p.show(format_args!("{name} = "));
            p.literal(literal);
        };
        // A constant that is decoded from literals has them where a `const` has its value.
        let decoded = op.kind != OpKind::Const && op.kind.makes_constant() && op.args.iter().all(|(_, arg)| matches!(arg, Arg::Literal(_)));
        self.put("(");
        if !decoded {
            self.list(&op.args, argument);
        }
        self.put(")");
        if !op.attrs.is_empty() || (decoded && !op.args.is_empty()) {
            self.put("[");
            if decoded {
                self.list(&op.args, argument);
            }
            if decoded && !op.args.is_empty() && !op.attrs.is_empty() {
                self.put(", ");
            }
            self.list(&op.attrs, attribute);
            self.put("]");
        }
        self.put(";\n");
    }

    fn argument(&mut self, function: &Function, arg: &Arg) {
        match arg {
            Arg::Value(v) => self.put(&function.values[*v].name),
            Arg::List(vs) => {
                self.put("(");
                self.list(vs, |p, v| p.put(&function.values[*v].name));
                self.put(")");
            }
            Arg::Literal(literal) => self.literal(literal),
        }
    }

    /// `fp16` or `tensor<fp16, []>`, by dialect, for a scalar.
    fn ty(&mut self, ty: &Type) {
        if ty.shape.is_empty() && !self.tensors_only { self.show(ty.dtype) } else { self.show(ty) }
    }

    fn literal(&mut self, literal: &Literal) {
        self.ty(&literal.ty());
        self.put("(");
        match literal {
            Literal::Text(text) => self.show(Quoted(text)),
            Literal::Texts(ty, values) => self.elements(ty, values, |p, v| p.show(Quoted(v))),
            Literal::Blob { path, offset, .. } => {
                self.put("BLOBFILE(path = ");
                self.literal(&Literal::Text(path.clone()));
                self.put(", offset = ");
                self.ty(&Type::scalar(DType::U64));
                self.show(format_args!("({offset}))"));
            }
            Literal::Ints(ty, values) if ty.dtype == DType::Bool => {
                self.elements(ty, values, |p, v| p.put(if *v != 0 { "true" } else { "false" }));
            }
            Literal::Ints(ty, values) => self.elements(ty, values, |p, v| p.show(v)),
            Literal::Floats(ty, values) => self.elements(ty, values, |p, v| p.show(Hex(*v))),
        }
        self.put(")");
    }

    /// `v` for a scalar, `[[v, v], [v, v]]` for a tensor: one pair of brackets for each axis.
    fn elements<T>(&mut self, ty: &Type, values: &[T], one: impl Fn(&mut Self, &T)) {
        // Elements below one step of each axis, innermost first: brackets open and close at its multiples.
        let length = |d: u64| usize::try_from(d).unwrap_or(usize::MAX);
        let rows: Vec<usize> = ty
            .shape
            .iter()
            .rev()
            .scan(1usize, |n, &d| {
                *n = n.saturating_mul(length(d));
                Some(*n)
            })
            .collect();
        if values.is_empty() {
            self.put("[]");
        }
        for (i, value) in values.iter().enumerate() {
            let edges = |at: usize| rows.iter().filter(|&&n| n != 0 && at.is_multiple_of(n)).count();
            if i > 0 {
                self.put(", ");
            }
            (0..edges(i)).for_each(|_| self.put("["));
            one(self, value);
            (0..edges(i + 1)).for_each(|_| self.put("]"));
        }
    }

    fn attribute(&mut self, attribute: &Attribute) {
        self.show(format_args!("{} = ", attribute.name));
        self.attribute_type(&attribute.ty);
        self.put("(");
        self.attribute_value(&attribute.value);
        self.put(")");
    }

    fn attribute_type(&mut self, ty: &AttributeType) {
        match ty {
            AttributeType::Tensor(ty) => self.ty(ty),
            AttributeType::Dict(parts) => {
                self.put("dict<");
                self.list(parts.iter(), Printer::attribute_type);
                self.put(">");
            }
            AttributeType::List(element, length) => {
                self.put("list<");
                self.attribute_type(element);
                if *length == 0 { self.put(", ?>") } else { self.show(format_args!(", {length}>")) }
            }
            AttributeType::Tuple(parts) => {
                self.put("tuple<");
                self.list(parts, Printer::attribute_type);
                self.put(">");
            }
        }
    }

    fn attribute_value(&mut self, value: &AttributeValue) {
        match value {
            AttributeValue::Bool(b) => self.show(b),
            AttributeValue::Int(n) => self.show(n),
            AttributeValue::Float(x) => self.show(Hex(*x)),
            AttributeValue::Text(text) => self.show(Quoted(text)),
            AttributeValue::List(items) => {
                self.put("[");
                self.list(items, Printer::attribute_value);
                self.put("]");
            }
            AttributeValue::Tuple(items) => {
                self.put("(");
                self.list(items, Printer::attribute_value);
                self.put(")");
            }
            AttributeValue::Dict(pairs) => {
                self.put("{");
                self.list(pairs, |p, [key, value]| {
                    p.put("{");
                    p.attribute_value(key);
                    p.put(", ");
                    p.attribute_value(value);
                    p.put("}");
                });
                self.put("}");
            }
        }
    }
}

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

impl Display for Hex {
    /// C's `%a`: a leading 1 (0 for zero only), as many digits as needed, a signed decimal exponent.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let x = self.0;
        if !x.is_finite() {
            return f.write_str(if x.is_nan() {
                "nan"
            } else if x > 0.0 {
                "inf"
            } else {
                "-inf"
            });
        }
        let sign = if x.is_sign_negative() { "-" } else { "" };
        if x == 0.0 {
            return write!(f, "{sign}0x0p+0");
        }
        let bits = x.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        // A subnormal double is shifted until its leading one stands where a normal one has it.
        let (exponent, fraction) = if field > 0 {
            (field - 1023, fraction)
        } else {
            let shift = fraction.leading_zeros() - 11;
            (-1022 - shift as i32, (fraction << shift) & ((1 << 52) - 1))
        };
        write!(f, "{sign}0x1")?;
        if fraction != 0 {
            let digits = format!("{fraction:013x}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        write!(f, "p{exponent:+}")
    }
}
