//! Numbers as written.

/// A floating-point number: decimal, hexadecimal with a binary exponent, `inf` or `nan`; rounded to the nearest double.
pub(super) fn float(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let magnitude = match digits {
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => hexadecimal(hex)?,
            // `f64::from_str` takes words too, and signs.
            None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
            None => return None,
        },
    };
    Some(sign * magnitude)
}

/// `1.8p+1`: hexadecimal digits with a point, then an optional binary exponent in decimal.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut shift) = (0u64, 0i64);
    for (i, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(c.to_digit(16)?);
        let behind_point = i >= whole.len();
        if mantissa < 1 << 59 {
            mantissa = mantissa << 4 | digit;
            shift -= if behind_point { 4 } else { 0 };
        } else {
            // Beyond what a double resolves: all that counts is whether something is there.
            mantissa |= u64::from(digit != 0);
            shift += if behind_point { 0 } else { 4 };
        }
    }
    Some(scale(mantissa as f64, shift.saturating_add(i64::from(exponent))))
}

/// `x * 2^exponent` for an integer `x`, rounded once.
fn scale(x: f64, exponent: i64) -> f64 {
    let power = |e: i64| 2f64.powi(e as i32);
    match exponent.clamp(-2200, 2200) {
        // The first factor leaves a normal number, so only the second product can round.
        e if e < -1000 => x * power(-1000) * power((e + 1000).max(-1000)),
        e if e > 1000 => x * power(1000) * power((e - 1000).min(1000)),
        e => x * power(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_hexadecimal() {
        for (text, value) in [
            ("0x1p-3", 0.125),
            ("-0x1.8p+1", -3.0),
            ("0x1.ffcp+15", 65504.0),
            ("0x0p+0", 0.0),
            ("0xffp0", 255.0),
            ("0x10", 16.0),
            ("0x.8p0", 0.5),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1.fffffffffffffp+1023", f64::MAX),
            ("0x1p+99999", f64::INFINITY),
            ("0x1p-99999", 0.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000000001p0", 1.0 + f64::EPSILON),
            ("1.5", 1.5),
            ("-1e-5", -1e-5),
            ("12", 12.0),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(float(text), Some(value), "{text}");
        }
        assert!(float("nan").is_some_and(f64::is_nan));
        for text in ["", "-", "0x", "0xp1", "0x.p1", "0x1p", "0x1p1.5", "0xg", "1.5.2", "infinity", "1e", "--1", "0x1.-8p0"] {
            assert_eq!(float(text), None, "{text}");
        }
    }
}
