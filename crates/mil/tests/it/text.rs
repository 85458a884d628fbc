//! The text form: what is written, and that reading gives it back.

use crate::{check, program};
use mil::{Builder, DType, Literal, Opset};

const CANONICAL: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremlc-component-MIL", "3510.2.1"}, {"coremlc-version", "3505.4.1"}, {"coremltools-component-milinternal", ""}, {"coremltools-version", "9.0"}})]
{
    func main<ios18>(tensor<fp16, [1, 64, 1, 96]> a_x) {
        tensor<int32, [4]> i_0_0_0_0 = const()[name = string("i_0_0_0_0"), val = tensor<int32, [4]>([0, 0, 0, 0])];
        tensor<int32, [4]> i_1_64_1_32 = const()[name = string("i_1_64_1_32"), val = tensor<int32, [4]>([1, 64, 1, 32])];
        tensor<fp16, [1, 64, 1, 32]> slice_by_size_0 = slice_by_size(begin = i_0_0_0_0, size = i_1_64_1_32, x = a_x)[name = string("slice_by_size_0")];
        fp16 f_0_125 = const()[name = string("f_0_125"), val = fp16(0x1p-3)];
        tensor<fp16, [1, 64, 1, 32]> mul_0 = mul(x = slice_by_size_0, y = f_0_125)[name = string("mul_0")];
        tensor<fp16, [64, 64, 1, 1]> w_wq = const()[name = string("w_wq"), val = tensor<fp16, [64, 64, 1, 1]>(BLOBFILE(path = string("@model_path/weights/wq.bin"), offset = uint64(64)))];
        tensor<int32, [2]> i_1_1 = const()[name = string("i_1_1"), val = tensor<int32, [2]>([1, 1])];
        int32 i_1 = const()[name = string("i_1"), val = int32(1)];
        string s_valid = const()[name = string("s_valid"), val = string("valid")];
        tensor<fp16, [1, 64, 1, 32]> conv_0 = conv(dilations = i_1_1, groups = i_1, pad = i_0_0_0_0, pad_type = s_valid, strides = i_1_1, weight = w_wq, x = mul_0)[name = string("conv_0")];
        bool b_false = const()[name = string("b_false"), val = bool(false)];
        tensor<fp16, [1, 128, 1, 32]> y = concat(axis = i_1, interleave = b_false, values = (conv_0, mul_0))[name = string("y")];
    } -> (y);
}
"#;

#[test]
fn a_built_program_prints_as_the_compiler_takes_it() {
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("a_x", &[1, 64, 1, 96]).unwrap();
    let act = b.slice(x, &[0; 4], &[1, 64, 1, 32]).unwrap();
    let eighth = b.scalar(0.125).unwrap();
    let act = b.mul(act, eighth).unwrap();
    let w = b.blob("@model_path/weights/wq.bin", &[64, 64, 1, 1]).unwrap();
    let q = b.conv1x1(act, w).unwrap();
    let y = b.concat(&[q, act], 1).unwrap();
    let program = b.finish(&[("y", y)]).unwrap();
    assert_eq!(mil::print(&program), CANONICAL);
    assert_eq!(mil::parse(CANONICAL).unwrap(), program);
}

#[test]
fn printing_what_was_parsed_gives_the_same_text() {
    let several = r#"program(1.3)
{
    func main<ios17>(fp32 a, tensor<fp16, [?, 3]> b) {
        tensor<fp16, [2, 2]> m = const()[val = tensor<fp16, [2, 2]>([[0x1p+0, -0x1.8p-14], [inf, -0x0p+0]])];
        tensor<bool, [1, 2]> t = const()[name = string("a \"quoted\" \\ name\n"), val = tensor<bool, [1, 2]>([[true, false]])];
        tensor<fp16, [1]> r, tensor<fp16, [1]> s = split(x = tensor<fp16, [2]>([0x1p-24, 0x1.ffcp+15]), axis = int32(0));
        tensor<int8, [4]> w = const()[val = tensor<int8, [4]>(BLOBFILE(path = string("@model_path/w.bin"), offset = uint64(128)))];
        fp32 z = add(x = a, y = fp32(0x1.fffffep+127));
    } -> (r, z);
    func other<ios18>() {
    } -> ();
}
"#;
    assert_eq!(mil::print(&mil::parse(several).unwrap()), several);
}

#[test]
fn layout_and_number_forms_do_not_matter() {
    let loose = r#"
        program ( 1.3 ) // a comment
        [buildInfo=dict<string,string>({{"k","v"}})]
        { func main<ios18>(tensor<fp16,[2,2]> x)
        {
            tensor<fp16,[2,2]> c=const()[val=tensor<fp16,[2,2]>([1,0.5,-2e0,0x3p-2]),name=string("c")];
            tensor<fp16,[2,2]> y=add(y=c,x=x); } ->(y); }"#;
    let strict = program(
        "tensor<fp16, [2, 2]> x",
        "tensor<fp16, [2, 2]> c = const()[val = tensor<fp16, [2, 2]>([[0x1p+0, 0x1p-1], [-0x1p+1, 0x1.8p-1]]), name = string(\"c\")];\n\
         tensor<fp16, [2, 2]> y = add(y = c, x = x);",
        "y",
    );
    assert_eq!(mil::parse(loose).unwrap(), mil::parse(&strict).unwrap());
    check(loose).unwrap();
}

#[test]
fn numbers_round_to_their_type() {
    let text = program("", "tensor<fp16, [3]> c = const()[val = tensor<fp16, [3]>([0.1, 65519.9, 0x1p-26])];", "c");
    let parsed = mil::parse(&text).unwrap();
    let op = parsed.functions[0].ops.iter().next().unwrap().1.clone();
    let Some(Literal::Floats(ty, values)) = op.attr("val") else { panic!("{op:?}") };
    assert_eq!((ty.dtype, values.as_slice()), (DType::F16, [0.0999755859375, 65504.0, 0.0].as_slice()));
}
