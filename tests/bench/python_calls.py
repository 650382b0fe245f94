"""What a call costs the host from Python: python_calls.py C_CALL, with kiln, NumPy and, if it can be, PyTorch and JAX.

The sum of two arrays of 32 floats on the CPU, where the work itself takes some nanoseconds: as a call of C, by kiln's
extension, by its way through ctypes, and by the arrays' own library; with outputs made and given. All take turns for so many
rounds; the best round of each counts, which other load of the machine disturbs least."""
import ctypes
import platform
import sys
import time

import numpy as np

import kiln
from kiln import _describe, _plan
from kiln._call import Call

ROUNDS, CALLS, SLOW_CALLS = 30, 3000, 100
add = next(operator for operator in _describe.operators() if operator.name == "add")


def nanoseconds(function, calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        function()
    return (time.perf_counter_ns() - start) / calls


def by_ctypes(a, b, **options):
    return Call(add, "f32", (a, b), options).run()


def cases(library, sum_of, a, b, y):
    yield f"{library}, its own", lambda: sum_of(a, b), CALLS
    yield f"{library}, kiln", lambda: kiln.ops.add_f32(a, b), CALLS
    yield f"{library}, kiln through ctypes", lambda: by_ctypes(a, b), SLOW_CALLS
    yield f"{library}, its own, output given", lambda: sum_of(a, b, out=y), CALLS
    yield f"{library}, kiln, output given", lambda: kiln.ops.add_f32(a, b, y=y), CALLS
    yield f"{library}, kiln through ctypes, output given", lambda: by_ctypes(a, b, y=y), SLOW_CALLS


def jax_cases(a, b):
    import jax
    import kiln.jax
    a, b = jax.numpy.asarray(a), jax.numpy.asarray(b)
    yield "JAX, its own", lambda: jax.numpy.add(a, b).block_until_ready(), SLOW_CALLS
    yield "JAX, kiln", lambda: kiln.jax.add_f32(a, b).block_until_ready(), SLOW_CALLS


def main():
    a, b, y = (np.ones((4, 8), np.float32) for _ in range(3))
    all_cases, versions = [*cases("NumPy", np.add, a, b, y)], f"NumPy {np.__version__}"
    try:
        import torch
        all_cases += cases("PyTorch", torch.add, *(torch.ones(4, 8) for _ in range(3)))
        versions += f", PyTorch {torch.__version__}"
    except ImportError:
        versions += ", without PyTorch"
    try:
        all_cases += jax_cases(a, b)
        versions += f", JAX {sys.modules['jax'].__version__}"
    except ImportError:
        versions += ", without JAX"
    native = ctypes.CDLL(sys.argv[1]).c_call_nanoseconds
    native.restype = ctypes.c_double
    best = {"C": float("inf")} | {name: float("inf") for name, _, _ in all_cases}
    for _ in range(ROUNDS):
        best["C"] = min(best["C"], native(100 * CALLS))
        for name, function, calls in all_cases:
            best[name] = min(best[name], nanoseconds(function, calls))
    print(f"Python {platform.python_version()}, {versions}, kiln {kiln.__version__} "
          f"{'with' if _plan._fast else 'without'} its extension; nanoseconds of one call, and that of its own library = 1\n")
    for name, time_of in best.items():
        own = best.get(name.split(",")[0] + ", its own" + (", output given" if "given" in name else ""))
        print(f"{name:45} {time_of:9.0f}" + (f" {time_of / own:7.2f}" if own else ""))


main()
