"""One layer: kiln/w4a16.h on arrays of NumPy."""
import ctypes
from dataclasses import dataclass
from typing import Any

from kiln._library import InvalidArgument, check, lib
from kiln._tensor import numpy_dtype
from kiln.convert._packages import package

np = package("numpy")
DTYPES = ("f16", "bf16", "f32")
LAYOUTS = ("canonical", "sm80_v1")
_TYPES = {"float32": 0, "float16": 1, "bfloat16": 2}  # kiln_w4a16_type


class _Target(ctypes.Structure):
    _fields_ = [("weights", ctypes.c_void_p), ("scales", ctypes.c_void_p), ("zeros", ctypes.c_void_p),
                ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("group", ctypes.c_int64), ("type", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]


@dataclass(frozen=True)
class Weights:
    """A layer: what gemm_w4a16 takes by these names, scales and zeros as n_k."""

    weights: Any  # u8 [n, k / 2]
    scales: Any  # [n, k / group]
    zeros: Any  # the same, or None

    @property
    def group(self) -> int:
        return 2 * self.weights.shape[-1] // self.scales.shape[-1]


def _make(n: int, k: int, groups: int, dtype: str, zeros: bool) -> tuple[Weights, _Target]:
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}: must be one of {', '.join(DTYPES)}")
    if groups < 1 or k % groups:
        raise ValueError(f"scales are of {groups} groups: must divide the {k} columns")
    kind = np.dtype(numpy_dtype(dtype))
    made = Weights(np.empty((n, k // 2), np.uint8), np.empty((n, groups), kind),
                   np.empty((n, groups), kind) if zeros else None)
    return made, _Target(made.weights.ctypes.data, made.scales.ctypes.data, made.zeros.ctypes.data if zeros else None,
                         n, k, k // groups, _TYPES[kind.name])


def _words(name: str, array: Any) -> Any:
    if array.dtype not in (np.int32, np.uint32) or array.ndim != 2:
        raise ValueError(f"{name} is {array.dtype} {list(array.shape)}: must be a matrix of int32")
    return np.ascontiguousarray(array)


def _call(function: str, *arguments: Any) -> None:
    """What kiln refuses is a ValueError: it is the file that is wrong."""
    try:
        check(getattr(lib, function)(*arguments))
    except InvalidArgument as error:
        raise ValueError(str(error)) from None


def _scales(array: Any, groups: int, n: int) -> tuple[Any, int]:
    if array.dtype.name not in _TYPES:
        raise ValueError(f"scales are {array.dtype}: must be one of {', '.join(_TYPES)}")
    if array.shape != (groups, n):
        raise ValueError(f"scales are {list(array.shape)}: must be {[groups, n]}, as qzeros has groups and columns")
    return np.ascontiguousarray(array), _TYPES[array.dtype.name]


def _zeros(qzeros: Any, groups: int, n: int) -> None:
    if qzeros.shape != (groups, n // 8):
        raise ValueError(f"qzeros is {list(qzeros.shape)}: must be {[groups, n // 8]}")


def from_awq(qweight: Any, qzeros: Any, scales: Any, dtype: str = "f16") -> Weights:
    """A layer of AWQ, in the format of AutoAWQ's GEMM: qweight [k, n / 8], qzeros [k / group, n / 8], scales
    [k / group, n]."""
    qweight, qzeros = _words("qweight", qweight), _words("qzeros", qzeros)
    k, n, groups = qweight.shape[0], 8 * qweight.shape[1], qzeros.shape[0]
    _zeros(qzeros, groups, n)
    scales, kind = _scales(scales, groups, n)
    made, target = _make(n, k, groups, dtype, True)
    _call("kiln_w4a16_from_awq", ctypes.byref(target), qweight.ctypes.data, qzeros.ctypes.data, scales.ctypes.data, kind)
    return made


def from_gptq(qweight: Any, qzeros: Any, scales: Any, g_idx: Any = None, dtype: str = "f16") -> Weights:
    """A layer of GPTQ, in AutoGPTQ's format "gptq": qweight [k / 8, n], qzeros [k / group, n / 8], scales
    [k / group, n], and the group of each of the k rows, which must be in order."""
    qweight, qzeros = _words("qweight", qweight), _words("qzeros", qzeros)
    k, n, groups = 8 * qweight.shape[0], qweight.shape[1], qzeros.shape[0]
    _zeros(qzeros, groups, n)
    scales, kind = _scales(scales, groups, n)
    if g_idx is not None and (g_idx.dtype != np.int32 or g_idx.shape != (k,)):
        raise ValueError(f"g_idx is {g_idx.dtype} {list(g_idx.shape)}: must be int32 {[k]}")
    order = None if g_idx is None else np.ascontiguousarray(g_idx)
    made, target = _make(n, k, groups, dtype, True)
    _call("kiln_w4a16_from_gptq", ctypes.byref(target), qweight.ctypes.data, qzeros.ctypes.data, scales.ctypes.data, kind,
          None if order is None else order.ctypes.data)
    return made


def _from_blocks(function: str, blocks: Any, size: int, dtype: str, zeros: bool) -> Weights:
    if blocks.dtype != np.uint8 or blocks.ndim < 2 or blocks.shape[-1] % size:
        raise ValueError(f"blocks are {blocks.dtype} {list(blocks.shape)}: must be uint8, in rows of {size} bytes a block")
    blocks = np.ascontiguousarray(blocks)
    *leading, row = blocks.shape
    n, groups = int(np.prod(leading)), row // size
    made, target = _make(n, 32 * groups, groups, dtype, zeros)
    _call(function, ctypes.byref(target), blocks.ctypes.data)
    shaped = (None if part is None else part.reshape(*leading, part.shape[-1])
              for part in (made.weights, made.scales, made.zeros))
    return Weights(*shaped)


def from_q4_0(blocks: Any, dtype: str = "f16") -> Weights:
    """Blocks of GGUF's Q4_0, u8 [..., k / 32 * 18]."""
    return _from_blocks("kiln_w4a16_from_q4_0", blocks, 18, dtype, False)


def from_q4_1(blocks: Any, dtype: str = "f16") -> Weights:
    """Blocks of GGUF's Q4_1, u8 [..., k / 32 * 20]."""
    return _from_blocks("kiln_w4a16_from_q4_1", blocks, 20, dtype, True)


def _ordered(function: str, layout: str, weights: Any) -> Any:
    number = ctypes.c_int()
    _call("kiln_w4a16_layout_find", layout.encode(), ctypes.byref(number))
    weights = np.ascontiguousarray(weights)
    made = np.empty_like(weights)
    *leading, n, half = weights.shape
    for matrix in np.ndindex(*leading):
        _call(function, number, n, 2 * half, weights[matrix].ctypes.data, made[matrix].ctypes.data)
    return made


def repack(layout: str, weights: Any) -> Any:
    """Canonical weights, u8 [n, k / 2], in another layout."""
    return _ordered("kiln_w4a16_repack", layout, weights)


def unpack(layout: str, packed: Any) -> Any:
    """The reverse of ``repack``, to the bit."""
    return _ordered("kiln_w4a16_unpack", layout, packed)
