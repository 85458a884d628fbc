//! What files look like, byte by byte.
#![allow(clippy::unwrap_used)]

use super::*;
use std::sync::Arc;

#[test]
fn four_ones_are_the_bytes_of_the_format() {
    let file = single_f16(&[f16::ONE; 4]);
    let mut expected = vec![1, 0, 0, 0, 2, 0, 0, 0];
    expected.extend([0; 56]);
    expected.extend([0xEF, 0xBE, 0xAD, 0xDE, 1, 0, 0, 0]);
    expected.extend([8, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([0; 40]);
    expected.extend([0x00, 0x3C].repeat(4));
    assert_eq!(file, expected);
    assert_eq!(file.len(), 136);
}

#[test]
fn several_blobs_are_aligned_counted_and_read_back() {
    let sizes = [1usize, 63, 64, 65, 0, 128];
    let mut writer = Writer::new();
    let offsets: Vec<u64> = sizes.iter().map(|&n| writer.push(BlobType::I8, n as u64, &vec![n as u8; n]).unwrap()).collect();
    let file = writer.finish();
    assert_eq!(offsets, [64, 192, 320, 448, 640, 704]);
    assert_eq!(file[..8], [6, 0, 0, 0, 2, 0, 0, 0]);
    let blobs = read(&file).unwrap();
    assert_eq!(blobs.len(), sizes.len());
    for ((blob, &n), offset) in blobs.iter().zip(&sizes).zip(offsets) {
        assert_eq!((blob.offset, blob.data.len(), blob.kind), (offset, n, BlobType::I8));
        assert_eq!(blob.data.start as u64, offset + 64);
        assert!(file[blob.data.clone()].iter().all(|&b| b == n as u8));
        assert_eq!(read_at(&file, offset).as_ref(), Ok(blob));
    }
}

#[test]
fn every_type_has_apples_code_and_padding() {
    let codes: Vec<u32> = BlobType::ALL.iter().map(|t| *t as u32).collect();
    assert_eq!(codes, (1..=17).collect::<Vec<u32>>());
    assert_eq!((BlobType::from_code(0), BlobType::from_code(18)), (None, None));
    for (kind, elements, bytes, padding) in
        [(BlobType::I4, 3, 2, 4), (BlobType::U1, 9, 2, 7), (BlobType::U3, 5, 2, 1), (BlobType::U6, 4, 3, 0), (BlobType::F8E5M2, 3, 3, 0)]
    {
        let mut writer = Writer::new();
        let offset = writer.push(kind, elements, &vec![0; bytes]).unwrap();
        assert_eq!(read_at(&writer.finish(), offset).unwrap().padding_bits, padding);
        assert!(Writer::new().push(kind, elements, &vec![0; bytes + 1]).is_err());
    }
}

#[test]
fn hostile_files_are_refused() {
    let good = single_f16(&[f16::ONE; 4]);
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read_at(&file, 64)
    };
    for cut in 0..good.len() {
        assert!(matches!(read(&good[..cut]), Err(BlobError::Short { .. })), "cut at {cut}");
    }
    assert!(matches!(with(4, &[3]), Err(BlobError::Version { found: 3 })));
    assert!(matches!(with(64, &[0]), Err(BlobError::Sentinel { .. })));
    assert!(matches!(with(68, &[18]), Err(BlobError::Code { code: 18, .. })));
    assert!(matches!(with(72, &[0xFF; 8]), Err(BlobError::Short { .. })));
    assert!(matches!(with(80, &[0xFF; 8]), Err(BlobError::Short { .. })));
    assert!(matches!(with(80, &[0; 8]), Err(BlobError::Short { .. })));
    assert!(matches!(with(88, &[1]), Err(BlobError::Padding { .. })));
    for offset in [0, 1, 63, 65, u64::MAX, u64::MAX - 63] {
        assert!(read_at(&good, offset).is_err(), "{offset}");
    }
    let mut many = good.clone();
    many[..4].copy_from_slice(&[0xFF; 4]);
    assert!(matches!(read(&many), Err(BlobError::Short { what: "metadata", .. })));
}

#[test]
fn constants_are_checked_against_their_type() {
    let path = "@model_path/weights/w.bin";
    let blobs = Blobs([(path.to_string(), Arc::from(single_f16(&[f16::ONE, f16::NEG_ONE])))].into());
    let blob = |ty: Type, path: &str| Literal::Blob { ty, path: path.into(), offset: 64 };
    assert_eq!(blobs.f16s(&blob(Type::f16(&[2, 1]), path)).unwrap().as_ref(), [f16::ONE, f16::NEG_ONE]);
    assert!(matches!(blobs.f16s(&blob(Type::f16(&[3]), path)), Err(BlobError::Size { found: 4, wanted: 6, .. })));
    assert!(matches!(blobs.f16s(&blob(Type::f16(&[2]), "w.bin")), Err(BlobError::NoFile { .. })));
    let int8 = Type { dtype: DType::I8, shape: vec![4] };
    assert!(matches!(blobs.data(path, 64, &int8), Err(BlobError::Kind { .. })));
    assert_eq!(blobs.f16s(&Literal::f16(0.5)).unwrap().as_ref(), [f16::from_f32(0.5)]);
    assert!(matches!(blobs.f16s(&Literal::int(1)), Err(BlobError::NotF16 { found: DType::I32 })));
}

/// Bytes as coremltools' own writer makes them of these numbers (`oracle/blob.py`).
const APPLE: &[(BlobType, &[i64], &[u8], u64)] = &[
    (BlobType::I4, &[-8, 7, -1, 3, 2], &[0x78, 0x3f, 0x02], 4),
    (BlobType::U1, &[1, 0, 1, 1, 0, 0, 0, 1, 1], &[0x8d, 0x01], 7),
    (BlobType::U2, &[0, 1, 2, 3, 3], &[0xe4, 0x03], 6),
    (BlobType::U3, &[1, 2, 3, 4, 5, 6, 7, 0, 5], &[0xd1, 0x58, 0x1f, 0x05], 5),
    (BlobType::U4, &[1, 15, 8], &[0xf1, 0x08], 4),
    (BlobType::U6, &[1, 2, 3, 63, 40], &[0x81, 0x30, 0xfc, 0x28], 2),
    (BlobType::I32, &[1, -2], &[1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff], 0),
    (BlobType::U32, &[1, 4_000_000_000], &[1, 0, 0, 0, 0x00, 0x28, 0x6b, 0xee], 0),
];

#[test]
fn whole_numbers_are_packed_as_apples_writer_packs_them() {
    let mut writer = Writer::new();
    let mut wanted = Vec::new();
    for (kind, values, bytes, padding) in APPLE {
        assert_eq!(pack(*kind, values).unwrap(), *bytes, "{kind:?}");
        assert_eq!(unpack(*kind, bytes, values.len()).unwrap(), *values, "{kind:?}");
        wanted.push((writer.push(*kind, values.len() as u64, bytes).unwrap(), *padding));
    }
    // The file that the writer makes of all of them is 1032 bytes long, blobs at multiples of 64.
    let file = writer.finish();
    assert_eq!((file.len(), &file[..8]), (1032, &[8, 0, 0, 0, 2, 0, 0, 0][..]));
    let found: Vec<(u64, u64)> = read(&file).unwrap().iter().map(|b| (b.offset, b.padding_bits)).collect();
    assert_eq!(found, wanted);
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<u64>>(), [64, 192, 320, 448, 576, 704, 832, 960]);
}

