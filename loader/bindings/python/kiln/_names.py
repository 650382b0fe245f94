"""Operators by the names that users of other libraries know them by."""
from typing import Any

from kiln import ops


QUANTISED = ("int8_x_fp8", "fp8")


def attention(q: Any, k: Any, v: Any, precision: str | None = None, **options: Any) -> Any:
    """kiln.ops.mha of a precision ("f16"); without one, that of the arrays. With "int8_x_fp8" or "fp8" its products are of
    that precision: q, k and v are quantised on the way."""
    if precision in QUANTISED:
        return ops.mha(q, k, v, compute=precision, **options)
    there = [name[len("mha_"):] for name in ops.__all__ if name.count("_") == 1 and name.startswith("mha_")]
    there.remove("paged")
    if precision is not None and precision not in there:
        raise ValueError(f"attention: precision is {precision!r}: must be one of {', '.join((*there, *QUANTISED))}")
    function = getattr(ops, f"mha_{precision}" if precision else "mha")
    return function(q, k, v, **options)


gemm = ops.gemm
fused_add_gelu = ops.add_gelu
element_wise_mul_add = ops.mul_add
