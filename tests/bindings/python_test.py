"""The Python package: python_test.py CASE BACKEND runs a case on cpu or cuda; --list prints the cases."""
import ast
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest.mock
from importlib.util import find_spec

import numpy as np

from samples import samples

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def cpu_case(function):
    """A case of what the simulated device's arrays have not: a library that makes arrays, strides, PyTorch."""
    function.of_cpu = True
    return case(function)


class DeviceArray:
    """Memory of the device, as CuPy and others show it."""

    def __init__(self, place, array):
        from kiln import _library
        self.place, self.shape, self.dtype = place, array.shape, array.dtype
        self.lib, self.check = _library.lib, _library.check
        self.lib.kiln_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.memory = ctypes.c_void_p()
        self.check(self.lib.kiln_memory_alloc(place.handle, max(array.nbytes, 1), ctypes.byref(self.memory)))
        self._copy(self.memory.value, array.ctypes.data, array.nbytes, 0)

    def _copy(self, target, source, size, direction):
        stream = self.place.stream(0)
        self.check(self.lib.kiln_copy(ctypes.byref(stream), target, source, size, direction))
        self.check(self.lib.kiln_stream_sync(ctypes.byref(stream)))

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.memory.value, False), "version": 3}

    def numpy(self):
        array = np.empty(self.shape, self.dtype)
        self._copy(array.ctypes.data, self.memory.value, array.nbytes, 1)
        return array

    def __del__(self):
        self.lib.kiln_memory_free(self.place.handle, self.memory)


class Runner:
    """Calls an operator on the backend's arrays, whatever it is; what is given and what comes are NumPy's."""

    def __init__(self, backend):
        import kiln
        self.kiln, self.place = kiln, kiln.device(backend)
        assert self.place.backend == backend, self.place.selection_log

    def __call__(self, name, *arrays, outputs=None, **options):
        function = getattr(self.kiln.ops, name)
        if self.place.backend == "cpu":
            return function(*arrays, **options)
        arrays = [DeviceArray(self.place, a) for a in arrays]
        made = {n: DeviceArray(self.place, np.full(shape, 7, dtype)) for n, (shape, dtype) in outputs.items()}
        options = {n: DeviceArray(self.place, v) if isinstance(v, np.ndarray) else v for n, v in options.items()}
        function(*arrays, **options, **made)
        found = [array.numpy() for array in made.values()]
        return found[0] if len(found) == 1 else tuple(found)


random = np.random.default_rng()


@case
def softmax(run):
    """Rows of several leading dimensions; the precision is the array's."""
    for dtype, tolerance in ((np.float32, 1e-6), (np.float16, 1e-3)):
        x = random.standard_normal((3, 5, 40)).astype(dtype)
        y = run("softmax", x, outputs={"y": (x.shape, dtype)})
        e = np.exp(x.astype(float) - x.max(-1, keepdims=True))
        assert y.dtype == dtype and y.shape == x.shape
        np.testing.assert_allclose(y, e / e.sum(-1, keepdims=True), atol=tolerance)


@case
def gemm(run):
    """Matrices without a batch, an optional tensor, and an option by its name."""
    a, b = random.standard_normal((20, 64)).astype(np.float32), random.standard_normal((30, 64)).astype(np.float32)
    bias = random.standard_normal(30).astype(np.float32)
    d = run("gemm_f32", a, b, bias=bias, activation="silu", outputs={"d": ((20, 30), np.float32)})
    t = a.astype(float) @ b.T + bias
    assert d.shape == (20, 30)
    np.testing.assert_allclose(d, t / (1 + np.exp(-t)), atol=1e-4)


@case
def embedding(run):
    """Ids of 32 and of 64 bits, by the array alone."""
    table = random.standard_normal((9, 12)).astype(np.float32)
    for dtype in (np.int32, np.int64):
        ids = np.array([1, 8, 0, 3], dtype)
        y = run("embedding", table, ids, outputs={"y": ((4, 12), np.float32)})
        np.testing.assert_array_equal(y, table[ids])


