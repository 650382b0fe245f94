"""What a call did, for kiln._fast to do again: see loader/bindings/python/fast.h. A call with arrays of other libraries than
NumPy and PyTorch has no plan, nor has one in bf16 with NumPy, which has no such type itself."""
import ctypes
import sys
from typing import Any, Callable

from kiln import _describe as describe
from kiln._call import Call
from kiln._device import device
from kiln._library import check
from kiln._tensor import LONG_NAMES

_fast: Any = None
if sys.version_info >= (3, 11):
    try:
        from kiln import _fast
        _fast.start(check)
    except ImportError:  # the wheel was made without it, or for another Python
        pass


def function(name: str, text: str, slow: Callable[[tuple, dict[str, Any]], Call]) -> Callable[..., Any]:
    """The function of ``kiln.ops`` that runs the call which `slow` makes of its arguments."""
    if _fast is None:
        def plain(*arrays: Any, **options: Any) -> Any:
            return slow(arrays, options).run()

        plain.__name__ = plain.__qualname__ = name
        plain.__doc__ = text
        return plain

    def first(arrays: tuple, options: dict[str, Any]) -> tuple[Any, Any]:
        call = slow(arrays, options)
        result = call.run()
        return result, _plan(call, arrays, options)

    return _fast.function(name, text, first)


def _maker(array: Any) -> Callable[[tuple[int, ...], str], tuple[Any, tuple, dict[str, Any] | None]] | None:
    """How the array's library makes others beside it: a function and its arguments. None: not known to kiln._fast."""
    kind = type(array)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and _fast.register(kind, None, None):
        import numpy
        return lambda shape, dtype: (numpy.empty, (shape, numpy.dtype(LONG_NAMES[dtype])), None)
    torch = sys.modules.get("torch")
    exchange = getattr(kind, "__dlpack_c_exchange_api__", None)
    known = torch and kind in (torch.Tensor, torch.nn.Parameter) and exchange
    if known and _fast.register(kind, exchange, torch.is_grad_enabled):
        where = array.device
        return lambda shape, dtype: (torch.empty, (shape,), {"dtype": getattr(torch, LONG_NAMES[dtype]), "device": where})
    return None


def _output(call: Call, name: str, make: Any, places: dict[str, int]) -> tuple[int, Any, tuple, Any]:
    """How an output is made: like an argument, whose place is first then, which PyTorch does in half the time; or -1."""
    made = call.tensors[name]
    for other, tensor in call.tensors.items():
        alike = (tensor.shape, tensor.strides, tensor.dtype) == (made.shape, made.strides, made.dtype)
        if alike and other in places and type(call.arrays[other]).__module__.partition(".")[0] == "torch":
            return places[other], sys.modules["torch"].empty_like, (), None
    return -1, *make(made.shape, made.dtype)


def _plan(call: Call, arrays: tuple, options: dict[str, Any]) -> tuple | None:
    makers = [_maker(array) for name, array in call.arrays.items() if name in call.given]
    numpy_bf16 = any(tensor.dtype == "bf16" and type(call.arrays[name]).__module__ == "numpy"
                     for name, tensor in call.tensors.items())
    if None in makers or numpy_bf16:
        return None
    make, operator, first = makers[0], call.operator, next(iter(call.tensors.values()))
    places = {field.name: place for place, field in zip(range(len(arrays)), operator.inputs)}
    places |= {name: len(arrays) + place for place, name in enumerate(options) if options[name] is not True}
    params, pointers, outputs, results = bytearray(call.params), [], [], []
    for field in operator.fields:
        if field.role in (*describe.TENSORS, describe.WORKSPACE, describe.WORKSPACE_SIZE):
            params[field.offset:field.offset + 8] = bytes(8)
        if field.name not in call.tensors:
            continue
        if field.name in places:
            pointers.append((field.offset, places[field.name]))
        if field.role == describe.OUTPUT:
            results.append(-1 - places[field.name] if field.name in places else len(outputs))
            if field.name not in places:
                outputs.append((field.offset, *_output(call, field.name, make, places)))

    def workspace(size: int) -> Any:
        made, args, more = make((-(-size // 8),), "i64")
        return made(*args, **more or {})

    offsets = {field.role: field.offset for field in operator.fields}
    query = operator.workspace_sizes.get(call.part)
    return (device(first.backend, first.ordinal).handle.value, _address(operator.calls[call.part]),
            _address(query) if query else 0, bytes(params), tuple(pointers), tuple(outputs), tuple(results), workspace,
            offsets.get(describe.WORKSPACE, 0), offsets.get(describe.WORKSPACE_SIZE, 0))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value
