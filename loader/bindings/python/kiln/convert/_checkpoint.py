"""The safetensors files of AWQ and GPTQ."""
import json
from pathlib import Path
from typing import Any, Iterator

from kiln.convert._packages import package
from kiln.convert._weights import Weights, from_awq, from_gptq

_CONFIGS = (("config.json", "quantization_config"), ("quantize_config.json", None), ("quant_config.json", None))


def read(source: Path, dtype: str) -> Iterator[tuple[str, Any]]:
    """Layers and other tensors. The parts of a layer may stand in different files."""
    safe_open = package("safetensors").safe_open
    _check_config(source if source.is_dir() else source.parent)
    files = sorted(source.glob("*.safetensors")) if source.is_dir() else [source]
    if not files:
        raise ValueError(f"{source} has no .safetensors file")
    opened = [safe_open(str(file), "numpy") for file in files]
    places = {name: file for file in opened for name in file.keys()}
    layers = [name.removesuffix(".qweight") for name in places if name.endswith(".qweight")]
    parts = {f"{layer}.{part}" for layer in layers for part in ("qweight", "qzeros", "scales", "g_idx")}
    for name in places:
        if name.endswith(".weight_packed") or name.endswith(".weight_scale"):
            raise ValueError(f"{name}: its format is unknown: must be AWQ's or GPTQ's")
        if name not in parts:
            yield name, _tensor(places, name)
    for layer in layers:
        yield layer, _layer(layer, places, dtype)


def _tensor(places: dict[str, Any], name: str) -> Any:
    if name not in places:
        raise ValueError(f"{name} is missing")
    kind = places[name].get_slice(name).get_dtype()
    if kind == "BF16":
        package("ml_dtypes")  # with it NumPy knows the type
    try:
        return places[name].get_tensor(name)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"{name} is {kind}: NumPy has no such type") from error


def _layer(layer: str, places: dict[str, Any], dtype: str) -> Weights:
    qweight, qzeros, scales = (_tensor(places, f"{layer}.{part}") for part in ("qweight", "qzeros", "scales"))
    g_idx = _tensor(places, f"{layer}.g_idx") if f"{layer}.g_idx" in places else None
    if any(tensor.ndim != 2 for tensor in (qweight, qzeros, scales)):
        raise ValueError(f"{layer}: qweight, qzeros and scales must be matrices")
    columns = scales.shape[1]
    bits = 32 * qzeros.shape[1] // max(columns, 1)
    if bits != 4:
        raise ValueError(f"{layer}.qweight is of {bits} bits: must be of 4")
    try:
        if qweight.shape[1] == columns:
            return from_gptq(qweight, qzeros, scales, g_idx, dtype)
        if qweight.shape[1] * 8 == columns:
            return from_awq(qweight, qzeros, scales, dtype)
    except ValueError as error:
        raise ValueError(f"{layer}: {error}") from None
    raise ValueError(f"{layer}.qweight is {list(qweight.shape)}, its scales are {list(scales.shape)}: neither as in AWQ's "
                     "GEMM format nor as in GPTQ's")


def _check_config(folder: Path) -> None:
    """What the shapes do not tell: where a file beside them says how they were quantised, it must be known."""
    for name, key in _CONFIGS:
        file = folder / name
        if not file.exists():
            continue
        config = json.loads(file.read_text())
        config = config.get(key) if key else config
        if config:
            _check_method(file, config)


def _check_method(file: Path, config: dict[str, Any]) -> None:
    method = config.get("quant_method", "gptq" if file.name == "quantize_config.json" else "awq")
    known = {"awq": ("version", ("gemm",)), "gptq": ("checkpoint_format", ("gptq",))}
    if method not in known:
        raise ValueError(f"{file}: quant_method is {method!r}: must be one of {', '.join(known)}")
    bits = config.get("bits", config.get("w_bit", 4))
    if bits != 4:
        raise ValueError(f"{file}: bits is {bits}: must be 4")
    key, formats = known[method]
    found = str(config.get(key, formats[0])).lower()
    if found not in formats:
        raise ValueError(f"{file}: {key} is {found!r}: must be {formats[0]!r}")