@case
def attention(run):
    """Two outputs, of which one is wanted by name."""
    q = random.standard_normal((1, 4, 16)).astype(np.float32)
    k, v = (random.standard_normal((9, 2, 16)).astype(np.float32) for _ in range(2))
    lse = {} if run.place.backend != "cpu" else {"lse": True}
    out, total = run("mha_f32", q, k, v, outputs={"out": (q.shape, np.float32), "lse": ((4, 1), np.float32)}, **lse)
    for head in range(4):
        s = k[:, head // 2].astype(float) @ q[0, head] / 4
        p = np.exp(s - s.max())
        np.testing.assert_allclose(out[0, head], p / p.sum() @ v[:, head // 2], atol=1e-5)
        np.testing.assert_allclose(total[head, 0], np.log(np.exp(s).sum()), atol=1e-5)


@cpu_case
def masked_attention(run):
    """A mask of four dimensions, whose sizes are its own."""
    q = random.standard_normal((5, 4, 16)).astype(np.float32)
    k, v = (random.standard_normal((9, 2, 16)).astype(np.float32) for _ in range(2))
    mask = np.where(np.tri(5, 9, 4), 0, -np.inf).astype(np.float32)
    out = run("mha_f32", q, k, v, mask=mask[None, None], outputs={"out": (q.shape, np.float32)})
    causal = run("mha_f32", q, k, v, causal="yes", outputs={"out": (q.shape, np.float32)})
    np.testing.assert_allclose(out, causal, atol=1e-6)
    mask = np.full((1, 4, 5, 12), -np.inf, np.float32)
    mask[0, np.arange(4), :, np.arange(4)] = 1
    out = run("mha_f32", q, k, v, mask=mask, outputs={"out": (q.shape, np.float32)})
    np.testing.assert_allclose(out, np.broadcast_to(v[np.arange(4), np.arange(4) // 2], q.shape), atol=1e-6)


@cpu_case
def workspace(run):
    """Long rows of argmax need one, which the arrays' library makes."""
    x = random.standard_normal((2, 20000)).astype(np.float32)
    np.testing.assert_array_equal(run("argmax", x), x.argmax(-1))


@cpu_case
def rows_apart(run):
    """Rows that lie apart are taken where the operator has their stride, others are refused."""
    whole = random.standard_normal((6, 50)).astype(np.float32)
    np.testing.assert_array_equal(run("softmax", whole[:, :20]), run("softmax", whole[:, :20].copy()))
    refused(ValueError, "must be contiguous, except for the stride between rows", lambda: run("softmax", whole.T))


@cpu_case
def columns_apart(run):
    """A transposed array is quantised as its copy is where the operator has the columns' stride."""
    whole = random.standard_normal((50, 40)).astype(np.float32)
    for x in (whole.T, whole[:, ::2], whole[::3, :12].T, whole[:, :1].T):
        copy = np.ascontiguousarray(x)
        np.testing.assert_array_equal(run("amax", x, scale_rows=len(x), scale_cols=1),
                                      run("amax", copy, scale_rows=len(x), scale_cols=1))
        for name in ("quantize_fp8", "quantize_int8"):
            found, wanted = (run(name, given, scales=True, scale_rows=len(x), scale_cols=1) for given in (x, copy))
            for one, other in zip(found, wanted):
                np.testing.assert_array_equal(one, other)
        for to in ("fp8", "int8", "nvfp4"):
            for one, other in zip(run.kiln.quantize(x, to), run.kiln.quantize(copy, to)):
                np.testing.assert_array_equal(one, other)
    refused(ValueError, "must be contiguous", lambda: run("quantize_fp8", whole[::-1], scale_rows=50, scale_cols=1))
    overlapping = np.lib.stride_tricks.as_strided(whole, (9, 9), (8, 8))
    refused(run.kiln.InvalidArgumentError, "x_col_stride",
            lambda: run("quantize_fp8", overlapping, scale_rows=9, scale_cols=1))


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


@case
def benchmark(run):
    """Every call is made and timed, on the stream of its result or of an array that is given."""
    x = np.ones((2, 40), np.float32)
    y = np.zeros_like(x)
    if run.place.backend != "cpu":
        x, y = DeviceArray(run.place, x), DeviceArray(run.place, y)
    calls = []

    def softmax():
        calls.append(1)
        return run.kiln.ops.softmax(x, y=y)

    for options, made in (({"iters": 20}, 30), ({"warmup": 0, "iters": 3}, 4),
                          ({"warmup": 2, "iters": 1, "like": x}, 3)):
        calls.clear()
        found = run.kiln.benchmark(softmax, **options)
        assert len(calls) == made and len(found.times) == options["iters"]
        assert 0 <= min(found.times) <= found.low <= found.median <= found.high <= max(found.times), found
        assert f"of {len(found.times)} calls" in str(found)
    refused(TypeError, "fn returns nothing", lambda: run.kiln.benchmark(lambda: None))
    refused(ValueError, "iters is 0", lambda: run.kiln.benchmark(softmax, iters=0))


@cpu_case
def gated_mlp(run):
    """Weights apart and together, rows of several leading dimensions, and weights that do not fit."""
    gate, up = (random.standard_normal((24, 16)).astype(np.float32) for _ in range(2))
    down, x = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 24), (2, 3, 16)))
    g = x.astype(float) @ gate.T
    wanted = g / (1 + np.exp(-g)) * (x @ up.T) @ down.T
    mlp = run.kiln.GatedMLP
    np.testing.assert_allclose(mlp(gate, down, up)(x), wanted, atol=1e-3)
    np.testing.assert_allclose(mlp(np.concatenate((gate, up)), down)(x), wanted, atol=1e-3)
    assert np.abs(mlp(gate, down, up, activation="gelu_tanh")(x) - wanted).max() > 0.1
    refused(ValueError, "up is [5, 24]: must be [24, 16]", lambda: mlp(gate, down, down))
    refused(ValueError, "without up its rows must be those of both", lambda: mlp(down, gate))
    refused(ValueError, "must have 12 columns", lambda: mlp(gate, down))


@case
def wrong_arguments(run):
    """What is wrong is named, before anything is called or by kiln itself."""
    ops, x = run.kiln.ops, np.zeros((2, 4), np.float32)
    refused(TypeError, "softmax: x is missing", lambda: ops.softmax())
    refused(TypeError, "softmax has no argument 'z'", lambda: ops.softmax(x, z=1))
    refused(TypeError, "rmsnorm: eps is 'small': must be a number", lambda: ops.rmsnorm(x, eps="small"))
    refused(TypeError, "sample: seed is 0.5: must be an integer", lambda: ops.sample(x, seed=0.5))
    refused(TypeError, "softmax takes 1 positional argument, not 2", lambda: ops.softmax(x, x))
    refused(TypeError, "softmax: x is a list", lambda: ops.softmax([1.0]))
    refused(TypeError, "softmax: x: dtype <f8", lambda: ops.softmax(x.astype(np.float64)))
    refused(TypeError, "softmax_f16: x is f32: must be f16", lambda: ops.softmax_f16(x))
    refused(ValueError, "add: b is [2, 3], so count is 6, but it is 8", lambda: ops.add(x, np.zeros((2, 3), np.float32)))
    refused(ValueError, "b is [4, 2]: its leading dimensions must be [2, 4]",
            lambda: ops.add(x, np.zeros((4, 2), np.float32)))
    frozen = np.zeros_like(x)
    frozen.flags.writeable = False
    refused(ValueError, "softmax: y is read-only", lambda: ops.softmax(x, y=frozen))
    pairs = np.zeros(8, [("a", "<f4"), ("b", "<f2")])
    refused(ValueError, "must be multiples of an element's 4", lambda: ops.softmax(pairs["a"]))
    refused(ValueError, "must be one of none, gelu_erf", lambda: ops.gemm(x, x, activation="relu"))
    refused(TypeError, "top_k: k is missing: no array that is given has it", lambda: ops.top_k(x))
    refused(TypeError, "add takes 2 positional arguments, not 3", lambda: ops.add(x, x, x))
    refused(ValueError, "top_k: k is -1: must be from 0 to 2^63 - 1", lambda: ops.top_k(x, k=-1))
    refused(ValueError, "top_k: k is 9223372036854775808: must be from 0", lambda: ops.top_k(x, k=1 << 63))
    refused(TypeError, "top_k: k is 1.5: must be an integer", lambda: ops.top_k(x, k=1.5))
    refused(TypeError, "softmax_bf16: x is f32: must be bf16", lambda: ops.softmax_bf16(x))
    refused(ValueError, "quantize_fp8: scale_rows is 0: must be at least 1, as the shape of scales follows from it",
            lambda: ops.quantize_fp8(x, scales=True, scale_rows=0, scale_cols=1))
    codes, scales = np.zeros((2, 4), np.uint8), np.ones((1, 1), np.float32)
    refused(TypeError, "dequantize_fp8: precision is missing", lambda: ops.dequantize_fp8(codes, scales))
    refused(ValueError, "must be one of f32, f16, bf16", lambda: ops.dequantize_fp8(codes, scales, precision="f8"))
    if not find_spec("ml_dtypes"):
        refused(ImportError, "pip install ml_dtypes", lambda: ops.dequantize_fp8_bf16(codes, scales))
    refused(ValueError, "precision is f16: must be f32, or be left out",
            lambda: ops.dequantize_fp8_f32(codes, scales, precision="f16"))
    refused(run.kiln.InvalidArgumentError, "rmsnorm_f32: eps is -1", lambda: ops.rmsnorm(x, eps=-1.0))
    refused(run.kiln.NotFoundError, "", lambda: run.kiln.device(run.place.backend, 999))
    refused(ValueError, "backend is 'tpu'", lambda: run.kiln.device("tpu"))
    if run.place.backend == "cuda":
        assert run.kiln.device(id="0000:01:00.0") is run.place, "another device than the one at its PCI address"
    refused(run.kiln.NotFoundError if run.place.backend == "cuda" else run.kiln.NoDriverError, "no device",
            lambda: run.kiln.device(id="ff:1f.0"))


@case
def names(run):
    """The names that others use are those operators; a precision that there is not is refused with those there are."""
    kiln, q = run.kiln, np.ones((1, 4, 2, 64), np.float16)
    if run.place.backend == "cpu":
        assert np.array_equal(kiln.attention(q, q, q, precision="f16"), kiln.ops.mha(q, q, q))
        x = np.linspace(-1, 1, q.size, dtype=np.float32).astype(np.float16).reshape(q.shape)
        for quantised, most in (("int8_x_fp8", 0.05), ("fp8", 0.05), ("nvfp4", 0.2)):
            got = kiln.attention(x, x, x, precision=quantised)
            assert np.array_equal(got, kiln.ops.mha(x, x, x, compute=quantised))
            assert 0 < np.abs(got.astype(np.float32) - kiln.ops.mha(x, x, x)).max() < most, quantised
        assert np.array_equal(kiln.element_wise_mul_add(q, q, q), q + q)
    refused(ValueError, "must be one of f32, f16, bf16, int8_x_fp8, fp8, nvfp4", lambda: kiln.attention(q, q, q, precision="fp4"))


@cpu_case
def quantize(run):
    """What is quantised is nearly the same again, by whatever shares a scale; codes go into products."""
    kiln, ops = run.kiln, run.kiln.ops
    x = random.standard_normal((2, 65, 160)).astype(np.float32)
    rows = x.reshape(-1, 160)
    shapes = {"tensor": (1, 1), "row": (130, 1), "group": (130, 2), "block": (2, 2)}
    for to, error in (("fp8", 2.0**-4), ("int8", 1 / 127)):
        for sharer, shape in shapes.items():
            codes, scales = kiln.quantize(x, to, sharer)
            assert codes.shape == x.shape and scales.shape == shape
            again = getattr(ops, f"dequantize_{to}")(codes.reshape(-1, 160), scales, precision="f32")
            np.testing.assert_allclose(again, rows, rtol=error, atol=np.abs(rows).max() * error / 2)
    for sharer, count in (("tensor", 1), ("row", 130)):
        codes, scales, whole = kiln.quantize(x, "nvfp4", sharer)
        assert codes.shape == (2, 65, 80) and scales.shape == (130, 10) and whole.shape == (count,)
        again = ops.dequantize_nvfp4(codes.reshape(-1, 80), scales, whole, cols=160, precision="f32")
        assert np.abs(again - rows).max() < np.abs(rows).max() / 4
    (a, a_scales), (b, b_scales) = kiln.quantize(rows), kiln.quantize(rows[:7], scales="tensor")
    d = ops.gemm_fp8(a, b, a_scales, b_scales, precision="f32")
    np.testing.assert_allclose(d, rows @ rows[:7].T, rtol=0.05, atol=5)
    refused(ValueError, "to is 'fp4': must be one of fp8, int8, nvfp4", lambda: kiln.quantize(x, "fp4"))
    refused(ValueError, "scales is 'block': must be one of tensor, row", lambda: kiln.quantize(x, "nvfp4", "block"))


@cpu_case
def trace(run):
    """Calls meanwhile are in the file, in either format, also where they fail."""
    x = np.ones((2, 4), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "calls.json")
        with run.kiln.trace(path, run.place):
            run.kiln.ops.softmax(x)
        events = json.loads(path.read_text())["traceEvents"]
        assert any("softmax" in event["name"] for event in events), events

        def fails():
            with run.kiln.trace(path.with_suffix(".txt"), run.place):
                run.kiln.ops.add(x, x)
                raise KeyError("mine")

        refused(KeyError, "mine", fails)
        assert "add" in path.with_suffix(".txt").read_text()
        refused(ValueError, "must end in .json or .txt", lambda: run.kiln.trace("calls.bin").__enter__())
        run.kiln.ops.add(x, x)
        with run.kiln.trace(path, run.place):
            pass
        assert not any("add" in event["name"] for event in json.loads(path.read_text())["traceEvents"])


@case
def programmatic(run):
    """Calls meanwhile, and those of this thread alone, are on streams with the option, or are refused where it is not."""
    kiln, x = run.kiln, np.ones((2, 4), np.float32)

    def softmax():
        np.testing.assert_array_equal(run("softmax", x, outputs={"y": (x.shape, x.dtype)}), x / 4)
        return run.place.stream(0).state

    def refuses():
        refused(kiln.UnsupportedError, "cpu has no programmatic dependent launches", softmax)

    plain, states = softmax(), []
    with kiln.programmatic():
        other = threading.Thread(target=lambda: states.append(softmax()))
        other.start()
        other.join()
        if run.place.backend == "cpu":
            refuses()
        else:
            assert softmax() != plain
        with kiln.programmatic(False):
            assert softmax() == plain
    assert len(states) == 1 and (run.place.backend == "cpu" or states == [plain])
    assert softmax() == plain


@case
def every_operator_is_there(run):
    from kiln import _describe
    for operator in _describe.operators():
        for name in (operator.name, *(f"{operator.name}_{part}" for part in operator.calls)):
            assert operator.summary in getattr(run.kiln.ops, name).__doc__, name


@cpu_case
def every_operator_has_a_sample(run):
    """Which the tests of all bindings call: it writes the same outputs again, whatever was in them."""
    from kiln import _describe
    given, operators = samples(), _describe.operators()
    missing = {operator.name for operator in operators} ^ set(given)
    assert not missing, f"tests/bindings/samples.py must have: {', '.join(sorted(missing))}"
    for operator in operators:
        arrays, options = given[operator.name]
        found = []
        for filling in (np.nan, 77.0):
            mine = [array.copy() for array in arrays]
            made = getattr(run.kiln.ops, operator.name)(*mine, **options)
            outputs = made if isinstance(made, tuple) else () if made is None else (made,)
            named = [field.name for field in operator.tensors if field.role == _describe.OUTPUT and not field.optional]
            assert len(named) == len(outputs), operator.name
            with np.errstate(invalid="ignore"):
                into = {name: np.full_like(output, filling) for name, output in zip(named, outputs)}
            getattr(run.kiln.ops, operator.name)(*(array.copy() for array in arrays), **options, **into)
            for output, again in zip(outputs, into.values()):
                np.testing.assert_array_equal(output, again, operator.name)
            found.append([*mine, *outputs])
        for first, second in zip(*found):
            np.testing.assert_array_equal(first, second, operator.name)


@cpu_case
def fast_calls(run):
    """A call like one before runs without Python's part, and gives the same; one that differs in anything does not."""
    from kiln import _call
    ops = run.kiln.ops

    def again(name, *arrays, **options):
        with unittest.mock.patch.object(_call.Call, "run", side_effect=AssertionError(f"{name} went through Python")):
            return getattr(ops, name)(*arrays, **options)

    for name, (arrays, options) in samples().items():
        mine, theirs = ([array.copy() for array in arrays] for _ in range(2))
        wanted = getattr(ops, name)(*theirs, **options)
        found = again(name, *mine, **options)
        assert type(found) is type(wanted), name
        for one, other in zip(mine + [found], theirs + [wanted]):
            for part, right in zip(*((x if isinstance(x, tuple) else (x,)) for x in (one, other))):
                if right is not None:
                    np.testing.assert_array_equal(part, right, name)
    x = random.standard_normal((4, 6)).astype(np.float32)
    y, frozen = np.empty_like(x), np.empty_like(x)
    frozen.flags.writeable = False
    ops.add(x, x, y=y)
    assert again("add", x, x, y=y) is y
    np.testing.assert_array_equal(y, x + x)
    values, columns = ops.top_k(x, k=2, values=True)
    np.testing.assert_array_equal(again("top_k", x, k=2, values=True)[0], values)
    np.testing.assert_array_equal(ops.top_k(x, k=2), columns)
    refused(ValueError, "y is read-only", lambda: ops.add(x, x, y=frozen))
    refused(ValueError, "must be contiguous", lambda: ops.add(x, x.reshape(6, 4).T))
    for other in (x[:, :3].copy(), x[:2], x.astype(np.float16), np.asfortranarray(x)[:, :1].copy()):
        np.testing.assert_array_equal(ops.add(other, other), other + other)
        np.testing.assert_array_equal(again("add", other, other), other + other)
    refused(run.kiln.InvalidArgumentError, "eps is -1", lambda: ops.rmsnorm(x, eps=-1.0))
    long = random.standard_normal((2, 20000)).astype(np.float32)
    np.testing.assert_array_equal(ops.argmax(long), again("argmax", long))
    for rows in range(1, 600):  # more than are remembered
        np.testing.assert_array_equal(ops.argmax(long[:, :rows].copy()), long[:, :rows].argmax(-1))


@cpu_case
def fast_threads(run):
    """Threads that call one function with arrays of different shapes, while plans take each other's places."""
    def work(columns):
        x = random.standard_normal((3, columns)).astype(np.float32)
        for size in list(range(1, columns)) * 3:
            np.testing.assert_array_equal(run.kiln.ops.add(x[:, :size].copy(), x[:, :size].copy()), 2 * x[:, :size])
        done.append(columns)

    done = []
    workers = [threading.Thread(target=work, args=(columns,)) for columns in (300, 301, 302, 303)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(done) == 4


@cpu_case
def without_fast_calls(run):
    """Where the extension is missing, as on another Python than it is for, calls go through ctypes."""
    program = ("import runpy, sys; sys.modules['kiln._fast'] = None; import kiln; assert not kiln._plan._fast; "
               "sys.path.insert(0, sys.argv.pop(1)); sys.argv[0] = 'python_test.py'; "
               "runpy.run_path(sys.path[0] + '/python_test.py', run_name='__main__')")
    for name in ("every_operator_has_a_sample", "wrong_arguments", "every_operator_is_there"):
        subprocess.run([sys.executable, "-c", program, str(pathlib.Path(__file__).parent), name, "cpu"], check=True)


@cpu_case
def stubs(run):
    """The type stubs have every function, with the arguments that it takes."""
    folder = pathlib.Path(run.kiln.__file__).parent
    assert (folder / "py.typed").exists()
    functions, aliases = {}, {}
    for node in ast.parse((folder / "ops.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = {argument.arg for argument in node.args.args + node.args.kwonlyargs}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            aliases[node.targets[0].id] = functions[node.value.id]
    assert {*functions, *aliases} == set(run.kiln.ops.__all__)
    for name, arguments in (functions | aliases).items():
        refused(TypeError, f"it has {', '.join(sorted(arguments))}", lambda: getattr(run.kiln.ops, name)(none_such=1))
    errors = {node.name for node in ast.parse((folder / "__init__.pyi").read_text()).body
              if isinstance(node, ast.ClassDef)}
    assert errors == {name for name in dir(run.kiln) if name.endswith("Error")} - {"Error"}


TYPED = """import kiln
import numpy as np
x = np.zeros((2, 4), np.float32)
d = kiln.ops.gemm(x, x, activation="silu")
reveal_type(kiln.ops.argmax(x))
reveal_type(kiln.ops.add_rmsnorm_f32(1, 2))
out, lse = kiln.ops.mha(d, d, d, causal="yes", lse=True)
kiln.ops.gemm(x, x, activation="relu")
kiln.ops.softmax()
kiln.ops.softmax(x, z=1)
try:
    kiln.device("cpu", "0")
except kiln.OutOfMemoryError as error:
    reveal_type(error.status)
"""


@cpu_case
def mypy(run):
    """The type checker takes what is right and names what is wrong, from the package's stubs."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program.py")
        program.write_text(TYPED)
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent"]
        told = subprocess.run([*command, "--cache-dir", folder, program], capture_output=True, text=True,
                              env=dict(os.environ, MYPYPATH=os.environ["PYTHONPATH"])).stdout
    wanted = ('program.py:5: note: Revealed type is "Any"', ':6: note: Revealed type is "tuple[int, int]"',
              ':8: error: Argument "activation" to "gemm"', ":9: error: Missing positional argument",
              ':10: error: Unexpected keyword argument "z"', ':12: error: Argument 2 to "device"',
              ':14: note: Revealed type is "int"')
    lines = [line for line in told.splitlines() if "defined " not in line]
    assert len(lines) == len(wanted) and all(text in line for text, line in zip(wanted, lines)), told


@cpu_case
def torch(run):
    """Tensors of PyTorch, where it is installed: the result is a tensor, and gradients are refused."""
    import torch
    x = torch.randn(3, 40)
    torch.testing.assert_close(run.kiln.ops.softmax(x), torch.softmax(x, -1))
    refused(RuntimeError, "inference", lambda: run.kiln.ops.softmax(x.requires_grad_()))


if sys.argv[1] == "--list":
    print(*(f"{name}:{'cpu' if hasattr(function, 'of_cpu') else 'any'}" for name, function in CASES.items()))
else:
    CASES[sys.argv[1]](Runner(sys.argv[2]))
