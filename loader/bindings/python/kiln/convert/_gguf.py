"""GGUF files. Their metadata, a model's parameters and its tokenizer, are not read."""
from pathlib import Path
from typing import Any, Iterator

from kiln._tensor import numpy_dtype
from kiln.convert._packages import package
from kiln.convert._weights import from_q4_0, from_q4_1

_LAYERS = {"Q4_0": from_q4_0, "Q4_1": from_q4_1}
_PLAIN = ("F16", "F32", "F64", "I8", "I16", "I32", "I64")


def read(source: Path, dtype: str, dequantize: bool) -> Iterator[tuple[str, Any]]:
    """Layers and other tensors. A layer "x.weight" is called "x"."""
    gguf = package("gguf")
    for tensor in gguf.GGUFReader(str(source)).tensors:
        kind = tensor.tensor_type.name
        if kind in _LAYERS and tensor.data.ndim >= 2:
            yield tensor.name.removesuffix(".weight"), _LAYERS[kind](tensor.data, dtype)
        elif kind in _PLAIN:
            yield tensor.name, tensor.data
        elif kind == "BF16":
            yield tensor.name, tensor.data.view(package("ml_dtypes").bfloat16)
        elif dequantize:
            yield tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type).astype(numpy_dtype(dtype))
        else:
            raise ValueError(f"{tensor.name} is {kind}: must be one of {', '.join((*_LAYERS, *_PLAIN, 'BF16'))}, or be "
                             "dequantised (--dequantize)")
