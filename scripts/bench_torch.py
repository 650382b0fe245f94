"""The operators of scripts/bench_gpu.py by PyTorch, on the same sizes, timed as `kiln bench` times: by the device's events,
over several calls where one is short, the median of many runs."""
import math
import statistics

import torch
import torch.nn.functional as F

WARM_UP, RUNS_LEAST, RUNS_MOST, CALLS_MOST = 3, 10, 500, 64
ENOUGH, ONE_RUN = 500.0, 0.25  # milliseconds: of all runs, and of one
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def versions():
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}


def measure(call):
    """Nanoseconds of a call."""

    def run(calls):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / calls

    for _ in range(WARM_UP):
        once = run(1)
    calls = CALLS_MOST if once * CALLS_MOST <= ONE_RUN else 1 + int(ONE_RUN / once)
    times = []
    while len(times) < RUNS_MOST and (len(times) < RUNS_LEAST or sum(times) * calls < ENOUGH):
        times.append(run(calls))
    return 1e6 * statistics.median(times)


# Each of these gives the ways in which PyTorch does what an operator does: {name: function without arguments}. s are the
# sizes by name, r makes tensors of random numbers of the precision, and device is where they are.


def add(s, r, _):
    a, b, y = r(s["count"]), r(s["count"]), r(s["count"])
    return {"torch.add": lambda: torch.add(a, b, out=y)}


def mul_add(s, r, _):
    a, b, c, y = (r(s["count"]) for _ in range(4))
    return {"addcmul": lambda: torch.addcmul(c, a, b, out=y), "a * b + c": lambda: a * b + c}


def silu_mul(s, r, _):
    gate, up = r(s["rows"], s["cols"]), r(s["rows"], s["cols"])
    return {"silu(gate) * up": lambda: F.silu(gate) * up}


def add_gelu(s, r, _):
    x, bias = r(s["rows"], s["cols"]), r(s["cols"])
    return {"gelu(x + bias)": lambda: F.gelu(x + bias)}


def softmax(s, r, _):
    x = r(s["rows"], s["cols"])
    return {"softmax": lambda: torch.softmax(x, -1)}


def rmsnorm(s, r, _):
    x, weight = r(s["rows"], s["cols"]), r(s["cols"])
    return {"rms_norm": lambda: F.rms_norm(x, (s["cols"],), weight, 1e-6)}


def add_rmsnorm(s, r, _):
    x, residual, weight = r(s["rows"], s["cols"]), r(s["rows"], s["cols"]), r(s["cols"])

    def call():
        total = x + residual
        return total, F.rms_norm(total, (s["cols"],), weight, 1e-6)

    return {"x + residual, rms_norm": call}


def rope(s, r, device):
    x = r(s["tokens"], s["heads"], s["pairs"], 2)
    angles = torch.outer(torch.randint(4096, (s["tokens"],), device=device).float(),
                         10000.0 ** (-torch.arange(s["pairs"], device=device) / s["pairs"]))
    cos, sin = angles.cos().to(x.dtype)[:, None, :], angles.sin().to(x.dtype)[:, None, :]

    def call():
        first, second = x[..., 0], x[..., 1]
        return torch.stack((first * cos - second * sin, first * sin + second * cos), -1)

    return {"stack of products with tables": call}


def embedding(s, r, device):
    table, ids = r(s["vocabulary"], s["cols"]), torch.randint(min(4096, s["vocabulary"]), (s["rows"],), device=device)
    return {"embedding": lambda: F.embedding(ids, table)}


def argmax(s, r, _):
    x = r(s["rows"], s["cols"])
    return {"argmax": lambda: torch.argmax(x, -1)}


def log_softmax(s, r, _):
    x = r(s["rows"], s["cols"])
    return {"log_softmax": lambda: F.log_softmax(x, -1)}


def top_k(s, r, _):
    x = r(s["rows"], s["cols"])
    return {"topk": lambda: torch.topk(x, s["k"])}


