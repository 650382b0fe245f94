"""kiln.convert: convert_test.py CASE runs a case on the CPU, in a scratch folder; --list prints the cases and the modules
that each needs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest.mock

import numpy as np

CASES = {}
seed = int.from_bytes(os.urandom(4), "little")
random = np.random.default_rng(seed)
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def case(modules):
    def register(function):
        CASES[function.__name__] = (function, modules)
        return function
    return register


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


# ---- Layers, as their systems write them

def words(integers, order=range(8)):
    """Eight integers of the last axis to a word, of which bits 4 i to 4 i + 3 are that at order[i]."""
    groups = integers.reshape(*integers.shape[:-1], -1, 8).astype(np.uint32)
    return sum(groups[..., place] << np.uint32(4 * i) for i, place in enumerate(order)).astype(np.uint32).view(np.int32)


class Layer:
    """Random integers, zeros and scales of a layer [n, k], and what they stand for: (u - zero) * scale."""

    def __init__(self, n=48, k=128, group=64):
        self.group = group
        self.integers = random.integers(0, 16, (k, n))
        self.zeros = random.integers(1, 17, (k // group, n))  # GPTQ stores them less 1
        self.scales = (random.random((k // group, n)) / 16 + 0.01).astype(np.float16)

    def elements(self):
        spread = lambda groups: groups.repeat(self.group, 0).astype(np.float64)
        return ((self.integers - spread(self.zeros)) * spread(self.scales)).T

    def awq(self, name):
        self.zeros %= 16
        return {f"{name}.qweight": words(self.integers, AWQ_ORDER), f"{name}.qzeros": words(self.zeros, AWQ_ORDER),
                f"{name}.scales": self.scales}

    def gptq(self, name):
        order = (np.arange(self.integers.shape[0]) // self.group).astype(np.int32)
        return {f"{name}.qweight": np.ascontiguousarray(words(self.integers.T).T),
                f"{name}.qzeros": words(self.zeros - 1), f"{name}.scales": self.scales, f"{name}.g_idx": order}


def save(path, tensors):
    from safetensors.numpy import save_file
    save_file(tensors, str(path))


def load(path):
    from safetensors.numpy import load_file
    return load_file(str(path))


def elements(found, name):
    """What kiln makes of a layer of a file."""
    import kiln
    weights, scales = found[f"{name}.weights"], found[f"{name}.scales"]
    return kiln.ops.dequantize_w4a16(weights, scales, zeros=found.get(f"{name}.zeros"),
                                     group=2 * weights.shape[-1] // scales.shape[-1])


def converted(folder, source, **options):
    import kiln.convert
    target = folder / "converted.safetensors"
    summary = kiln.convert.convert(source, target, **options)
    return load(target), summary


# ---- AWQ and GPTQ

@case("safetensors")
def checkpoints(folder):
    """By the published formulas: layers whose parts stand in different files, tensors that are copied, products."""
    import kiln
    for write, config in ((Layer.awq, {"quant_method": "awq", "bits": 4, "version": "gemm"}),
                          (Layer.gptq, {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq"})):
        layers = {"a.q_proj": Layer(), "a.k_proj": Layer(16, 64, 32), "b.whole": Layer(8, 96, 96)}
        parts = [item for name, layer in layers.items() for item in write(layer, name).items()]
        norm = random.standard_normal(64).astype(np.float32)
        save(folder / "model-1.safetensors", dict(parts[::2], norm=norm))
        save(folder / "model-2.safetensors", dict(parts[1::2]))
        (folder / "config.json").write_text(json.dumps({"quantization_config": config}))
        found, summary = converted(folder, folder, dtype="f32")
        (folder / "converted.safetensors").unlink()
        assert (summary.layers, summary.others) == (3, 1), summary
        np.testing.assert_array_equal(found.pop("norm"), norm)
        assert len(found) == 9, sorted(found)
        for name, layer in layers.items():
            np.testing.assert_allclose(elements(found, name), layer.elements(), atol=1e-6)
        a = random.standard_normal((3, 128)).astype(np.float32)
        d = kiln.ops.gemm_w4a16(a, found["a.q_proj.weights"], found["a.q_proj.scales"], zeros=found["a.q_proj.zeros"],
                                group=64)
        np.testing.assert_allclose(d, a @ layers["a.q_proj"].elements().T, atol=1e-3)


@case("safetensors,ml_dtypes")
def precisions(folder):
    """Scales and zeros are rounded once to what is asked for; a bf16 tensor is copied."""
    import ml_dtypes
    layer = Layer()
    norm = random.standard_normal(8).astype(ml_dtypes.bfloat16)
    save(folder / "model.safetensors", {**layer.gptq("x"), "norm": norm})
    for dtype, kind, error in (("f32", np.float32, 1e-6), ("f16", np.float16, 2e-3), ("bf16", ml_dtypes.bfloat16, 2e-2)):
        found, _ = converted(folder, folder / "model.safetensors", dtype=dtype)
        assert found["x.scales"].dtype == found["x.zeros"].dtype == kind
        np.testing.assert_array_equal(found["x.scales"].T, layer.scales.astype(kind))
        np.testing.assert_allclose(elements(found, "x").astype(np.float64), layer.elements(), atol=error)
        assert found["norm"].tobytes() == norm.tobytes()


@case("safetensors")
def layouts(folder):
    """A file says how its weights are ordered, and they are the same ones."""
    import kiln.convert
    from safetensors import safe_open
    save(folder / "model.safetensors", Layer(32, 128, 64).awq("x"))
    plain, _ = converted(folder, folder / "model.safetensors")
    packed, _ = converted(folder, folder / "model.safetensors", layout="sm80_v1")
    with safe_open(str(folder / "converted.safetensors"), "numpy") as file:
        assert file.metadata()["weight_layout"] == "sm80_v1"
    assert not np.array_equal(plain["x.weights"], packed["x.weights"])
    np.testing.assert_array_equal(kiln.convert.unpack("sm80_v1", packed["x.weights"]), plain["x.weights"])
    save(folder / "model.safetensors", Layer(8, 128, 64).awq("y"))
    refused(ValueError, "y: kiln_w4a16_repack: n is 8", lambda: converted(
        folder, folder / "model.safetensors", layout="sm80_v1"))
    refused(ValueError, "layout is 'sm7': must be one of canonical", lambda: converted(folder, folder, layout="sm7"))
    refused(ValueError, "dtype is 'f8': must be one of f16", lambda: converted(folder, folder, dtype="f8"))


@case("safetensors")
def wrong_checkpoints(folder):
    """What cannot be converted is refused, by the tensor's name or the file's."""
    file = folder / "model.safetensors"

    def given(text, tensors, config=None):
        save(file, tensors)
        (folder / "config.json").write_text(json.dumps({"quantization_config": config} if config else {}))
        refused(ValueError, text, lambda: converted(folder, file))

    gptq, awq = Layer().gptq("x"), Layer().awq("x")
    given("x: kiln_w4a16_from_gptq: g_idx", gptq | {"x.g_idx": gptq["x.g_idx"][::-1].copy()})
    given("x: g_idx is int32 [3]", gptq | {"x.g_idx": np.zeros(3, np.int32)})
    given("x.qweight is of 8 bits: must be of 4", gptq | {"x.qzeros": np.zeros((2, 12), np.int32)})
    given("x.qweight is of 3 bits: must be of 4", {
        "x.qweight": np.zeros((12, 64), np.int32), "x.qzeros": np.zeros((2, 6), np.int32),
        "x.scales": np.ones((2, 64), np.float16)})
    given("neither as in AWQ's GEMM format nor as in GPTQ's", awq | {"x.qweight": np.zeros((48, 16), np.int32)})
    given("x.qzeros is missing", {name: awq[name] for name in ("x.qweight", "x.scales")})
    given("x: qweight is float32", awq | {"x.qweight": awq["x.qweight"].astype(np.float32)})
    given("x: scales are float64", awq | {"x.scales": awq["x.scales"].astype(np.float64)})
    given("x.weight_packed: its format is unknown", {"x.weight_packed": np.zeros((4, 4), np.int32)})
    given("has no layer of AWQ, GPTQ, Q4_0 or Q4_1", {"x.weight": np.zeros((4, 4), np.float32)})
    for config, text in (({"quant_method": "bitsandbytes"}, "quant_method is 'bitsandbytes': must be one of awq, gptq"),
                         ({"quant_method": "gptq", "bits": 8}, "bits is 8: must be 4"),
                         ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"},
                          "checkpoint_format is 'gptq_v2': must be 'gptq'"),
                         ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "version is 'gemv': must be 'gemm'")):
        given(text, awq, config)
    empty = folder / "empty"
    empty.mkdir()
    refused(ValueError, "has no .safetensors file", lambda: converted(folder, empty))
    refused(FileNotFoundError, "none.gguf does not exist", lambda: converted(folder, folder / "none.gguf"))
    (folder / "model.bin").touch()
    refused(ValueError, "model.bin is unknown: must be a folder", lambda: converted(folder, folder / "model.bin"))


# ---- GGUF

def write_gguf(path, tensors):
    import gguf
    writer = gguf.GGUFWriter(str(path), "llama")
    for name, (data, kind) in tensors.items():
        if kind is None:
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, gguf.quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@case("safetensors,gguf")
def ggufs(folder):
    """As gguf's own dequantize says: a matrix of each kind, experts in three dimensions, tensors that are copied."""
    import gguf
    Q4_0, Q4_1, Q8_0 = (gguf.GGMLQuantizationType[kind] for kind in ("Q4_0", "Q4_1", "Q8_0"))
    real = lambda *shape: random.standard_normal(shape).astype(np.float32)
    given = {"blk.0.attn_q.weight": (real(6, 96), Q4_0), "blk.0.attn_k.weight": (real(5, 64), Q4_1),
             "blk.0.experts.weight": (real(3, 4, 64), Q4_1), "norm.weight": (real(64), None),
             "half.weight": (real(3, 4).astype(np.float16), None)}
    write_gguf(folder / "model.gguf", given)
    found, summary = converted(folder, folder / "model.gguf", dtype="f32")
    assert (summary.layers, summary.others) == (3, 2), summary
    for name, (data, kind) in given.items():
        if kind is None:
            np.testing.assert_array_equal(found[name], data)
            continue
        wanted, layer = gguf.dequantize(gguf.quantize(data, kind), kind), name.removesuffix(".weight")
        assert (f"{layer}.zeros" in found) == (kind == Q4_1), name
        if data.ndim == 3:
            matrices = [{key: found[key][i] for key in found if key.startswith(layer)} for i in range(len(data))]
            got = np.stack([elements(matrix, layer) for matrix in matrices])
        else:
            got = elements(found, layer)
        np.testing.assert_allclose(got, wanted, atol=0 if kind == Q4_0 else 2e-6)
    given["output.weight"] = (real(4, 64), Q8_0)
    write_gguf(folder / "model.gguf", given)
    refused(ValueError, "output.weight is Q8_0: must be one of Q4_0, Q4_1, F16", lambda: converted(
        folder, folder / "model.gguf"))
    found, _ = converted(folder, folder / "model.gguf", dequantize=True)
    wanted = gguf.dequantize(gguf.quantize(given["output.weight"][0], Q8_0), Q8_0)
    np.testing.assert_array_equal(found["output.weight"], wanted.astype(np.float16))


