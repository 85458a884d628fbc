//! Programs with one mistake: they are refused where the mistake is.

use mil::{Blobs, Diagnostics, Profile};

/// A small network with every kind of token that a mistake can be made in. One statement a line.
const PROGRAM: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremltools-version", "9.0"}})]
{
    func main<ios18>(tensor<fp16, [1, 64, 1, 96]> source, tensor<fp16, [1, 64, 1, 96]> window) {
        tensor<int32, [4]> corner = const()[name = string("corner"), val = tensor<int32, [4]>([0, 0, 0, 32])];
        tensor<int32, [4]> extent = const()[name = string("extent"), val = tensor<int32, [4]>([1, 64, 1, 64])];
        tensor<fp16, [1, 64, 1, 64]> sliced = slice_by_size(x = source, begin = corner, size = extent)[name = string("sliced")];
        tensor<int32, [3]> flatter = const()[name = string("flatter"), val = tensor<int32, [3]>([1, 64, 96])];
        tensor<fp16, [1, 64, 96]> keys = reshape(x = window, shape = flatter)[name = string("keys")];
        tensor<int32, [3]> square = const()[name = string("square"), val = tensor<int32, [3]>([1, 64, 64])];
        tensor<fp16, [1, 64, 64]> queries = reshape(x = sliced, shape = square)[name = string("queries")];
        bool yes = const()[name = string("yes"), val = bool(true)];
        bool no = const()[name = string("no"), val = bool(false)];
        tensor<fp16, [1, 64, 96]> scores = matmul(x = queries, y = keys, transpose_x = yes, transpose_y = no)[name = string("scores")];
        int32 behind = const()[name = string("behind"), val = int32(-1)];
        tensor<fp16, [1, 64, 96]> shares = softmax(x = scores, axis = behind)[name = string("shares")];
        int32 front = const()[name = string("front"), val = int32(1)];
        tensor<fp16, [1, 32, 96]> upper, tensor<fp16, [1, 32, 96]> lower = split(x = shares, num_splits = pair, axis = front)[name = string("halves")];
        tensor<fp16, [1, 64, 96]> joined = concat(values = (lower, upper), axis = front, interleave = no)[name = string("joined")];
        fp16 tiny = const()[name = string("tiny"), val = fp16(0x1p-10)];
        tensor<fp16, [1, 64, 96]> rooted = rsqrt(x = joined, epsilon = tiny)[name = string("rooted")];
        tensor<int32, [1]> reduced = const()[name = string("reduced"), val = tensor<int32, [1]>([1])];
        tensor<fp16, [1, 1, 96]> summed = reduce_sum(x = rooted, axes = reduced, keep_dims = yes)[name = string("summed")];
        tensor<fp16, [1, 64, 96]> scaled = mul(x = rooted, y = summed)[name = string("scaled")];
        tensor<int32, [4]> finished = const()[name = string("finished"), val = tensor<int32, [4]>([1, 64, 1, 96])];
        tensor<fp16, [1, 64, 1, 96]> result = reshape(x = scaled, shape = finished)[name = string("result")];
    } -> (result);
}
"#;

fn program() -> String {
    let pair = "        int32 pair = const()[name = string(\"pair\"), val = int32(2)];\n";
    PROGRAM.replacen("        int32 front", &format!("{pair}        int32 front"), 1)
}

fn check(text: &str) -> Result<(), Diagnostics> {
    mil::verify(mil::parse(text)?, Blobs::default(), Profile::Language).map(|_| ())
}

/// Words, numbers, strings and marks, with where they lie.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || "_.+".contains(c);
        let rest = &text[at..];
        let length = match c {
            '"' => rest[1..].find('"').unwrap() + 2,
            '-' if rest.starts_with("->") => 2,
            '-' => 1 + rest[1..].find(|c| !word(c)).unwrap(),
            c if word(c) => {
                let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
                // The exponent's sign belongs to a number.
                if rest[..end].ends_with('p') && rest[..end].starts_with("0x") {
                    end + 1 + rest[end + 1..].find(|c| !word(c)).unwrap()
                } else {
                    end
                }
            }
            c => c.len_utf8(),
        };
        if !c.is_whitespace() {
            found.push((at, &rest[..length]));
        }
        at += length;
    }
    found
}

fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// A mutated text, and where its mutated token and the next one begin.
struct Mutant {
    what: String,
    text: String,
    at: usize,
    next: usize,
    /// The value that the token defines, by its name or as an element of the constant: its use is where it is wrong.
    defines: Option<String>,
}

