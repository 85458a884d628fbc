"""The op table of coremltools as a digest: one line for each op and range of opsets in which its form is the same.

    python oracle/op_table.py > crates/mil/tests/it/op_table.digest

`name first last` and then, behind bars, each argument: `name flags letter types`. Flags are `c` (a constant), `o` (optional),
`l` (a tuple), `-` (none of them). Arguments with the same letter have the same element type; `-` shares with none. `*` is any
type. Blocks and the value of a constant, which are no arguments in MIL text, are left out.
"""
import logging

logging.disable(logging.WARNING)
import coremltools as ct
from coremltools.converters.mil.mil import types
from coremltools.converters.mil.mil.ops.defs import _op_reqs  # noqa: F401  registers the ops
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

OPSETS = [ct.target.iOS15, ct.target.iOS16, ct.target.iOS17, ct.target.iOS18]


def word(t):
    return {"str": "string"}.get(types.builtin_to_string(t), types.builtin_to_string(t))


def form(cls):
    domains = getattr(cls, "type_domains", None) or {}
    inputs = [(n, i) for n, i in cls.input_spec.input_types.items() if type(i).__name__ not in ("InternalInputType", "PyFunctionInputType")]
    letters = [getattr(i, "type_domain_id", None) for _, i in inputs]
    shared = sorted({l for l in letters if l and letters.count(l) > 1})
    arguments = []
    for (name, i), letter in zip(inputs, letters):
        known = domains.get(letter) if letter else getattr(i, "_type_domain", None)
        known = known if isinstance(known, (tuple, list, set)) else [known] if known else []
        flags = "c" * bool(i.const) + "o" * bool(i.optional) + "l" * ("Tuple" in type(i).__name__)
        group = chr(ord("a") + shared.index(letter)) if letter in shared else "-"
        arguments.append(f"{name} {flags or '-'} {group} {' '.join(sorted(map(word, known))) or '*'}")
    return " | ".join(sorted(arguments))


lines = []
for op in sorted(SSAOpRegistry.core_ops):
    forms = []
    for opset in OPSETS:
        version = max((v for v in SSAOpRegistry.core_ops[op] if v <= opset), default=None)
        if version is None:
            continue
        text = form(SSAOpRegistry.core_ops[op][version])
        if forms and forms[-1][2] == text:
            forms[-1][1] = opset
        else:
            forms.append([opset, opset, text])
    lines += [f"{op} {a.name.lower()} {b.name.lower()} | {text}".rstrip(" |") for a, b, text in forms]
print("\n".join(lines))