# ---- Around them

@case("safetensors")
def command_line(folder):
    """python -m kiln.convert writes the same file, and says what is wrong in one line."""
    save(folder / "model.safetensors", Layer().gptq("x"))
    command = [sys.executable, "-m", "kiln.convert", str(folder / "model.safetensors")]
    run = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True)
    done = run(str(folder / "by_command.safetensors"))
    assert done.returncode == 0 and done.stdout.startswith("1 layers, 0 other tensors, "), done
    converted(folder, folder / "model.safetensors")
    assert load(folder / "by_command.safetensors").keys() == load(folder / "converted.safetensors").keys()
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "gptq", "bits": 2}}')
    done = run(str(folder / "other.safetensors"))
    assert done.returncode == 1 and done.stderr.endswith("bits is 2: must be 4\n") and done.stderr.count("\n") == 1, done
    assert not (folder / "other.safetensors").exists()
    assert run(str(folder / "other.safetensors"), "--dtype", "f8").returncode == 2


@case("numpy")
def missing_packages(folder):
    """Are named, with what installs them."""
    import kiln.convert
    (folder / "model.gguf").touch()
    with unittest.mock.patch.dict(sys.modules, {"safetensors": None, "safetensors.numpy": None}):
        refused(ImportError, "kiln.convert needs safetensors: pip install safetensors",
                lambda: kiln.convert.convert(folder / "model.gguf", folder / "out.safetensors"))
    with unittest.mock.patch.dict(sys.modules, {"gguf": None, "safetensors.numpy": types.SimpleNamespace(save_file=None)}):
        refused(ImportError, "kiln.convert needs gguf: pip install gguf",
                lambda: kiln.convert.convert(folder / "model.gguf", folder / "out.safetensors"))


