//! The op table against a digest of coremltools' (`oracle/op_table.py` makes it).

use mil::Opset;
use mil::ops::{Domain, Kind, Need, OPS, OpDef, OpKind, Param};
use std::collections::{BTreeMap, BTreeSet};

const DIGEST: &str = include_str!("op_table.digest");

/// What coremltools does not have in its table: its serializer makes them.
const OTHERS: &[&str] = &["write_state"];

/// One argument of the digest: whether it is constant, optional, a tuple; its letter; its types.
type Argument<'a> = (bool, bool, bool, &'a str, BTreeSet<&'a str>);
/// Op and range of opsets.
type Form<'a> = (&'a str, Opset, Opset);

fn digest() -> BTreeMap<Form<'static>, BTreeMap<&'static str, Argument<'static>>> {
    DIGEST
        .lines()
        .map(|line| {
            let mut parts = line.split(" | ");
            let head: Vec<&str> = parts.next().unwrap().split(' ').collect();
            let argument = |part: &'static str| {
                let mut words = part.split(' ');
                let (name, flags, letter) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
                (name, (flags.contains('c'), flags.contains('o'), flags.contains('l'), letter, words.collect()))
            };
            ((head[0], Opset::from_word(head[1]).unwrap(), Opset::from_word(head[2]).unwrap()), parts.map(argument).collect())
        })
        .collect()
}

fn table() -> BTreeMap<Form<'static>, &'static OpDef> {
    let defs = OPS.iter().flat_map(|(_, defs)| defs.iter().copied());
    defs.filter(|d| !OTHERS.contains(&d.name)).map(|d| ((d.name, d.opsets.0, d.opsets.1), d)).collect()
}

#[test]
fn every_form_of_every_op_is_there_and_no_other() {
    let (digest, table) = (digest(), table());
    assert_eq!(digest.keys().collect::<Vec<_>>(), table.keys().collect::<Vec<_>>());
    assert_eq!(digest.keys().map(|f| f.0).collect::<BTreeSet<_>>().len(), 168);
}

#[test]
fn arguments_are_those_of_coremltools() {
    let digest = digest();
    for (form, def) in table() {
        let wanted = &digest[&form];
        let names: BTreeSet<&str> = def.params.iter().map(|p| p.name).collect();
        assert_eq!(names, wanted.keys().copied().collect(), "{form:?}");
        assert_eq!(names.len(), def.params.len(), "{form:?}");
        for param in def.params {
            let (constant, optional, list, _, types) = &wanted[param.name];
            let at = format!("{form:?} {}", param.name);
            assert_eq!(!matches!(param.need, Need::Required), *optional, "{at}");
            assert_eq!(param.kind == Kind::Const, *constant, "{at}");
            assert_eq!(param.kind == Kind::List, *list, "{at}");
            let known: BTreeSet<&str> = param.domain.dtypes().iter().map(|d| d.word()).collect();
            assert!(types.contains("*") || known == *types, "{at}: {known:?}, not {types:?}");
        }
        let letter = |p: &Param| match p.domain {
            Domain::T(_) => 'T',
            Domain::U(_) => 'U',
            Domain::Free(_) => '-',
        };
        for (i, a) in def.params.iter().enumerate() {
            for b in &def.params[..i] {
                let (x, y) = (wanted[a.name].3, wanted[b.name].3);
                assert_eq!(letter(a) == letter(b) && letter(a) != '-', x == y && x != "-", "{form:?} {} and {}", a.name, b.name);
            }
        }
    }
}

#[test]
fn forms_of_an_op_do_not_overlap() {
    for (kind, defs) in OPS {
        assert!(defs.windows(2).all(|pair| pair[0].opsets.1 < pair[1].opsets.0), "{}", kind.name());
        for (opset, _) in Opset::WORDS {
            let forms = defs.iter().filter(|d| d.opsets.0 <= *opset && *opset <= d.opsets.1).count();
            assert_eq!(kind.def(*opset).is_some(), forms == 1);
        }
        assert_eq!(OpKind::from_name(kind.name()), Some(*kind));
    }
}
