//! How errors of text look, and that one run finds several.

use crate::{check, program};

fn rendered(text: &str) -> String {
    match check(text) {
        Ok(_) => String::new(),
        Err(diagnostics) => diagnostics.render("t.mil", text),
    }
}

#[test]
fn an_error_shows_its_line_and_what_to_do() {
    let text = program("tensor<fp16, [2, 3]> x", "    tensor<fp16, [2, 3]> y = sigmod(x = x);", "y");
    assert_eq!(
        rendered(&text),
        "error[unknown-op]: there is no op `sigmod`
 --> t.mil:5:30
  |
5 |     tensor<fp16, [2, 3]> y = sigmod(x = x);
  |                              ^^^^^^
  = help: did you mean `sigmoid`?

"
    );
    let text = program("tensor<fp16, [2, 3]> x", "    tensor<fp16, [3, 3]> y = sigmoid(x = x);", "y");
    assert_eq!(
        rendered(&text),
        "error[declared-type]: `y` is declared tensor<fp16, [3, 3]> where sigmoid gives tensor<fp16, [2, 3]>
 --> t.mil:5:26
  |
5 |     tensor<fp16, [3, 3]> y = sigmoid(x = x);
  |                          ^
  = help: declare tensor<fp16, [2, 3]>, or change the arguments

"
    );
}

#[test]
fn several_errors_are_found_at_once() {
    let text = program(
        "tensor<fp16, [2, 3]> x",
        "tensor<fp16, [2, 3]> a = exp(x = x)\n\
         tensor<fp16, [2, 3]> b = tanhh(x = a);\n\
         tensor<fp61, [2, 3]> c = tanh(x = a);\n\
         tensor<fp16, [2, 3]> d = add(x = b, y = );\n\
         tensor<fp16, [2, 3]> e = add(x = d, y = xx);\n\
         int8 f = const()[val = int8(300)];\n\
         fp16 g = const()[val = fp16(1e9)];",
        "e",
    );
    let errors = mil::parse(&text).unwrap_err();
    let lines: Vec<(&str, usize)> = errors.0.iter().map(|d| (d.code, text[..d.span.start].matches('\n').count() + 1)).collect();
    assert_eq!(lines, [("syntax", 5), ("unknown-op", 6), ("syntax", 7), ("syntax", 8), ("number", 10), ("number", 11)]);
    // `xx` on line 9 may have been defined on line 7, whose names were lost.
}

#[test]
fn misspelt_names_are_pointed_at() {
    let text = program("tensor<fp16, [2, 3]> input", "tensor<fp16, [2, 3]> y = exp(x = inptu);", "z");
    let errors = mil::parse(&text).unwrap_err().to_string();
    assert_eq!(
        errors,
        "error[undefined]: `inptu` is not defined; did you mean `input`?\nerror[undefined]: `z` is not defined; values are defined before they are used"
    );
}

#[test]
fn form_errors_say_what_is_wanted() {
    for (text, message) in [
        ("", "`program(1.3)` is expected, not the end of the text"),
        ("program(one) {}", "a version such as 1.3 is expected, not `one`"),
        ("program(1.3) { func main<ios14>() {} -> (); }", "`ios14` is no opset"),
        ("program(1.3) { func main<ios18>() { ", "the closing `}` of the function is expected, not the end of the text"),
        ("program(1.3) { func main<ios18>() {} (); }", "`->` and the results is expected, not `(`"),
        ("program(1.3) { } x", "the end of the text is expected, not `x`"),
        ("program(1.3) [a = b] {}", "`buildInfo`, the only attribute of a program is expected"),
        ("program(1.3) { func main<ios18>(state<tensor<fp16, [1]> s) {} -> (); }", "`>` after the type is expected, not `s`"),
        ("program(1.3) { func main<ios18>() [a = dict<string, int32>({\"k\", 1})] {} -> (); }", "`{` and a pair is expected"),
        ("program(1.3) { func main<ios18>(tensor<fp16, [0]> s) {} -> (); }", "the length of an axis"),
        ("program(1.3) { func main<ios18>(tensor<fp16, [1]> §) {} -> (); }", "this character has no meaning in MIL"),
        ("program(1.3) { func main<ios18>() { string s = const()[val = string(\"a); } -> (s); }", "no closing quote"),
        ("program(1.3) { func main<ios18>() { string s = const()[val = string(\"\\q\")]; } -> (s); }", "unknown escape"),
        ("program(1.3) { func main<ios18>() { bool s = const()[val = bool(1)]; } -> (s); }", "`true` or `false` is expected, not `1`"),
        ("program(1.3) { func main<ios18>() { int32 s = const()[val = int32(1.5)]; } -> (s); }", "no integer of 64 bits"),
        (
            "program(1.3) { func main<ios18>() { tensor<fp16, [2, 2]> s = const()[val = tensor<fp16, [2, 2]>([[1, 2], [3]])]; } -> (s); }",
            "has 1 elements, its type says 2",
        ),
        (
            "program(1.3) { func main<ios18>() { fp16 s = const()[val = fp16(BLOBFILE(path = string(\"a\")))]; } -> (s); }",
            "lacks its path or offset",
        ),
    ] {
        let errors = mil::parse(text).expect_err(text).to_string();
        assert!(errors.contains(message), "{text}: {errors}");
    }
}

#[test]
fn long_lines_are_cut_around_the_caret() {
    let numbers = vec!["1"; 5000].join(", ");
    let text = program("", &format!("tensor<fp16, [5001]> c = const()[val = tensor<fp16, [5001]>([{numbers}, x])];"), "c");
    let shown = rendered(&text);
    assert!(shown.lines().all(|l| l.chars().count() < 200), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    let caret = lines[4].find('^').unwrap();
    assert_eq!(lines[3].as_bytes()[caret], b'x');
}

#[test]
fn a_renamed_definition_is_shown_beside_its_first_use() {
    let text =
        program("tensor<fp16, [2, 3]> x", "tensor<fp16, [2, 3]> scrores = exp(x = x);\ntensor<fp16, [2, 3]> y = tanh(x = scores);", "y");
    assert_eq!(
        rendered(&text),
        "error[undefined]: `scores` is not defined
 --> t.mil:6:35
  |
6 | tensor<fp16, [2, 3]> y = tanh(x = scores);
  |                                   ^^^^^^
note: `scrores` is defined here
 --> t.mil:5:22
  |
5 | tensor<fp16, [2, 3]> scrores = exp(x = x);
  |                      ^^^^^^^
  = help: did you mean `scrores`?

"
    );
}
