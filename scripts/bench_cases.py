"""The calls that scripts/bench_graphs.py times: each with tensors of its own, PyTorch's call on the same and, where it can be
had, the result in f32."""
import math

import torch
import torch.nn.functional as F

import kiln
import kiln.convert

BF16, F16, F32, F8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn
NAMES = {BF16: "bf16", F16: "f16", F32: "f32"}
dry, device = False, "cuda"


def small(n, least=64):
    return n if not dry else max(least, min(n, least))


def rand(*shape, dtype=BF16, scale=1.0):
    return torch.randn(*shape, device=device, dtype=F32).mul_(scale).to(dtype)


class Case:
    """kiln and the peers: functions of a set of tensors; sets: makes one; bytes moved and operations of one call."""

    def __init__(self, name, sets, kiln, peers=None, moved=0, operations=0, check=None, warm=False, bound=5e-3, sustained=0):
        self.name, self.sets, self.kiln, self.peers = name, sets, kiln, peers or {}
        self.moved, self.operations, self.check, self.warm, self.bound = moved, operations, check, warm, bound
        self.sustained = sustained


def relative(out, ref):
    out, ref = out.float(), ref.float()
    error = ((out - ref).norm() / ref.norm().clamp_min(1e-30)).item()
    return error if error == error else float("inf")


def gemm_case(dtype, m, n, k, bias=False, activation=None, steady=0, tile=None, f32="f32", peers=True, warm=False):
    m, n, k = small(m, 8), small(n), small(k)

    def sets():
        return (rand(m, k, dtype=dtype), rand(n, k, dtype=dtype), torch.empty(m, n, device=device, dtype=dtype),
                rand(n, dtype=dtype) if bias else None)

    options = {}
    if activation:
        options["activation"] = activation
    if tile:
        options["tile"] = tile
    if f32 != "f32":
        options["compute"] = f32

    def call(a, b, d, v):
        extra = dict(options)
        if v is not None:
            extra["bias"] = v
        kiln.ops.gemm(a, b, d=d, **extra)

    activate = {None: lambda x: x, "silu": F.silu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}[activation]

    def reference(a, b, d, v):
        out = a.float() @ b.float().t()
        return activate(out + v.float() if v is not None else out)

    def peer(a, b, d, v):
        if v is None and not activation:
            torch.mm(a, b.t(), out=d)
        else:
            activate(F.linear(a, b, v))

    def check(a, b, d, v):
        return relative(d, reference(a, b, d, v))

    name = f"gemm_{'tf32' if f32 == 'tf32' else NAMES[dtype]} {m}x{n}x{k}" + "+bias" * bias + (f"+{activation}" if activation else "")
    name += f" {tile}" if tile else ""
    return Case(name, sets, call, {"torch": peer} if peers else {}, operations=2 * m * n * k,
                moved=(m * k + n * k + m * n) * dtype.itemsize, check=check, sustained=steady, warm=warm,
                bound=2e-3 if f32 == "tf32" else 1e-5 if dtype == F32 else 4e-3)


def backend(which):
    from torch.nn.attention import SDPBackend
    return {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[which]


def sdpa(which, causal, gqa):
    from torch.nn.attention import sdpa_kernel

    def call(q, k, v, *_):
        with sdpa_kernel(backend(which)):
            F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal,
                                           enable_gqa=gqa)
    return call


