"""4-bit checkpoints of other systems as weights for ``kiln.ops.gemm_w4a16``, in a safetensors file.

>>> kiln.convert.convert("Llama-3-8B-AWQ/", "llama.safetensors")

``python -m kiln.convert IN OUT`` does the same. IN is a folder with the safetensors files of AWQ or GPTQ, one such file, or
a GGUF file with tensors of Q4_0 or Q4_1. A layer "x" becomes x.weights, u8 [n, k / 2], x.scales, and, unless it is of Q4_0,
x.zeros, [n, k / group]; all other tensors are copied. Needs NumPy and safetensors; gguf for GGUF, ml_dtypes for bf16.
"""
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from kiln._library import version
from kiln.convert._packages import package
from kiln.convert._weights import DTYPES, LAYOUTS, Weights, from_awq, from_gptq, from_q4_0, from_q4_1, repack, unpack

__all__ = ["Summary", "Weights", "convert", "from_awq", "from_gptq", "from_q4_0", "from_q4_1", "repack", "unpack"]


@dataclass(frozen=True)
class Summary:
    """What ``convert`` wrote."""

    layers: int  # of 4-bit integers
    others: int  # tensors that were copied
    size: int  # of the file, in bytes

    def __str__(self) -> str:
        return f"{self.layers} layers, {self.others} other tensors, {self.size} bytes"


def convert(source: str | Path, target: str | Path, dtype: str = "f16", layout: str = "canonical",
            dequantize: bool = False) -> Summary:
    """Writes the safetensors file `target`; all its tensors are in memory until then.

    Scales and zeros are of `dtype`, "f16", "bf16" or "f32". `layout` is the order of the weights' bytes, which
    gemm_w4a16 takes as weight_layout: "canonical", or "sm80_v1" for NVIDIA GPUs from sm_80 on and for f16 on sm_75; the
    file's metadata has it as "weight_layout". Tensors of a GGUF file that are quantised in another way are refused, or
    with `dequantize` made `dtype`. A ValueError names the tensor that cannot be converted.
    """
    source = Path(source)
    for name, value, known in (("dtype", dtype, DTYPES), ("layout", layout, LAYOUTS)):
        if value not in known:
            raise ValueError(f"{name} is {value!r}: must be one of {', '.join(known)}")
    save_file = package("safetensors.numpy").save_file
    tensors: dict[str, Any] = {}
    layers = others = 0
    for name, found in _read(source, dtype, dequantize):
        if isinstance(found, Weights):
            layers += 1
            tensors |= _named(name, found, layout)
        else:
            others += 1
            tensors[name] = found
    if not layers:
        raise ValueError(f"{source} has no layer of AWQ, GPTQ, Q4_0 or Q4_1")
    metadata = {"format": "kiln_w4a16", "kiln_version": version(), "weight_layout": layout}
    save_file(tensors, str(target), metadata=metadata)
    return Summary(layers, others, Path(target).stat().st_size)


def _read(source: Path, dtype: str, dequantize: bool) -> Iterator[tuple[str, Any]]:
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist")
    if source.suffix == ".gguf":
        from kiln.convert._gguf import read
        return read(source, dtype, dequantize)
    if source.is_dir() or source.suffix == ".safetensors":
        from kiln.convert._checkpoint import read as read_checkpoint
        return read_checkpoint(source, dtype)
    raise ValueError(f"{source} is unknown: must be a folder, a .safetensors or a .gguf file")


def _named(name: str, found: Weights, layout: str) -> dict[str, Any]:
    try:
        weights = repack(layout, found.weights)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    named = {f"{name}.weights": weights, f"{name}.scales": found.scales}
    return named if found.zeros is None else named | {f"{name}.zeros": found.zeros}
