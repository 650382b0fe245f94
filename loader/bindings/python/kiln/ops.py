"""Every operator of the library, by the names of ops.h: ``softmax_f16`` for one precision, ``softmax`` for that of its
arrays.

Arrays are NumPy's, PyTorch's, CuPy's, JAX's or DLPack's, all on one device, and nothing is copied. Inputs that must be
given stand first; optional ones and options go by name. Outputs are allocated by the library of the first array, or
given by name; an optional one is wanted with True. The work is put on the arrays' current stream and not waited for.
"""
from typing import Any, Callable

from kiln import _describe as describe
from kiln._call import Call
from kiln._describe import Operator
from kiln._plan import function


def documentation(operator: Operator) -> str:
    lines = [operator.summary, ""]
    for field in (*operator.fields, *(option for option in operator.options if option not in operator.fields)):
        if field.role in describe.TENSORS:
            kind = {describe.INPUT: "in", describe.OUTPUT: "out", describe.UPDATE: "updated"}[field.role]
            lines.append(f"{field.name} [{field.shape}], {field.dtype}, {kind}{', optional' if field.optional else ''}: "
                         f"{field.text}")
        elif field.role == describe.OPTION:
            lines.append(f"{field.name}, one of {', '.join(field.choices)}: {field.text}")
        elif field.role in (describe.INTEGER, describe.REAL) or field in operator.named_sizes:
            lines.append(f"{field.name}: {field.text}")
    return "\n".join(lines)


def _function(operator: Operator, part: str | None) -> Callable[..., Any]:
    name = f"{operator.name}_{part}" if part else operator.name
    return function(name, documentation(operator), lambda arrays, options: Call(operator, part, arrays, options))


__all__ = []
for _operator in describe.operators():
    for _part in (None, *_operator.calls):
        _made = _function(_operator, _part)
        globals()[_made.__name__] = _made
        __all__.append(_made.__name__)