def sampled_reference(q, k, v, causal):
    """Attention in f32 of some queries of the first and last sequence and head: rows, and where they stand."""
    batch, length, heads, dim = q.shape
    keys, group = k.shape[1], heads // k.shape[2]
    rows = torch.unique(torch.linspace(0, length - 1, min(length, 64), device=device).long())
    for b, h in {(0, 0), (batch - 1, heads - 1)}:
        scores = q[b, rows, h].float() @ k[b, :, h // group].float().t() / math.sqrt(dim)
        if causal:
            scores.masked_fill_(torch.arange(keys, device=device)[None] > rows[:, None] + keys - length, -math.inf)
        yield b, h, rows, scores.softmax(-1) @ v[b, :, h // group].float()


def attention_error(out, q, k, v, causal):
    if not torch.isfinite(out.float()).all():
        return math.inf
    return max(relative(out[b, rows, h], ref) for b, h, rows, ref in sampled_reference(q, k, v, causal))


def attention_operations(batch, heads, length, keys, dim, causal):
    pairs = length * keys - (length * (length - 1) / 2 if causal else 0)
    return 4 * batch * heads * dim * pairs


def mha_case(dtype, batch, heads, kv_heads, length, dim, causal, keys=None, peers=("flash", "cudnn")):
    batch, length, keys = small(batch, 2), small(length), small(keys or length)

    def sets():
        q = rand(batch, length, heads, dim, dtype=dtype)
        k, v = (rand(batch, keys, kv_heads, dim, dtype=dtype) for _ in range(2))
        return q, k, v, torch.full_like(q, math.nan)

    def call(q, k, v, out):
        kiln.ops.mha(q, k, v, out=out, causal="yes" if causal else "no")

    name = f"mha_{NAMES[dtype]} B{batch} H{heads}/{kv_heads} {length}" + (f"x{keys}" if keys != length else "") + f" D{dim}"
    return Case(name + (" causal" if causal else ""), sets, call, {p: sdpa(p, causal, heads != kv_heads) for p in peers},
                operations=attention_operations(batch, heads, length, keys, dim, causal),
                moved=2 * dtype.itemsize * dim * batch * (length * heads + keys * kv_heads),
                check=lambda q, k, v, out: attention_error(out, q, k, v, causal), bound=6e-3)


def decode_case(batch, keys, heads=32, kv_heads=8, dim=128, block=None, dtype=BF16, fp8=False):
    batch, keys = small(batch, 2), small(keys, 128)
    if not block:
        case = mha_case(dtype, batch, heads, kv_heads, 1, dim, False, keys)
        case.name = f"decode_{NAMES[dtype]} B{batch} {keys} H{heads}/{kv_heads} contiguous"
        return case
    per = keys // block
    lengths = torch.full((batch,), keys, device=device, dtype=torch.int32)

    def sets():
        table = torch.randperm(batch * per, device=device).to(torch.int32).view(batch, per)
        caches = [rand(batch * per, block, kv_heads, dim, dtype=dtype) for _ in range(2)]
        if fp8:
            caches = [c.to(F8).view(torch.uint8) for c in caches]
        q = rand(batch, 1, heads, dim, dtype=dtype)
        return q.view(batch, heads, dim), caches[0], caches[1], table, torch.full((batch, heads, dim), math.nan, device=device,
                                                                                  dtype=dtype)

    def call(q, k, v, table, out):
        kiln.ops.mha_paged(q, k, v, table, lengths, out=out)

    def check(q, k, v, table, out):
        if fp8:
            k, v = (c.view(F8).float() for c in (k, v))
        full = [c[table.long()].reshape(batch, keys, kv_heads, dim) for c in (k, v)]
        return attention_error(out.view(batch, 1, heads, dim), q.view(batch, 1, heads, dim), *full, False)

    size = 1 if fp8 else dtype.itemsize
    return Case(f"decode_paged{block}_{NAMES[dtype]}{'_fp8' if fp8 else ''} B{batch} {keys} H{heads}/{kv_heads}", sets, call, {},
                moved=2 * size * dim * kv_heads * keys * batch, operations=4 * batch * heads * dim * keys, check=check, bound=6e-3)


def row_cases(dtype, rows, cols):
    rows, cols = small(rows, 8), small(cols, 256)
    e, all_of = dtype.itemsize, rows * cols
    shape = f"_{NAMES[dtype]} {rows}x{cols}"

    def x_and_y():
        x = rand(rows, cols, dtype=dtype)
        return x, torch.empty_like(x)

    def case(name, sets, call, reference=None, peer=None, moved=2 * e * all_of, index=-1, bound=5e-3):
        return Case(name + shape, sets, call, {"torch": peer} if peer else {}, moved=moved, bound=bound,
                    check=(lambda *s: relative(s[index], reference(*s))) if reference else None)

    weight = rand(cols, dtype=dtype)
    yield case("softmax", x_and_y, lambda x, y: kiln.ops.softmax(x, y=y), lambda x, y: x.float().softmax(-1),
               lambda x, y: torch.softmax(x, -1))
    yield case("log_softmax", x_and_y, lambda x, y: kiln.ops.log_softmax(x, y=y), lambda x, y: x.float().log_softmax(-1),
               lambda x, y: F.log_softmax(x, -1))
    yield case("rmsnorm", x_and_y, lambda x, y: kiln.ops.rmsnorm(x, weight=weight, y=y),
               lambda x, y: F.rms_norm(x.float(), (cols,), weight.float(), 1e-6),
               lambda x, y: F.rms_norm(x, (cols,), weight, 1e-6))
    yield case("add_gelu", x_and_y, lambda x, y: kiln.ops.add_gelu(x, bias=weight, y=y),
               lambda x, y: F.gelu(x.float() + weight.float()), lambda x, y: F.gelu(x + weight))

    def three():
        return rand(rows, cols, dtype=dtype), rand(rows, cols, dtype=dtype), torch.empty(rows, cols, device=device, dtype=dtype)

    yield case("silu_mul", three, lambda g, u, y: kiln.ops.silu_mul(g, up=u, y=y), lambda g, u, y: F.silu(g.float()) * u.float(),
               lambda g, u, y: F.silu(g) * u, 3 * e * all_of)
    yield case("add", three, lambda a, b, y: kiln.ops.add(a, b, y=y), lambda a, b, y: a.float() + b.float(),
               lambda a, b, y: torch.add(a, b, out=y), 3 * e * all_of)

    def four():
        return (*three(), torch.empty(rows, cols, device=device, dtype=dtype))

    yield case("add_rmsnorm", four, lambda x, r, s, y: kiln.ops.add_rmsnorm(x, r, weight=weight, sum=s, y=y),
               lambda x, r, s, y: F.rms_norm(x.float() + r.float(), (cols,), weight.float(), 1e-6),
               lambda x, r, s, y: F.rms_norm(torch.add(x, r, out=s), (cols,), weight, 1e-6), 4 * e * all_of, bound=1e-2)
    if cols % 128 == 0:
        heads = cols // 128
        table = torch.arange(4096, device=device).float()[:, None] * 10000.0**(-torch.arange(64, device=device).float() / 64)
        positions = torch.arange(rows, device=device).remainder(4096).to(torch.int32)
        cosines, sines = table.cos().to(dtype), table.sin().to(dtype)

        def rotated(x, y):
            f, s = x.view(rows, heads, 2, 64).float().unbind(2)
            c, n = cosines.float()[positions.long()][:, None], sines.float()[positions.long()][:, None]
            return torch.stack((f * c - s * n, f * n + s * c), 2).view(rows, cols)

        yield case("rope", x_and_y, lambda x, y: kiln.ops.rope(x.view(rows, heads, 128), positions=positions, cosines=cosines,
                                                              sines=sines, layout="half", y=y.view(rows, heads, 128)), rotated)
    ids = torch.randint(0, small(8192, 16), (rows,), device=device).to(torch.int32)

    def looked_up():
        return rand(small(8192, 16), cols, dtype=dtype), torch.empty(rows, cols, device=device, dtype=dtype)

    yield case("embedding", looked_up, lambda t, y: kiln.ops.embedding(t, ids, y=y), lambda t, y: t[ids.long()],
               lambda t, y: F.embedding(ids, t), moved=2 * e * all_of)

    def indexed():
        return rand(rows, cols, dtype=dtype), torch.empty(rows, device=device, dtype=torch.int32)

    yield case("argmax", indexed, lambda x, y: kiln.ops.argmax(x, y=y), None, lambda x, y: torch.argmax(x, -1), e * all_of)
    yield case("sample", indexed, lambda x, y: kiln.ops.sample(x, y=y, temperature=1.0, top_k=50, top_p=0.9, seed=7), None, None,
               e * all_of)
    slots = torch.randperm(rows, device=device).to(torch.int32)

    def stored():
        return [rand(rows, cols, dtype=dtype) for _ in range(4)]

    yield case("kv_store", stored, lambda kc, vc, k, v: kiln.ops.kv_store(kc, vc, k, v, slots), lambda kc, vc, k, v: k[torch.argsort(slots.long())],
               None, 4 * e * all_of, index=0)
    if cols % 128 == 0:

        def turned_and_stored():
            return [rand(rows, cols // 128, 128, dtype=dtype) for _ in range(6)]

        yield case("rope_kv_store", turned_and_stored,
                   lambda out, kc, vc, q, k, v: kiln.ops.rope_kv_store(kc, vc, q, k, v, slots, positions=positions, cosines=cosines,
                                                                       sines=sines, layout="half", query_out=out),
                   lambda out, kc, vc, q, k, v: rotated(q, None).view(q.shape), None, 6 * e * all_of, index=0)


def quantise_cases(dtype, rows, cols):
    rows, cols = small(rows, 128), small(cols, 256)
    e, all_of = dtype.itemsize, rows * cols
    shape = f"_{NAMES[dtype]} {rows}x{cols}"
    weight = rand(cols, dtype=dtype)

    def u8(*s):
        return torch.empty(*s, device=device, dtype=torch.uint8)

    for kind, code in (("fp8", torch.uint8), ("int8", torch.int8)):
        for groups in (1, cols // 128):
            def sets(code=code, groups=groups):
                return (rand(rows, cols, dtype=dtype), torch.empty(rows, cols, device=device, dtype=code),
                        torch.empty(rows, groups, device=device), rand(rows, cols, dtype=dtype))

            moved = (e + 1) * all_of + 4 * rows * groups
            text = "" if groups == 1 else " 1x128"

            def back(x, c, s, r, kind=kind, groups=groups):
                values = c.view(F8).float() if kind == "fp8" else c.float()
                return (values.view(rows, groups, -1) * s[:, :, None]).view(rows, cols)

            q, n, m = (getattr(kiln.ops, f) for f in (f"quantize_{kind}", f"rmsnorm_{kind}", f"silu_mul_{kind}"))
            yield Case(f"quantize_{kind}{shape}{text}", sets, lambda x, c, s, r, q=q, g=groups: q(x, codes=c, scales=s), moved=moved,
                       check=lambda *t, back=back: relative(back(*t), t[0]), bound=0.03)
            yield Case(f"rmsnorm_{kind}{shape}{text}", sets,
                       lambda x, c, s, r, n=n, g=groups: n(x, weight=weight, codes=c, scales=s), moved=moved,
                       check=lambda *t, back=back: relative(back(*t), F.rms_norm(t[0].float(), (cols,), weight.float(), 1e-6)),
                       bound=0.03)
            yield Case(f"silu_mul_{kind}{shape}{text}", sets, lambda x, c, s, r, m=m, g=groups: m(x, up=r, codes=c, scales=s),
                       moved=moved + e * all_of, check=lambda *t, back=back: relative(back(*t), F.silu(t[0].float()) * t[3].float()),
                       bound=0.03)

    def fours():
        return (rand(rows, cols, dtype=dtype), u8(rows, cols // 2), u8(rows, cols // 16), torch.empty(rows, device=device),
                rand(rows, cols, dtype=dtype))

    moved, row_amax = (e + 0.5 + 1 / 16) * all_of, torch.full((rows,), 5.5, device=device)
    yield Case(f"quantize_nvfp4{shape} rows", fours, lambda x, c, s, g, r: kiln.ops.quantize_nvfp4(x, codes=c, scales=s, global_scale=g, amax=row_amax),
               moved=moved)
    yield Case(f"rmsnorm_nvfp4{shape}", fours, lambda x, c, s, g, r: kiln.ops.rmsnorm_nvfp4(x, weight=weight, codes=c, scales=s,
                                                                                         global_scale=g), moved=moved)
    yield Case(f"silu_mul_nvfp4{shape}", fours, lambda x, c, s, g, r: kiln.ops.silu_mul_nvfp4(x, up=r, codes=c, scales=s,
                                                                                           global_scale=g), moved=moved + e * all_of)


def fp8_case(m, n, k, accumulation, rowwise, tile=None):
    m, n, k = small(m, 16), small(n), small(k)

    def sets():
        a, b = rand(m, k).to(F8), rand(n, k).to(F8)
        scales = [torch.rand(r, 1, device=device) + 0.5 if rowwise else torch.full((1, 1), 0.75, device=device) for r in (m, n)]
        return a, b, *scales, torch.empty(m, n, device=device, dtype=BF16)

    options = {"accumulation": accumulation, **({"tile": tile} if tile else {})}

    def call(a, b, s, t, d):
        kiln.ops.gemm_fp8(a.view(torch.uint8), b.view(torch.uint8), s, t, d=d, **options)

    def peer(a, b, s, t, d):
        torch._scaled_mm(a, b.t(), scale_a=s if rowwise else s.view(()), scale_b=t.t() if rowwise else t.view(()), out_dtype=BF16,
                         use_fast_accum=accumulation == "fast")

    return Case(f"gemm_fp8 {m}x{n}x{k} {accumulation}{' rows' if rowwise else ''}{f' {tile}' if tile else ''}", sets, call,
                {"torch": peer}, operations=2 * m * n * k, moved=m * k + n * k + 2 * m * n,
                check=lambda a, b, s, t, d: relative(d, (a.float() * s) @ (b.float() * t).t()), bound=6e-3)


def int8_case(m, n, k, tile=None):
    m, n, k = small(m, 32), small(n), small(k)

    def sets():
        a, b = (torch.randint(-127, 128, s, device=device, dtype=torch.int8) for s in ((m, k), (n, k)))
        return a, b, torch.rand(m, 1, device=device) / 127, torch.rand(n, 1, device=device) / 127, torch.empty(m, n, device=device,
                                                                                                             dtype=BF16)

    options = {"tile": tile} if tile else {}
    return Case(f"gemm_int8 {m}x{n}x{k}{f' {tile}' if tile else ''}", sets,
                lambda a, b, s, t, d: kiln.ops.gemm_int8(a, b, s, t, d=d, **options), {"torch._int_mm": lambda a, b, s, t, d: torch._int_mm(a, b.t())},
                operations=2 * m * n * k, moved=m * k + n * k + 2 * m * n,
                check=lambda a, b, s, t, d: relative(d, (a.float() * s) @ (b.float() * t).t()), bound=4e-3)


def w4a16_case(m, n, k, zeros=False, tile=None, layout="sm80_v1", dtype=BF16, factors=None):
    """factors: "pre_scale" of the columns of a, or "norm_weight" of its rows, in the same call."""
    m, n, k, group = small(m, 8), small(n), small(k, 128), 128
    vector = rand(k, dtype=dtype) if factors else None

    def sets():
        weights = torch.randint(0, 256, (n, k // 2), device=device, dtype=torch.uint8)
        scales = torch.rand(n, k // group, device=device).mul_(0.02).to(dtype)
        nibbles = torch.stack((weights & 15, weights >> 4), -1).view(n, k).to(torch.int8)
        nibbles = torch.where(nibbles > 7, nibbles - 16, nibbles)
        z = rand(n, k // group, dtype=dtype, scale=0.01) if zeros else None
        full = (nibbles.to(dtype).float().view(n, k // group, group) * scales.float()[:, :, None])
        if zeros:
            full = full + z.float()[:, :, None]
        packed = weights if dry else torch.from_numpy(kiln.convert.repack(layout, weights.cpu().numpy())).to(device)
        return rand(m, k, dtype=dtype), packed, scales, z, torch.empty(m, n, device=device, dtype=dtype), full.view(n, k).to(dtype)

    layout = "canonical" if dry else layout
    options = {"group": group, "weight_layout": layout, **({"tile": tile} if tile else {}), **({factors: vector} if factors else {})}

    def call(a, w, s, z, d, full):
        kiln.ops.gemm_w4a16(a, w, s, d=d, **({"zeros": z} if z is not None else {}), **options)

    def check(a, w, s, z, d, full):
        a = a.float()
        if factors == "norm_weight":
            a = F.rms_norm(a, (k,), vector.float(), 1e-6)
        return relative(d, (a * vector.float() if factors == "pre_scale" else a) @ full.float().t())

    name = f"gemm_w4a16_{NAMES[dtype]} {m}x{n}x{k}{' zeros' if zeros else ''}{f' {tile}' if tile else ''}{f' {factors}' if factors else ''}"
    return Case(name, sets, call, {"torch bf16": lambda a, w, s, z, d, full: torch.mm(a, full.t(), out=d)}, operations=2 * m * n * k,
                moved=n * k / 2 + dtype.itemsize * (n * k / group * (1 + zeros) + m * k + m * n), check=check, bound=6e-3)


def sample_cases(rows, cols):
    """Peaked rows are as models give them; of flat ones top_p keeps tens of thousands of columns."""
    rows, cols = small(rows, 8), small(cols, 256)
    for kind, spread in (("flat", 1.0), ("peaked", 5.0)):
        for text, options in (("greedy", {"temperature": 0.0}), ("no filter", {"temperature": 1.0}), ("top_p", {"temperature": 1.0, "top_p": 0.9}),
                              ("top_k", {"temperature": 1.0, "top_k": 50, "top_p": 0.9}), ("min_p", {"temperature": 1.0, "min_p": 0.05}),
                              ("top_k 1000", {"temperature": 1.0, "top_k": 1000})):
            yield Case(f"sample {text} {kind} {rows}x{cols}",
                       lambda spread=spread: (rand(rows, cols, scale=spread), torch.empty(rows, device=device, dtype=torch.int32)),
                       lambda x, y, options=options: kiln.ops.sample(x, y=y, seed=7, **options), moved=2 * rows * cols,
                       check=(lambda x, y: (x.gather(1, y.long()[:, None])[:, 0] != x.max(-1).values).float().mean().item())
                       if text == "greedy" else None)


def codes_case(kind, batch, heads, kv_heads, length, dim, causal):
    batch, length = small(batch, 1), small(length, 128)
    fp8 = kind == "fp8"
    tokens = batch * length

    def sets():
        q = rand(batch, length, heads, dim)
        k, v = (rand(batch, length, kv_heads, dim) for _ in range(2))
        code = torch.uint8 if fp8 else torch.int8
        made = dict(q_codes=torch.empty(q.shape, device=device, dtype=code), k_codes=torch.empty(k.shape, device=device, dtype=code),
                    v_codes=torch.empty(v.shape, device=device, dtype=torch.uint8),
                    q_scales=torch.empty(heads, tokens // 128, device=device), k_scales=torch.empty(kv_heads, tokens // 64, device=device),
                    v_scales=torch.empty(batch, kv_heads, dim, device=device), k_means=torch.empty(batch, kv_heads, dim, device=device))
        return q, k, v, torch.full_like(q, math.nan), made

    def prepare(q, k, v, out, made):
        kiln.ops.mha_quantize(q, k, v, **made)

    def attend(q, k, v, out, made):
        function = kiln.ops.mha_fp8_fwd if fp8 else kiln.ops.mha_int8_x_fp8_fwd
        function(made["q_codes"], made["k_codes"], made["v_codes"], made["q_scales"], made["k_scales"], made["v_scales"], out=out,
                 causal="yes" if causal else "no")

    name = f"B{batch} H{heads}/{kv_heads} {length} D{dim}" + (" causal" if causal else "")
    bytes16 = 2 * dim * tokens * (heads + 2 * kv_heads)
    yield Case(f"mha_quantize_{kind} {name}", sets, prepare, moved=1.5 * bytes16)

    def check(q, k, v, out, made):
        return attention_error(out, q, k, v, causal)

    def prepared():
        s = sets()
        prepare(*s)
        return s

    yield Case(f"mha_{'fp8' if fp8 else 'int8_x_fp8'}_fwd {name}", prepared, attend, {"cudnn bf16": sdpa("cudnn", causal, heads != kv_heads)},
               operations=attention_operations(batch, heads, length, length, dim, causal), check=check, bound=0.12)


def cases():
    # Products.
    for size in (1024, 2048, 4096, 8192):
        yield gemm_case(BF16, size, size, size, steady=0.4 if size >= 4096 else 0)
    yield gemm_case(F16, 4096, 4096, 4096)
    yield gemm_case(BF16, 512, 8192, 8192, steady=0.3)
    yield gemm_case(BF16, 128, 8192, 8192)
    yield gemm_case(F32, 4096, 4096, 4096)
    yield gemm_case(F32, 4096, 4096, 4096, f32="tf32")
    for n, k in ((8192, 8192), (28672, 8192), (8192, 28672)):
        for m in (1, 2, 4, 8, 16):
            yield gemm_case(BF16, m, n, k)
    for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584)):
        yield gemm_case(BF16, 1024, n, k, bias=True, activation="gelu_tanh")
        yield gemm_case(BF16, 1, n, k)
        yield gemm_case(BF16, 64, n, k)
    # Attention.
    for dim in (128, 64, 96, 256):
        for causal in (False, True):
            yield mha_case(BF16, 4, 16, 16, 4096, dim, causal)
    for causal in (False, True):
        yield mha_case(BF16, 1, 16, 16, 16384, 128, causal)
        yield mha_case(BF16, 16, 16, 16, 1024, 128, causal)
        yield mha_case(BF16, 32, 16, 16, 512, 128, causal)
        yield mha_case(BF16, 4, 32, 8, 4096, 128, causal)
    for batch, keys in ((1, 1024), (1, 4096), (1, 16384), (1, 32768), (4, 4096), (8, 2048), (16, 8192), (64, 4096)):
        yield decode_case(batch, keys)
        yield decode_case(batch, keys, block=16)
    yield decode_case(64, 4096, block=64)
    yield decode_case(64, 4096, block=16, fp8=True)
    yield decode_case(1, 16384, block=16, fp8=True)
    # Quantised.
    for size in (4096, 8192):
        for accumulation in ("fast", "two_level"):
            for rowwise in (False, True):
                yield fp8_case(size, size, size, accumulation, rowwise)
        yield int8_case(size, size, size)
    yield fp8_case(16, 8192, 8192, "two_level", True)
    yield int8_case(32, 8192, 8192)
    for n, k in ((8192, 8192), (28672, 8192), (4096, 4096)):
        for m in (1, 8, 16):
            yield w4a16_case(m, n, k)
    yield w4a16_case(1, 28672, 8192, zeros=True)
    yield w4a16_case(8, 28672, 8192, zeros=True)
    for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (28672, 8192), (128256, 4096)):
        for m in (9, 12, 16):
            yield w4a16_case(m, n, k, zeros=True)
        yield w4a16_case(16, n, k)
        yield w4a16_case(16, n, k, zeros=True, factors="norm_weight")
        yield w4a16_case(16, n, k, factors="pre_scale")
    for m in (32, 64, 128, 256, 1024, 4096):
        yield w4a16_case(m, 8192, 8192)
    yield w4a16_case(64, 28672, 8192)
    for kind in ("int8", "fp8"):
        for shape in ((4, 16, 16, 4096), (1, 16, 16, 16384)):
            for causal in (False, True):
                yield from codes_case(kind, *shape, 128, causal)

    # What memory bounds.
    yield from row_cases(BF16, 16384, 4096)
    yield from quantise_cases(BF16, 16384, 4096)
    yield from (c for c in row_cases(BF16, 1024, 131072) if c.name.split("_bf16")[0] in ("softmax", "argmax", "log_softmax", "sample"))
    yield from (c for c in row_cases(BF16, 64, 128256) if c.name.split("_bf16")[0] in ("softmax", "argmax", "sample"))
    yield from sample_cases(64, 128256)
    yield from row_cases(BF16, 64, 4096)
    for dtype in (F16, F32):
        yield from row_cases(dtype, 16384, 4096)

def tile_cases():
    for size in (1024, 2048, 4096, 8192):
        for tile in ("large", "medium", "small", "portable"):
            yield gemm_case(BF16, size, size, size, tile=tile, peers=False)
    for m in (17, 32, 64, 128, 256, 512):
        for n, k in ((4096, 4096), (28672, 4096), (8192, 8192)):
            for tile in ("large", "medium", "small", "portable"):
                yield gemm_case(BF16, m, n, k, tile=tile, peers=False)
    for size in (2048, 4096, 8192):
        for tile in ("large", "small", "portable"):
            yield fp8_case(size, size, size, "two_level", True, tile)
            yield int8_case(size, size, size, tile)
    for m in (16, 32, 64, 128, 512):
        for tile in ("large", "small", "portable"):
            yield fp8_case(m, 8192, 8192, "two_level", True, tile)
    for m in (16, 32, 64, 256, 4096):
        for tile in ("64", "128", "256"):
            yield w4a16_case(m, 8192, 8192, tile=tile)