@case("safetensors,torch,accelerate,awq")
def autoawq(folder):
    """A layer that AutoAWQ packed, as AutoAWQ dequantises it."""
    import torch
    from awq.modules.linear.gemm import WQLinear_GEMM
    from awq.utils.packing_utils import dequantize_gemm
    layer = Layer(64, 128, 64)
    layer.zeros %= 16
    linear = torch.nn.Linear(128, 64, bias=True, dtype=torch.float16)
    linear.weight.data = torch.from_numpy(layer.elements()).half()
    scales, zeros = torch.from_numpy(layer.scales), torch.from_numpy(layer.zeros)
    packed = WQLinear_GEMM.from_linear(linear, 4, 64, scales=scales, zeros=zeros)
    save(folder / "model.safetensors", {f"x.{name}": value.numpy() for name, value in packed.state_dict().items()})
    found, _ = converted(folder, folder / "model.safetensors", dtype="f32")
    wanted = dequantize_gemm(packed.qweight, packed.qzeros, packed.scales, 4, 64).T.numpy()
    np.testing.assert_allclose(elements(found, "x"), wanted, atol=2e-3)
    np.testing.assert_allclose(elements(found, "x"), layer.elements(), atol=1e-6)
    np.testing.assert_array_equal(found["x.bias"], linear.bias.detach().numpy())


def load_awq():
    """AutoAWQ's modules without those of its models, which its packages load and which ask for a transformers of their
    time."""
    from importlib.util import find_spec
    spec = find_spec("awq")
    for name in ("awq", "awq.modules", "awq.modules.linear", "awq.utils") if spec else ():
        module = types.ModuleType(name)
        module.__path__ = [str(pathlib.Path(spec.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules[name] = module


if sys.argv[1] == "--list":
    print(*(f"{name}:{modules}" for name, (_, modules) in CASES.items()))
else:
    load_awq()
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as scratch:
        CASES[sys.argv[1]][0](pathlib.Path(scratch))
