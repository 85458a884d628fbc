//! `fmt`: blanks change, nothing else does.

use crate::program;

const MESSY: &str = r#"// A program.
//   Second line.


program( 1.3 )[buildInfo=dict<string,string>( {{"k","v"} , {"a", "b"}} )]
{ // opens

  // the function
func main < ios18 >(tensor<fp16,[1 , 64]>x , // first
     tensor<fp16, [1,64]> y)
{


 // exponent
 fp16 half=const()[val=fp16(  0.50 )];
tensor<fp16,[1,64]> e = exp( x=x )[ name = string("e") ];  // behind

tensor<fp16, [1, 64]> s = add(x = e,
   // inside
   y = y); tensor<fp16, [1, 64]> t = mul(x = s, y = half);
   // last
 }->( t ) ;

}
// the end
"#;

const NEAT: &str = r#"// A program.
//   Second line.

program(1.3)
[buildInfo = dict<string, string>({{"k", "v"}, {"a", "b"}})]
{ // opens

    // the function
    func main<ios18>(tensor<fp16, [1, 64]> x, // first
        tensor<fp16, [1, 64]> y) {
        // exponent
        fp16 half = const()[val = fp16(0.50)];
        tensor<fp16, [1, 64]> e = exp(x = x)[name = string("e")]; // behind

        tensor<fp16, [1, 64]> s = add(x = e,
            // inside
            y = y);
        tensor<fp16, [1, 64]> t = mul(x = s, y = half);
        // last
    } -> (t);
}
// the end
"#;

#[test]
fn comments_and_blank_lines_are_kept() {
    assert_eq!(mil::fmt(MESSY).unwrap(), NEAT);
    assert_eq!(mil::fmt(NEAT).unwrap(), NEAT);
    assert_eq!(mil::parse(NEAT), mil::parse(MESSY));
}

#[test]
fn comments_between_any_two_tokens_survive() {
    let text = program("tensor<fp16, [1, 64]> x", "tensor<fp16, [1, 64]> y = add(x = x, y = x);", "y");
    let places: Vec<usize> = text.match_indices(|c: char| !c.is_ascii_alphanumeric() && !"_.\"".contains(c)).map(|(i, _)| i).collect();
    for at in places {
        if text[..at].ends_with('-') {
            continue;
        }
        for comment in ["// note\n", "\n// note\n", "\n\n// note\n\n\n// two\n\n"] {
            let commented = format!("{}{comment}{}", &text[..at], &text[at..]);
            let Ok(formatted) = mil::fmt(&commented) else { panic!("{commented}") };
            assert_eq!(formatted.matches("// note").count(), 1, "{commented}");
            assert_eq!(formatted.matches("// two").count(), commented.matches("// two").count(), "{commented}");
            assert_eq!(mil::parse(&formatted), mil::parse(&text), "{commented}");
            assert_eq!(mil::fmt(&formatted).as_ref(), Ok(&formatted), "{commented}");
        }
    }
}

#[test]
fn a_text_that_is_not_read_is_not_laid_out() {
    assert_eq!(mil::fmt("program(1.3) {").unwrap_err(), mil::parse("program(1.3) {").unwrap_err());
}
