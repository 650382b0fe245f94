"""Arrays of other libraries, seen where they are: their address, shape, strides, dtype and device. Nothing is copied."""
import ctypes
from dataclasses import dataclass
from typing import Any, Sequence

SIZES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u8": 1, "i8": 1}
LONG_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64", "u8": "uint8",
              "i8": "int8"}
SHORT_NAMES = {long: short for short, long in LONG_NAMES.items()}


@dataclass
class Tensor:
    data: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str
    backend: str
    ordinal: int
    owner: Any  # keeps the memory


def packed(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _module(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


# ---- NumPy, and what has its interfaces

_TYPESTRINGS = {"<f4": "f32", "<f2": "f16", "<i4": "i32", "<i8": "i64", "|u1": "u8", "|i1": "i8"}


def _from_interface(name: str, array: Any, interface: dict, backend: str, ordinal: int, written: bool) -> Tensor:
    data, read_only = interface["data"]
    if written and read_only:
        raise ValueError(f"{name} is read-only: it is written")
    typestr = interface["typestr"]
    dtype = "bf16" if getattr(getattr(array, "dtype", None), "name", "") == "bfloat16" else _TYPESTRINGS.get(typestr)
    if dtype is None:
        raise TypeError(f"{name}: dtype {typestr} is none of {', '.join(SIZES)}")
    shape = tuple(interface["shape"])
    steps = interface.get("strides")
    if any(step % SIZES[dtype] for step in steps or ()):
        raise ValueError(f"{name} has strides of {list(steps)} bytes: must be multiples of an element's {SIZES[dtype]}")
    strides = packed(shape) if steps is None else tuple(step // SIZES[dtype] for step in steps)
    return Tensor(data, shape, strides, dtype, backend, ordinal, array)


def torch_dtype(name: str, array: Any) -> str:
    dtype = SHORT_NAMES.get(str(array.dtype).rpartition(".")[2])
    if dtype is None:
        raise TypeError(f"{name}: dtype {array.dtype} is none of {', '.join(SIZES)}")
    return dtype


def _from_torch(name: str, array: Any) -> Tensor:
    dtype = torch_dtype(name, array)
    if array.requires_grad and _grad_enabled():
        raise RuntimeError(f"{name} requires a gradient: kiln is for inference; call it under torch.no_grad()")
    kind = array.device.type
    if kind not in ("cpu", "cuda") or (kind == "cuda" and _is_hip()):
        raise TypeError(f"{name}: device {array.device} is none whose streams kiln can borrow")
    return Tensor(array.data_ptr(), tuple(array.shape), tuple(array.stride()), dtype, kind, array.device.index or 0, array)


def _grad_enabled() -> bool:
    import torch
    return torch.is_grad_enabled()


def _is_hip() -> bool:
    import torch
    return torch.version.hip is not None


# ---- DLPack

class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DLPACK_DTYPES = {(2, 32): "f32", (2, 16): "f16", (4, 16): "bf16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8",
                  (0, 8): "i8"}
_DLPACK_DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 10: "rocm"}
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _from_dlpack(name: str, array: Any) -> Tensor:
    kind, ordinal = array.__dlpack_device__()
    if kind not in _DLPACK_DEVICES:
        raise TypeError(f"{name}: DLPack device {kind} is none of kiln's")
    capsule = array.__dlpack__()  # not consumed: its own destructor releases it, with this tensor
    tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    dtype = _DLPACK_DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise TypeError(f"{name}: DLPack type {tensor.code} of {tensor.bits} bits is none of {', '.join(SIZES)}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else packed(shape)
    data = (tensor.data or 0) + tensor.byte_offset
    return Tensor(data, shape, strides, dtype, _DLPACK_DEVICES[kind], ordinal, (array, capsule))


def view(name: str, array: Any, written: bool = False) -> Tensor:
    """The array, which an error calls `name`; one that is written must not be read-only."""
    if written and _module(array) in ("jax", "jaxlib"):
        raise ValueError(f"{name} is an array of JAX, which is read-only: it is written")
    if _module(array) == "torch":
        return _from_torch(name, array)
    if hasattr(array, "__cuda_array_interface__"):
        ordinal = getattr(getattr(array, "device", None), "id", 0)
        return _from_interface(name, array, array.__cuda_array_interface__, "cuda", ordinal, written)
    if hasattr(array, "__array_interface__"):
        return _from_interface(name, array, array.__array_interface__, "cpu", 0, written)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(name, array)
    raise TypeError(f"{name} is a {type(array).__name__}: must be an array of NumPy, PyTorch, CuPy, JAX or DLPack")


# ---- Results

def numpy_dtype(dtype: str) -> Any:
    if dtype == "bf16":
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError("NumPy has bf16 only with ml_dtypes: pip install ml_dtypes", name="ml_dtypes") from None
        return ml_dtypes.bfloat16
    return LONG_NAMES[dtype]


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A new array of the library and on the device of `like`."""
    module = _module(like)
    if module == "torch":
        import torch
        return torch.empty(shape, dtype=getattr(torch, LONG_NAMES[dtype]), device=like.device)
    if module == "cupy":
        import cupy
        return cupy.empty(shape, dtype=numpy_dtype(dtype))
    if module == "numpy":
        import numpy
        return numpy.empty(shape, dtype=numpy_dtype(dtype))
    raise TypeError(f"a {type(like).__name__} cannot be made here: give the outputs")


def native_stream(like: Any) -> int:
    """The current stream of the array's library, as the driver knows it; 0: the default one."""
    module = _module(like)
    if module == "torch" and like.is_cuda:
        import torch
        return torch.cuda.current_stream(like.device).cuda_stream
    if module == "cupy":
        import cupy
        return cupy.cuda.get_current_stream().ptr
    return 0
