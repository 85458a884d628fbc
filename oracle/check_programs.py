"""Type inference by coremltools of every program that training can send.

    cargo build --release
    python oracle/check_programs.py target/release/anneal [--all-shapes]   # every preset, variant and program
    python oracle/check_programs.py --file FILE.mil …                      # texts that are there already

Reads MIL text of its own accord (not with our parser), builds each op again with coremltools' builder, and compares the type that coremltools infers
with the declared one. A `BLOBFILE` constant is zeros: types do not depend on values. Exit code 0: all agree.
"""
import argparse, itertools, logging, re, subprocess, sys
import numpy as np

logging.disable(logging.WARNING)
import coremltools as ct
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import Function, Placeholder, types

PRESETS = ["storybook", "stories260k", "stories15m", "stories42m", "stories110m"]
NUMPY = {"fp16": np.float16, "fp32": np.float32, "int8": np.int8, "int32": np.int32, "int64": np.int64, "uint64": np.uint64, "bool": np.bool_}
TOKEN = re.compile(r'\s+|//[^\n]*|(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?0x[\da-fA-F.]+p[+-]?\d+|-?\d[\d.]*(?:e[+-]?\d+)?|-?inf)|(?P<word>\w+)|(?P<mark>->|[()\[\]{}<>,;=])')


class Text:
    """A reader of the part of the language that training uses."""

    def __init__(self, text):
        self.tokens, at = [], 0
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m: raise SyntaxError(f"no token at {text[at:at + 20]!r}")
            if m.lastgroup: self.tokens.append((m.lastgroup, m.group()))
            at = m.end()
        self.at = 0

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1][1]

    def peek(self): return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, *marks):
        for mark in marks:
            got = self.next()
            if got != mark: raise SyntaxError(f"{got!r} where {mark!r} is expected, token {self.at}")

    def many(self, close, item):
        found = []
        while self.peek() != close:
            found.append(item())
            if self.peek() == ",": self.next()
        self.next()
        return found

    def type(self):
        """(element type, shape)."""
        word = self.next()
        if word != "tensor": return word, ()
        self.take("<")
        dtype = self.next()
        self.take(",", "[")
        shape = tuple(self.many("]", lambda: int(self.next())))
        self.take(">")
        return dtype, shape

    def elements(self):
        if self.peek() == "[":
            self.next()
            return self.many("]", self.elements)
        word = self.next()
        if word in ("true", "false"): return word == "true"
        if word.startswith('"'): return word[1:-1]
        return float.fromhex(word) if "x" in word else float(word) if re.search(r"[.einf]", word) else int(word)

    def literal(self):
        dtype, shape = self.type()
        self.take("(")
        if self.peek() == "BLOBFILE":
            self.take("BLOBFILE", "(")
            self.many(")", lambda: (self.next(), self.take("="), self.literal()))
            value = np.zeros(shape, NUMPY[dtype])
        else:
            value = self.elements()
            if dtype != "string":
                value = np.array(value, NUMPY[dtype]).reshape(shape)
                value = value if shape else value[()]
        self.take(")")
        return (dtype, shape), value

    def argument(self):
        name = self.next()
        self.take("=")
        if self.peek() == "(":
            self.next()
            return name, tuple(self.many(")", self.next))
        return name, self.next()

    def attribute(self):
        name = self.next()
        self.take("=")
        return name, self.literal()

    def statement(self):
        """(results as (type, name), op, arguments, attributes)."""
        results = [(self.type(), self.next())]
        while self.peek() == ",":
            self.next()
            results.append((self.type(), self.next()))
        self.take("=")
        op = self.next()
        self.take("(")
        arguments = dict(self.many(")", self.argument))
        attributes = {}
        if self.peek() == "[":
            self.next()
            attributes = dict(self.many("]", self.attribute))
        self.take(";")
        return results, op, arguments, attributes

    def program(self):
        """(opset, parameters, statements, results) of the only function."""
        while self.peek() != "func": self.next()
        self.take("func", "main", "<")
        opset = self.next()
        self.take(">", "(")
        parameters = self.many(")", lambda: (self.type(), self.next()))
        self.take("{")
        statements = self.many("}", self.statement)
        self.take("->", "(")
        results = self.many(")", self.next)
        self.take(";", "}")
        return opset, parameters, statements, results


def check(text):
    """What coremltools says against a program, and how many ops it looked at."""
    opset, parameters, statements, results = Text(text).program()
    said, ops = [], 0
    inputs = {name: Placeholder(shape, dtype=types.string_to_builtin(dtype)) for (dtype, shape), name in parameters}
    with Function(inputs, opset_version=getattr(ct.target, opset.replace("ios", "iOS"))) as function:
        values = dict(function.inputs)
        for made, op, arguments, attributes in statements:
            name = made[0][1]
            try:
                if op == "const":
                    declared, value = attributes["val"]
                    if declared != made[0][0]: said.append(f"{name}: declared {made[0][0]}, its value is {declared}")
                    values[name] = mb.const(val=value, name=name)
                    continue
                ops += 1
                given = {k: tuple(values[x] for x in v) if isinstance(v, tuple) else values[v] for k, v in arguments.items()}
                got = getattr(mb, op)(name=name, **given)
                got = got if isinstance(got, (list, tuple)) else [got]
                if len(got) != len(made): said.append(f"{name}: {len(made)} results declared, {op} gives {len(got)}")
                for (declared, result), value in zip(made, got):
                    inferred = types.builtin_to_string(value.dtype), tuple(map(int, value.shape))
                    if inferred != declared: said.append(f"{result}: declared {declared}, {op} gives {inferred}")
                    values[result] = value
            except Exception as e:
                said.append(f"{name} = {op}: {type(e).__name__}: {e}")
                return said, ops
        said += [f"result {r} is not defined" for r in results if r not in values]
        function.set_outputs([values[r] for r in results if r in values])
    return said, ops


def emitted(anneal, shapes):
    """(what it is, text) of every program; equal texts come once."""
    def run(*args): return subprocess.run([anneal, "mil", "emit", *args], capture_output=True, text=True, check=True).stdout
    seen = set()
    for preset, weights, attention, shape in itertools.product(PRESETS, ["packed", "ports", "baked"], ["split", "fused"], shapes):
        flags = ["--model", preset, "--weights", weights, "--attention", attention, *shape]
        for line in run(*flags).splitlines():
            program = line.split()[0]
            text = run(*flags, "--program", program)
            if text not in seen:
                seen.add(text)
                yield f"{preset} {weights} {attention} {' '.join(shape)} {program}", text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("anneal", nargs="?")
    parser.add_argument("--all-shapes", action="store_true", help="one sequence, and one that is padded, beside the preset's own micro-batch")
    parser.add_argument("--file", nargs="+", default=[])
    args = parser.parse_args()
    shapes = [[]] + ([["--batch-size", "1"], ["--batch-size", "2", "--max-seq-length", "100"]] if args.all_shapes else [])
    programs = [(f, open(f).read()) for f in args.file] if args.file else emitted(args.anneal, shapes)
    bad = count = ops = 0
    for what, text in programs:
        said, n = check(text)
        count, ops, bad = count + 1, ops + n, bad + bool(said)
        for line in said: print(f"{what}: {line}")
    print(f"coremltools {ct.__version__}: {count} programs, {ops} ops, {bad} programs with a complaint")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