#[test]
fn what_does_not_fit_is_not_packed() {
    assert_eq!(pack(BlobType::U3, &[8]), Err(BlobError::Value { kind: BlobType::U3, value: 8 }));
    assert_eq!(pack(BlobType::I4, &[-9]), Err(BlobError::Value { kind: BlobType::I4, value: -9 }));
    assert_eq!(pack(BlobType::F16, &[1]), Err(BlobError::Value { kind: BlobType::F16, value: 1 }));
    assert!(unpack(BlobType::U6, &[0], 2).is_err());
    assert!(unpack(BlobType::U1, &[0], usize::MAX).is_err());
    assert_eq!(unpack(BlobType::F8E5M2, &[0], 1), Err(BlobError::NotInts { found: DType::F16 }));
}

#[test]
fn small_constants_are_read_from_files() {
    for (kind, values, bytes, _) in APPLE {
        let mut writer = Writer::new();
        let offset = writer.push(*kind, values.len() as u64, bytes).unwrap();
        let blobs = Blobs([("w".to_string(), Arc::from(writer.finish()))].into());
        let ty = Type { dtype: kind.dtype().unwrap(), shape: vec![values.len() as u64] };
        let literal = Literal::Blob { ty, path: "w".into(), offset };
        assert_eq!(blobs.ints(&literal).unwrap(), *values);
        assert!(blobs.f16s(&literal).is_err());
    }
    assert_eq!(Blobs::default().ints(&Literal::ints(&[1, 2])).unwrap(), [1, 2]);
    assert_eq!(Blobs::default().ints(&Literal::f16(1.0)), Err(BlobError::NotInts { found: DType::F16 }));
}
