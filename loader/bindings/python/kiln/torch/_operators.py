"""The operators as PyTorch's own, torch.ops.kiln.softmax and the others: schemas, kernels, and what torch.compile asks.

They are those of ``kiln.ops`` with the precision of their arrays, without optional outputs and outputs given by name.
"""
from typing import Any, Callable

import torch

from kiln import _describe as describe
from kiln import ops
from kiln._call import Call
from kiln._describe import Field, Operator
from kiln._tensor import Tensor, torch_dtype

_library = torch.library.Library("kiln", "DEF")
_TYPES = {describe.OPTION: "str?", describe.INTEGER: "int?", describe.SIZE: "SymInt?", describe.REAL: "float?"}


def _argument(field: Field, alias: str) -> str:
    if field.role in describe.TENSORS:
        kind = f"Tensor({alias}!)" if field.role == describe.UPDATE else "Tensor"
        return f"{kind}? {field.name}=None" if field.optional else f"{kind} {field.name}"
    return f"{_TYPES[field.role]} {field.name}=None"


def _schema(operator: Operator) -> str:
    by_name = [field for field in operator.options if field.role != describe.OUTPUT and field not in operator.inputs]
    arguments = [_argument(field, f"a{place}") for place, field in enumerate(operator.inputs)]
    if by_name:
        arguments += ["*", *(_argument(field, f"b{place}") for place, field in enumerate(by_name))]
    outputs = sum(field.role == describe.OUTPUT and not field.optional for field in operator.tensors)
    result = "Tensor" if outputs == 1 else f"({', '.join(['Tensor'] * outputs)})"
    return f"{operator.name}({', '.join(arguments)}) -> {result}"


class _Shapes(Call):
    """A call up to its outputs, of tensors that have no memory."""

    def view(self, name: str, array: Any, written: bool = False) -> Tensor:
        return Tensor(0, tuple(array.shape), tuple(array.stride()), torch_dtype(name, array), array.device.type,
                      array.device.index or 0, array)


def _kernel(operator: Operator) -> Callable[..., Any]:
    return getattr(ops, operator.name)


def _fake(operator: Operator) -> Callable[..., Any]:
    return lambda *arrays, **options: _Shapes(operator, None, arrays, options).allocate()


def _autograd(operator: Operator) -> Callable[..., Any]:
    def function(keys: Any, *arrays: Any, **options: Any) -> Any:
        for name, array in (*zip((field.name for field in operator.inputs), arrays), *options.items()):
            if isinstance(array, torch.Tensor) and array.requires_grad and torch.is_grad_enabled():
                raise RuntimeError(f"{operator.name}: {name} requires a gradient: kiln is for inference; call it under "
                                   "torch.no_grad()")
        return overload.redispatch(keys & torch._C._after_autograd_keyset, *arrays, **options)

    overload = getattr(torch.ops.kiln, operator.name).default
    return function


def _define(operator: Operator) -> None:
    _library.define(_schema(operator), tags=(torch.Tag.needs_fixed_stride_order,))
    for key in ("CPU", "CUDA"):
        _library.impl(operator.name, _kernel(operator), key)
    _library.impl(operator.name, _autograd(operator), "Autograd", with_keyset=True)
    torch.library.register_fake(f"kiln::{operator.name}", _fake(operator), lib=_library)


names = []
for _operator in describe.operators():
    _define(_operator)
    names.append(_operator.name)
namespace = torch.ops.kiln
