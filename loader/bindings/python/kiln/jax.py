"""kiln for JAX: every operator of ``kiln.ops`` on arrays of JAX, eagerly and under ``jax.jit``.

>>> import jax.numpy, kiln.jax
>>> kiln.jax.softmax(jax.numpy.ones((2, 4)))

Functions take what those of ``kiln.ops`` take, without outputs given by name. Arrays that an operator of ``kiln.ops``
writes are not written here: what they have become is returned, before the outputs. They are XLA custom calls, on the CPU
and on CUDA, which ``jax.vmap`` takes and ``jax.grad`` refuses.
"""
import ctypes
from functools import partial
from pathlib import Path
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from kiln import _describe as describe
from kiln._call import Call
from kiln._describe import Operator
from kiln._tensor import LONG_NAMES, SHORT_NAMES, SIZES, Tensor, packed
from kiln.ops import documentation

_handlers = ctypes.CDLL(str(Path(__file__).with_name("_jax.so")))
for _platform, _handler in (("cpu", _handlers.kiln_jax_cpu), ("CUDA", _handlers.kiln_jax_cuda)):
    jax.ffi.register_ffi_target("kiln", jax.ffi.pycapsule(_handler), platform=_platform)


class _Traced(Call):
    """A call whose arrays have no memory yet: its params are made when it is traced."""

    def view(self, name: str, array: Any, written: bool = False) -> Tensor:
        dtype = SHORT_NAMES.get(array.dtype.name)
        if dtype is None:
            raise TypeError(f"{name}: dtype {array.dtype} is none of {', '.join(SIZES)}")
        return Tensor(0, tuple(array.shape), packed(array.shape), dtype, "jax", 0, array)

    def empty(self, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.dtype(LONG_NAMES[dtype]))


def _custom_call(operator: Operator, part: str | None, names: tuple[str, ...], options: dict[str, Any],
                 arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    call = _Traced(operator, part, (), options | dict(zip(names, arrays)))
    made = call.allocate()
    call.fill()
    outputs = made if isinstance(made, tuple) else () if made is None else (made,)
    updates = [field.name for field in operator.tensors if field.role == describe.UPDATE]
    written = [field.name for field in operator.tensors if field.role == describe.OUTPUT and field.name in call.tensors]
    results = [jax.ShapeDtypeStruct(call.arrays[name].shape, call.arrays[name].dtype) for name in updates]
    offset = lambda name: operator.by_name[name].offset
    function = jax.ffi.ffi_call("kiln", (*results, *outputs),
                                input_output_aliases={names.index(name): place for place, name in enumerate(updates)})
    return tuple(function(
        *arrays, function=f"{operator.name}_{call.part}",
        params=np.frombuffer(bytes(call.params), np.int64),
        offsets=np.array([*(-1 if name in updates else offset(name) for name in names), *map(offset, (*updates, *written))],
                         np.int64)))


# ---- vmap

def _folds(operator: Operator, names: tuple[str, ...], batched: list[bool]) -> bool:
    """Whether a call with one more leading dimension computes what many calls do: all outputs are of rows, and an array
    has another dimension in front exactly if it is of rows. Not where the number of a row may mean something: where an
    array of one number a row, as positions, is left out, or another than of rows or columns is given, as of groups."""
    outputs = [field for field in operator.tensors if field.role == describe.OUTPUT]
    fields = [operator.by_name[name] for name in names]
    rows = outputs[0].terms[0][0] if outputs else None
    if rows is None or not rows.plain or operator.by_name[rows.size].shape:
        return False
    columns = {term.size for field in outputs for term in field.terms[0][1:]}
    for field in operator.tensors:
        if field.role == describe.UPDATE:
            return False
        for first, *others in field.terms:
            left_out = field.role == describe.INPUT and field not in fields
            if left_out and first == rows and not others:
                return False
            if field.role == describe.OUTPUT and first != rows or any(term.size == rows.size for term in others):
                return False
            if field in fields and first != rows and first.size not in columns:
                return False
    return [field.terms[0][0] == rows for field in fields] == batched


def _bound(operator: Operator, part: str | None, names: tuple[str, ...], options: dict[str, Any]) -> Callable[..., Any]:
    """The call as a function of its arrays."""
    @jax.custom_batching.custom_vmap
    def function(*arrays: Any) -> tuple[Any, ...]:
        return _custom_call(operator, part, names, options, arrays)

    @function.def_vmap
    def rule(axis_size: int, batched: list[bool], *arrays: Any) -> tuple[Any, Any]:
        if _folds(operator, names, batched):
            found = function(*arrays)
        else:
            def one(given: list[Any]) -> tuple[Any, ...]:
                rest = iter(given)
                return function(*(next(rest) if moves else array for moves, array in zip(batched, arrays)))

            found = jax.lax.map(one, [array for moves, array in zip(batched, arrays) if moves])
        return found, tuple(True for _ in found)

    return function


# ---- The functions

def _function(operator: Operator, part: str | None) -> Callable[..., Any]:
    static = tuple(field.name for field in operator.options
                   if field.role not in describe.TENSORS or field.role == describe.OUTPUT)

    @partial(jax.jit, static_argnames=static)
    def function(*arrays: Any, **options: Any) -> Any:
        given = dict(zip((field.name for field in operator.inputs), arrays))
        if len(arrays) > len(operator.inputs):
            raise TypeError(f"{function.__name__} takes {len(operator.inputs)} positional "
                            f"argument{'s' * (len(operator.inputs) != 1)}, not {len(arrays)}")
        for name in given.keys() & options.keys():
            raise TypeError(f"{function.__name__}: {name} is given twice")
        given |= {name: value for name, value in options.items() if value is not None and name not in static}
        rest = {name: value for name, value in options.items() if value is not None and name in static}
        for field in operator.tensors:
            if field.role == describe.OUTPUT and rest.get(field.name, True) is not True:
                raise TypeError(f"{function.__name__}: {field.name} is given: JAX makes all outputs")
        found = _bound(operator, part, tuple(given), rest)(*given.values())
        return found[0] if len(found) == 1 else found

    function.__name__ = function.__qualname__ = f"{operator.name}_{part}" if part else operator.name
    function.__doc__ = documentation(operator)
    return function


__all__ = []
for _operator in describe.operators():
    for _part in (None, *_operator.calls):
        _made = _function(_operator, _part)
        globals()[_made.__name__] = _made
        __all__.append(_made.__name__)
