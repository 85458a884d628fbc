//! NumPy files: one array each, header and raw numbers (numpy.lib.format, versions 1 to 3).

use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers end, and data begin, at a multiple of this.
const ALIGN: usize = 64;

/// An array, row-major. `f64` holds every number of the types that are read, but for integers beyond 2^53.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f64>,
}

/// What is wrong with a file.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum NpyError {
    #[error("it does not begin as a NumPy file does; write one with numpy.save")]
    Magic,
    #[error("it is of version {0} of the format, 1 to 3 are read")]
    Version(u8),
    #[error("it is cut short: {found} bytes where the header and {wanted} are announced")]
    Short { found: usize, wanted: String },
    #[error("its header lacks `{0}`, or says something else there than numpy.save writes")]
    Header(&'static str),
    #[error("its numbers are of type `{0}`; f2, f4, f8, i1 to i8, u1 to u8 and b1 are read, little-endian: convert with astype")]
    Type(String),
    #[error("it is in Fortran order; save numpy.ascontiguousarray(x)")]
    Fortran,
    #[error("shape {shape:?} takes {wanted} bytes, the file has {found}")]
    Size { shape: Vec<usize>, wanted: String, found: usize },
}

/// Reads an array.
pub(super) fn read(bytes: &[u8]) -> Result<Array, NpyError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
    let short = |wanted: &str| NpyError::Short { found: bytes.len(), wanted: wanted.into() };
    let (length, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [1..=3, ..] | [] => return Err(short("its length")),
        [version, ..] => return Err(NpyError::Version(*version)),
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(|| short(&format!("{length} bytes of it")))?;
    let header = std::str::from_utf8(header).map_err(|_| NpyError::Header("descr"))?;
    let descr = quoted(after(header, "descr")?).ok_or(NpyError::Header("descr"))?;
    if after(header, "fortran_order")?.starts_with("True") {
        return Err(NpyError::Fortran);
    }
    let shape = shape(after(header, "shape")?).ok_or(NpyError::Header("shape"))?;
    let (width, number) = reader(descr).ok_or_else(|| NpyError::Type(descr.into()))?;
    let wanted = shape.iter().try_fold(width, |n, &d| n.checked_mul(d));
    if wanted != Some(data.len()) {
        let wanted = wanted.map_or("too many".into(), |n| n.to_string());
        return Err(NpyError::Size { shape, wanted, found: data.len() });
    }
    Ok(Array { shape, values: data.chunks_exact(width).map(number).collect() })
}

/// Writes an array of elements that `descr` names, `<f2` say; `data` holds them little-endian, row-major.
pub(super) fn write(path: &Path, descr: &str, shape: &[usize], data: &[u8]) -> std::io::Result<()> {
    let list: String = shape.iter().map(|n| format!("{n}, ")).collect();
    // A tuple of one has its comma, others need none at the end.
    let list = if shape.len() == 1 { list.trim_end() } else { list.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({list}), }}");
    let before = MAGIC.len() + 4;
    while !(before + header.len() + 1).is_multiple_of(ALIGN) {
        header.push(' ');
    }
    header.push('\n');
    // Five axes at most: the header is far from 64 KiB.
    let length = (header.len() as u16).to_le_bytes();
    std::fs::write(path, [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat())
}

/// What follows a key of the header's dictionary.
fn after<'a>(header: &'a str, key: &'static str) -> Result<&'a str, NpyError> {
    let find = |quote: char| header.split_once(&format!("{quote}{key}{quote}"));
    let (_, rest) = find('\'').or_else(|| find('"')).ok_or(NpyError::Header(key))?;
    Ok(rest.trim_start().strip_prefix(':').ok_or(NpyError::Header(key))?.trim_start())
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split(quote).next()
}

/// `(2, 3)`, `(2,)` or `()`.
fn shape(text: &str) -> Option<Vec<usize>> {
    let inside = text.strip_prefix('(')?.split_once(')')?.0;
    inside.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect()
}

/// Bytes of a number, and how it is read from them.
type Reader = (usize, fn(&[u8]) -> f64);

fn reader(descr: &str) -> Option<Reader> {
    macro_rules! little {
        ($t:ty, $n:literal) => {
            ($n, (|b| <$t>::from_le_bytes(b.try_into().unwrap_or([0; $n])) as f64) as fn(&[u8]) -> f64)
        };
    }
    let kind = descr.strip_prefix(['<', '|', '=']).unwrap_or(descr);
    Some(match kind {
        "f2" => (2, |b| cpu::f16::from_le_bytes([b[0], b[1]]).to_f64()),
        "f4" => little!(f32, 4),
        "f8" => little!(f64, 8),
        "i1" => little!(i8, 1),
        "i2" => little!(i16, 2),
        "i4" => little!(i32, 4),
        "i8" => little!(i64, 8),
        "u1" | "b1" => little!(u8, 1),
        "u2" => little!(u16, 2),
        "u4" => little!(u32, 4),
        "u8" => little!(u64, 8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// As numpy 2 writes it.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{header:<117}\n");
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn numpys_files_are_read() {
        let f4 = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
        let array = read(&file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", &f4)).unwrap();
        assert_eq!(array, Array { shape: vec![1, 2], values: vec![1.5, -2.0] });
        let scalar = read(&file("{'descr': '|i1', 'fortran_order': False, 'shape': (), }", &[0xFF])).unwrap();
        assert_eq!(scalar, Array { shape: vec![], values: vec![-1.0] });
        let vector = read(&file("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", &[0, 0x3C, 0, 0x7C, 1, 0])).unwrap();
        assert_eq!(vector.values, [1.0, f64::INFINITY, 2f64.powi(-24)]);
        let none = read(&file("{'descr': '<f2', 'fortran_order': False, 'shape': (0, 4), }", &[])).unwrap();
        assert_eq!((none.shape, none.values.len()), (vec![0, 4], 0));
    }

    #[test]
    fn what_is_written_is_read_and_begins_at_a_multiple_of_64() {
        let dir = tempfile::tempdir().unwrap();
        for shape in [vec![], vec![2], vec![1, 2, 1]] {
            let path = dir.path().join("a.npy");
            let data = vec![0x3C; 2 * shape.iter().product::<usize>()];
            write(&path, "<f2", &shape, &data).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!((bytes.len() - data.len()) % ALIGN, 0);
            assert_eq!(read(&bytes).unwrap().shape, shape);
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = file("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", &[0; 4]);
        for cut in 0..good.len() {
            assert!(read(&good[..cut]).is_err(), "cut at {cut}");
        }
        let refused = |header: &str| read(&file(header, &[0; 4])).unwrap_err();
        assert_eq!(refused("{'descr': '<f2', 'fortran_order': True, 'shape': (2,), }"), NpyError::Fortran);
        assert_eq!(refused("{'descr': '>f2', 'fortran_order': False, 'shape': (2,), }"), NpyError::Type(">f2".into()));
        assert_eq!(refused("{'fortran_order': False, 'shape': (2,), }"), NpyError::Header("descr"));
        assert_eq!(refused("{'descr': '<f2', 'fortran_order': False, 'shape': (-2,), }"), NpyError::Header("shape"));
        assert!(matches!(refused("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }"), NpyError::Size { .. }));
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }";
        assert!(matches!(refused(huge), NpyError::Size { .. }));
        assert_eq!(read(b"\x93NUMPY\x09\0\0\0"), Err(NpyError::Version(9)));
    }
}