def gemm(s, r, _):
    a, b = r(s["batch"], s["m"], s["k"]), r(s["batch"], s["n"], s["k"])
    d = r(s["batch"], s["m"], s["n"])
    if s["batch"] == 1:
        a, b, d = a[0], b[0], d[0]

    def with_precision(of_f32):  # "high" is TF32
        def call():
            torch.set_float32_matmul_precision(of_f32)
            torch.matmul(a, b.mT, out=d)

        return call

    if a.dtype == torch.float32:
        return {"matmul, TF32 off": with_precision("highest"), "matmul, TF32 on": with_precision("high")}
    return {"matmul": with_precision("highest")}


def mha(s, r, _):
    batch, size = s["batch"], s["head_dim"]
    q = r(batch, s["tokens"] // batch, s["heads"], size).transpose(1, 2)
    k, v = (r(batch, s["kv_tokens"] // batch, s["kv_heads"], size).transpose(1, 2) for _ in range(2))
    causal = s["causal"] and s["tokens"] > batch  # a single query sees all keys
    options = {"is_causal": causal, "scale": 1 / math.sqrt(size)}
    if s["heads"] != s["kv_heads"]:
        options["enable_gqa"] = True
    return {"SDPA": lambda: F.scaled_dot_product_attention(q, k, v, **options)}


WAYS = {f.__name__: f for f in (add, mul_add, silu_mul, add_gelu, softmax, rmsnorm, add_rmsnorm, rope, embedding, argmax,
                                log_softmax, top_k, gemm, mha)}
# PyTorch has no call that does the same.
LACKING = ("amax", "causal_conv1d", "dequantize_fp8", "dequantize_int8", "dequantize_nvfp4", "dequantize_w4a16",
           "engram_gate", "engram_hash", "gemm_fp8",
           "gemm_int8", "gemm_nvfp4", "gemm_w4a16", "kv_compact", "kv_copy_blocks", "kv_store",
           "merge_attention_states", "mha_fp8_fwd",
           "mha_int8_x_fp8_fwd", "mha_nvfp4_fwd", "mha_paged", "mha_quantize",
           "mha_quantize_nvfp4", "quantize_embedding", "quantize_fp8", "quantize_int8", "quantize_nvfp4",
           "rmsnorm_fp8", "rmsnorm_int8", "rmsnorm_nvfp4", "rope3d", "rope_kv_store", "sample", "silu_mul_fp8", "silu_mul_int8",
           "silu_mul_nvfp4", "softmax_update", "tree_accept", "tree_verify_sampled", "vector_search")
FUSED = {"mul_add", "silu_mul", "add_gelu", "softmax", "rmsnorm", "add_rmsnorm", "rope",
         "log_softmax"}  # worth torch.compile


def ways_of(operator, precision, sizes, device):
    """Nothing for an operator that PyTorch has not."""

    def random(*shape):
        return torch.rand(shape, device=device, dtype=torch.float32).add_(0.125).to(DTYPES[precision])

    return WAYS[operator](sizes, random, device) if operator in WAYS else {}


def measure_ways(operator, precision, sizes, device, compiles):
    found = {}
    ways = ways_of(operator, precision, sizes, device)
    if compiles and operator in FUSED:
        name, call = list(ways.items())[-1]
        ways["compiled " + name] = torch.compile(call)
    for name, call in ways.items():
        try:
            found[name] = measure(call)
        except Exception as error:  # a version without it, no compiler, no memory: the others go on
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found


def compare(operator, precision, sizes, device, compiles):
    """{way: nanoseconds, or the text of an error}."""
    with torch.no_grad():
        found = measure_ways(operator, precision, sizes, device, compiles)
    torch.cuda.empty_cache()
    return found


def try_out(operator, precision, sizes, device):
    """The names of the ways, each of which was called."""
    with torch.no_grad():
        ways = ways_of(operator, precision, sizes, device)
        for call in ways.values():
            call()
    return list(ways)
