"""Operators by the names that users of other libraries know them by."""
from typing import Any

from kiln import ops


QUANTISED = ("int8_x_fp8", "fp8", "nvfp4")


def attention(q: Any, k: Any, v: Any, precision: str | None = None, **options: Any) -> Any:
    """kiln.ops.mha of a precision ("f16"); without one, that of the arrays. With "int8_x_fp8", "fp8" or "nvfp4" its products
    are of that precision: q, k and v are quantised on the way."""
    if precision in QUANTISED:
        return ops.mha(q, k, v, compute=precision, **options)
    there = [part for part in ("f32", "f16", "bf16") if f"mha_{part}" in ops.__all__]
    if precision is not None and precision not in there:
        raise ValueError(f"attention: precision is {precision!r}: must be one of {', '.join((*there, *QUANTISED))}")
    function = getattr(ops, f"mha_{precision}" if precision else "mha")
    return function(q, k, v, **options)


gemm = ops.gemm
fused_add_gelu = ops.add_gelu
element_wise_mul_add = ops.mul_add

_SCALES = {"tensor": lambda rows, cols: (1, 1), "row": lambda rows, cols: (rows, 1),
           "group": lambda rows, cols: (rows, -(-cols // 128)), "block": lambda rows, cols: (-(-rows // 128), -(-cols // 128))}


def quantize(x: Any, to: str = "fp8", scales: str = "row") -> tuple[Any, ...]:
    """The codes of x and their decode scales, from the greatest magnitudes of x: kiln.ops.amax, then a quantize_*.

    `to` is "fp8" (E4M3), "int8" or "nvfp4"; `scales` is what shares a scale, "tensor", "row", "group" (128 columns of a
    row) or "block" (128 x 128), of nvfp4 its global scale, "tensor" or "row". x is [..., cols]; codes are [..., cols], or
    of nvfp4 [..., cols / 2], with a scale for each 16 columns, and then the global ones. gemm_fp8 and the others take them.
    """
    kinds, sharers = ("fp8", "int8", "nvfp4"), ("tensor", "row") if to == "nvfp4" else tuple(_SCALES)
    if to not in kinds:
        raise ValueError(f"quantize: to is {to!r}: must be one of {', '.join(kinds)}")
    if scales not in sharers:
        raise ValueError(f"quantize: scales is {scales!r}: must be one of {', '.join(sharers)}")
    *leading, cols = x.shape
    matrix = x.reshape(-1, cols)
    rows = matrix.shape[0]
    scale_rows, scale_cols = _SCALES[scales](rows, cols)
    amax = ops.amax(matrix, scale_rows=scale_rows, scale_cols=scale_cols)
    if to == "nvfp4":
        codes, *rest = ops.quantize_nvfp4(matrix, amax=amax.reshape(-1), global_scale=True, scale_rows=rows,
                                          scale_cols=-(-cols // 16))
    else:
        codes, *rest = getattr(ops, f"quantize_{to}")(matrix, amax=amax, scales=True)
    return (codes.reshape(*leading, codes.shape[-1]), *rest)
