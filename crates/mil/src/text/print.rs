//! Programs as canonical text: `program(1.3)`, one statement a line, as the chip's compiler takes it (ane-facts 5.1).

use crate::ir::{Arg, DType, Function, Literal, Op, Program, Type};
use std::fmt::{self, Display, Formatter};

/// The canonical text of a program. `print ∘ parse` is the identity on it, and `parse ∘ print` on programs.
///
/// Numbers are written exactly: floating-point ones as hexadecimal, `0x1.8p+1`.
///
/// # Panics
/// When handles do not belong to the program.
pub fn print(program: &Program) -> String {
    Text(program).to_string()
}

struct Text<'a>(&'a Program);
struct Statement<'a>(&'a Function, &'a Op);
struct Argument<'a>(&'a Function, &'a Arg);
struct Written<'a>(&'a Literal);
/// A type as it stands before a name: scalars without brackets.
struct Declared<'a>(&'a Type);
struct Quoted<'a>(&'a str);
struct Hex(f64);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let program = self.0;
        writeln!(f, "program({}.{})", program.version.0, program.version.1)?;
        if !program.build_info.is_empty() {
            f.write_str("[buildInfo = dict<string, string>({")?;
            list(f, program.build_info.iter(), |f, (k, v)| write!(f, "{{{}, {}}}", Quoted(k), Quoted(v)))?;
            f.write_str("})]\n")?;
        }
        f.write_str("{\n")?;
        for function in &program.functions {
            write!(f, "    func {}<{}>(", function.name, function.opset)?;
            list(f, function.params.iter(), |f, v| write!(f, "{} {}", Declared(&function.values[*v].ty), function.values[*v].name))?;
            f.write_str(") {\n")?;
            for (_, op) in function.ops.iter() {
                writeln!(f, "        {}", Statement(function, op))?;
            }
            f.write_str("    } -> (")?;
            list(f, function.results.iter(), |f, v| f.write_str(&function.values[*v].name))?;
            f.write_str(");\n")?;
        }
        f.write_str("}\n")
    }
}

impl Display for Statement<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Statement(function, op) = self;
        list(f, op.results.iter(), |f, v| write!(f, "{} {}", Declared(&function.values[*v].ty), function.values[*v].name))?;
        write!(f, " = {}(", op.kind.name())?;
        list(f, op.args.iter(), |f, (name, arg)| write!(f, "{name} = {}", Argument(function, arg)))?;
        f.write_str(")")?;
        if !op.attrs.is_empty() {
            f.write_str("[")?;
            list(f, op.attrs.iter(), |f, (name, literal)| write!(f, "{name} = {}", Written(literal)))?;
            f.write_str("]")?;
        }
        f.write_str(";")
    }
}

impl Display for Argument<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Argument(function, arg) = self;
        match arg {
            Arg::Value(v) => f.write_str(&function.values[*v].name),
            Arg::List(vs) => {
                f.write_str("(")?;
                list(f, vs.iter(), |f, v| f.write_str(&function.values[*v].name))?;
                f.write_str(")")
            }
            Arg::Literal(literal) => Written(literal).fmt(f),
        }
    }
}

impl Display for Written<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Literal::Text(text) => write!(f, "string({})", Quoted(text)),
            Literal::Blob { ty, path, offset } => {
                write!(f, "{}(BLOBFILE(path = string({}), offset = uint64({offset})))", Declared(ty), Quoted(path))
            }
            Literal::Ints(ty, values) if ty.dtype == DType::Bool => {
                numbers(f, ty, values, |f, v| f.write_str(if *v != 0 { "true" } else { "false" }))
            }
            Literal::Ints(ty, values) => numbers(f, ty, values, |f, v| v.fmt(f)),
            Literal::Floats(ty, values) => numbers(f, ty, values, |f, v| Hex(*v).fmt(f)),
        }
    }
}

impl Display for Declared<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.shape.is_empty() { self.0.dtype.fmt(f) } else { self.0.fmt(f) }
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

/// `type(v)` for a scalar, `tensor<type, [2, 2]>([[v, v], [v, v]])` for a tensor: one pair of brackets for each axis.
fn numbers<T>(f: &mut Formatter<'_>, ty: &Type, values: &[T], one: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result) -> fmt::Result {
    write!(f, "{}(", Declared(ty))?;
    // Elements below one step of each axis, innermost first: brackets open and close at its multiples.
    let rows: Vec<usize> = ty
        .shape
        .iter()
        .rev()
        .scan(1usize, |n, &d| {
            *n = n.saturating_mul(usize::try_from(d).unwrap_or(usize::MAX));
            Some(*n)
        })
        .collect();
    if values.is_empty() {
        f.write_str("[]")?;
    }
    for (i, value) in values.iter().enumerate() {
        let edges = |at: usize| rows.iter().filter(|&&n| n != 0 && at.is_multiple_of(n)).count();
        if i > 0 {
            f.write_str(", ")?;
        }
        (0..edges(i)).try_for_each(|_| f.write_str("["))?;
        one(f, value)?;
        (0..edges(i + 1)).try_for_each(|_| f.write_str("]"))?;
    }
    f.write_str(")")
}

fn list<I: Iterator>(f: &mut Formatter<'_>, items: I, one: impl Fn(&mut Formatter<'_>, I::Item) -> fmt::Result) -> fmt::Result {
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        one(f, item)?;
    }
    Ok(())
}