fn mutant(text: &str, tokens: &[(usize, &str)], i: usize, new: &str) -> Mutant {
    let (at, old) = tokens[i];
    let mutated = format!("{}{new}{}", &text[..at], &text[at + old.len()..]);
    let next = tokens.get(i + 1).map_or(mutated.len(), |(next, _)| next + new.len() - old.len());
    // The name stands behind the type; the elements of a constant stand behind its name.
    let scalar = matches!(tokens[i - 1].1, "fp16" | "int32" | "bool") && tokens.get(i + 1).is_some_and(|t| t.1 == "=");
    let defines = if scalar || tokens[i - 1].1 == ">" {
        Some(old)
    } else {
        let statement = &text[text[..at].rfind('\n').map_or(0, |n| n + 1)..at];
        statement.contains("val = ").then(|| statement.split(" = ").next().and_then(|head| head.rsplit(' ').next())).flatten()
    };
    let what = format!("`{old}` to `{new}` at {at}");
    Mutant { what, text: mutated, at, next, defines: defines.map(String::from) }
}

/// Letters swapped, doubled or lost.
fn misspelt(word: &str, n: usize) -> String {
    let at = 1 + n % (word.len() - 1);
    match n % 3 {
        0 => format!("{}{}", &word[..at], &word[at + 1..]),
        1 => format!("{}q{}", &word[..at], &word[at..]),
        _ => format!("{}q{}", &word[..at], &word[at + 1..]),
    }
}

fn mutants(text: &str) -> Vec<Mutant> {
    let tokens = tokens(text);
    let body = tokens.iter().position(|t| t.1 == "corner").unwrap() - 8;
    let mut made = Vec::new();
    let word = |w: &str| w.len() > 2 && w.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') && !w.starts_with("0x");
    for (i, &(at, token)) in tokens.iter().enumerate().skip(3) {
        let before = tokens[i - 1].1;
        match token {
            // Names of attributes carry no meaning that could be missed.
            _ if token.starts_with('"') => {}
            "," => made.push(mutant(text, &tokens, i, " ")),
            "fp16" | "int32" | "bool" if before == "<" && i > body => {
                let other = if token == "fp16" { "fp32" } else { "fp16" };
                made.push(mutant(text, &tokens, i, other));
            }
            _ if word(token) && i > body => made.push(mutant(text, &tokens, i, &misspelt(token, at))),
            _ if token.parse::<u64>().is_ok_and(|n| n > 1) && matches!(before, "[" | ",") && i > body => {
                made.push(mutant(text, &tokens, i, &format!("{}", token.parse::<u64>().unwrap() + 1)));
            }
            _ => {}
        }
        // Two arguments of one op take each other's values.
        if token == "=" && tokens.get(i + 2).is_some_and(|t| t.1 == ",") && tokens.get(i + 4).is_some_and(|t| t.1 == "=") {
            let (a, b) = (tokens[i + 1], tokens[i + 5]);
            if a.1 != b.1 && word(a.1) && word(b.1) {
                let swapped = format!("{}{}{}{}{}", &text[..a.0], b.1, &text[a.0 + a.1.len()..b.0], a.1, &text[b.0 + b.1.len()..]);
                made.push(Mutant { what: format!("`{}` and `{}` swapped", a.1, b.1), text: swapped, at: a.0, next: b.0, defines: None });
            }
        }
    }
    made
}

/// Mutations that leave a right program: what they change is free, or means the same.
fn is_harmless(mutant: &Mutant) -> bool {
    // `mul` does not mind the order of its factors.
    mutant.what == "`rooted` and `summed` swapped"
}

#[test]
fn the_program_itself_is_right() {
    check(&program()).unwrap_or_else(|d| panic!("{}", d.render("t", &program())));
}

#[test]
fn mistakes_are_found_where_they_are() {
    let text = program();
    let mutants = mutants(&text);
    assert!(mutants.len() >= 200, "{}", mutants.len());
    let mut missed = Vec::new();
    for m in mutants.iter().filter(|m| !is_harmless(m)) {
        let Err(found) = check(&m.text) else {
            missed.push(format!("{}: not found", m.what));
            continue;
        };
        found.render("t.mil", &m.text);
        let first = &found.0[0];
        let place = line(&m.text, first.span.start);
        let here = place == line(&m.text, m.at) || place == line(&m.text, m.next);
        // A wrong definition is found at its first use, and shown beside it.
        let by_use = m.defines.as_ref().is_some_and(|name| {
            let use_at = tokens(&m.text).iter().find(|t| t.1 == name && t.0 > m.at).map(|t| line(&m.text, t.0));
            use_at == Some(place) && first.notes.iter().any(|(span, _)| line(&m.text, span.start) == line(&m.text, m.at))
        });
        if !(here || by_use) {
            missed.push(format!("{} on line {}: {} on line {place}", m.what, line(&m.text, m.at), first));
        }
    }
    assert!(missed.is_empty(), "{} of {} missed\n{}", missed.len(), mutants.len(), missed.join("\n"));
}
