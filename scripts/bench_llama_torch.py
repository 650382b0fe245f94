#!/usr/bin/env python3
"""The model of `llama --bench` in PyTorch, and the two side by side: the same shape, random weights, one product for queries,
keys and values and one for gate and up, a static cache, scaled_dot_product_attention, torch.compile with CUDA graphs.

    scripts/bench_llama_torch.py [--llama build/examples/llama] [--shape llama3-8b] [--precision bf16] [--batch 1,16,64]
                                 [--prompt 1024] [--steps 128] [--device cuda:0] [--no-compile]
                                 [--out FILE.json] [--seconds 420] [--anew]

With --llama kiln runs first, in a process of its own; the table and the JSON have both and the ratio. What the report has
already, kiln's run, PyTorch's prompt or its steps of a batch, is not measured again: a run that was cut short, or ended after
its seconds, goes on where it stopped."""
import argparse
import importlib.util
import json
import pathlib
import sys
import time

sys.dont_write_bytecode = True  # beside the sources
from gpu_report import Failed, Progress, add_options, device_of, identity_of, nvidia_smi, open_report, run, write_report
from llama_shapes import shapes, weights

THETA, EPSILON, LARGEST, WARM_STEPS, PREFILLS = 500000.0, 1e-5, 0.03, 3, 3


def build(torch, shape, dtype, device):
    """A module whose forward takes tokens [batch, length], their positions [length], the caches' mask [length, room] or
    None for a prompt, and gives the last token's logits."""
    from torch import nn
    from torch.nn import functional

    size, head_dim, heads, kv_heads = (shape[name] for name in ("size", "head_dim", "heads", "kv_heads"))

    def matrix(rows, cols):
        return nn.Parameter(torch.empty(rows, cols, dtype=dtype, device=device).uniform_(-LARGEST, LARGEST), False)

    def rotate(x, cosines, sines):
        first, second = x[..., 0::2], x[..., 1::2]
        return torch.stack((first * cosines - second * sines, first * sines + second * cosines), -1).flatten(-2)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = matrix((heads + 2 * kv_heads) * head_dim, size)
            self.out = matrix(size, heads * head_dim)
            self.gate_up = matrix(2 * shape["hidden"], size)
            self.down = matrix(size, shape["hidden"])
            self.ones = nn.Parameter(torch.ones(size, dtype=dtype, device=device), False)

        def forward(self, x, cache, positions, angles, mask):
            batch, length, _ = x.shape
            all_heads = functional.linear(functional.rms_norm(x, (size,), self.ones, EPSILON), self.qkv)
            query, key, value = all_heads.view(batch, length, -1, head_dim).split((heads, kv_heads, kv_heads), 2)
            query, key = rotate(query, *angles).transpose(1, 2), rotate(key, *angles).transpose(1, 2)
            cache[0].index_copy_(2, positions, key)
            cache[1].index_copy_(2, positions, value.transpose(1, 2))
            if mask is None:
                attended = functional.scaled_dot_product_attention(query, key, value.transpose(1, 2), is_causal=True,
                                                                   enable_gqa=True)
            else:
                attended = functional.scaled_dot_product_attention(query, cache[0], cache[1], attn_mask=mask,
                                                                   enable_gqa=True)
            x = x + functional.linear(attended.transpose(1, 2).reshape(batch, length, -1), self.out)
            gate, up = functional.linear(functional.rms_norm(x, (size,), self.ones, EPSILON), self.gate_up).chunk(2, -1)
            return x + functional.linear(functional.silu(gate) * up, self.down)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = matrix(shape["vocabulary"], size)
            self.classifier = self.embedding if shape["tied"] else matrix(shape["vocabulary"], size)
            self.layers = nn.ModuleList(Layer() for _ in range(shape["layers"]))
            self.ones = nn.Parameter(torch.ones(size, dtype=dtype, device=device), False)
            self.frequencies = THETA ** (-torch.arange(0, head_dim, 2, device=device).float() / head_dim)

        def forward(self, tokens, positions, caches, mask):
            turns = positions[:, None].float() * self.frequencies
            angles = tuple(table.to(dtype)[None, :, None, :] for table in (turns.cos(), turns.sin()))
            x = functional.embedding(tokens, self.embedding)
            for layer, cache in zip(self.layers, caches):
                x = layer(x, cache, positions, angles, mask)
            last = functional.rms_norm(x[:, -1], (size,), self.ones, EPSILON)
            return functional.linear(last, self.classifier).argmax(-1, keepdim=True)

    return Model()


class Bench:
    def __init__(self, torch, arguments):
        self.torch, self.arguments = torch, arguments
        self.shape = shapes()[arguments.shape]
        self.device = torch.device(arguments.device)
        self.dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[arguments.precision]
        self.model = build(torch, self.shape, self.dtype, self.device)
        self.step = self.prompt = self.model
        if not arguments.no_compile:
            self.step = torch.compile(self.model, mode="reduce-overhead", fullgraph=True)
            self.prompt = torch.compile(self.model, fullgraph=True)

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def timed(self, work):
        self.wait()
        begin = time.monotonic()
        work()
        self.wait()
        return time.monotonic() - begin

    def caches(self, batch):
        room = self.arguments.prompt + self.arguments.steps
        caches = [tuple(self.torch.zeros(batch, self.shape["kv_heads"], room, self.shape["head_dim"], dtype=self.dtype,
                                         device=self.device) for _ in range(2)) for _ in range(self.shape["layers"])]
        if not self.arguments.no_compile:
            for tensor in (half for cache in caches for half in cache):
                self.torch._dynamo.mark_static_address(tensor)  # a graph may write it
        return caches

    def prefill(self):
        torch, arguments = self.torch, self.arguments
        caches, positions = self.caches(1), torch.arange(arguments.prompt, device=self.device)
        tokens = torch.randint(self.shape["vocabulary"], (1, arguments.prompt), device=self.device)
        self.prompt(tokens, positions, caches, None)
        return min(self.timed(lambda: self.prompt(tokens, positions, caches, None)) for _ in range(PREFILLS))

    def decode(self, batch):
        """Seconds of a step; the caches' contents have no influence on it."""
        torch, arguments = self.torch, self.arguments
        caches, columns = self.caches(batch), torch.arange(arguments.prompt + arguments.steps, device=self.device)
        tokens = torch.zeros(batch, 1, dtype=torch.long, device=self.device)
        position = torch.empty(1, dtype=torch.long, device=self.device)

        def steps(count):
            position.fill_(arguments.prompt)
            for _ in range(count):
                mask = (columns <= position)[None, None, None, :]
                tokens.copy_(self.step(tokens, position, caches, mask))
                position.add_(1)

        steps(min(WARM_STEPS, arguments.steps))
        return self.timed(lambda: steps(arguments.steps)) / arguments.steps


def measure_torch(arguments, report, progress, begin):
    """Adds what is missing: the prompt, and the steps of each batch. Returns why nothing can be measured, or None."""
    done, bench = {part["batch"] for part in report["torch"]}, None
    if importlib.util.find_spec("torch") is None:
        return "this python3 does not have it"
    for batch in ("prompt", *arguments.batches):
        if batch in done or not progress.begins():
            continue
        import torch

        with torch.inference_mode():
            bench = bench or Bench(torch, arguments)
            if batch == "prompt":
                seconds = bench.prefill()
                part = {"tokens_per_second": arguments.prompt / seconds, "first_token": time.monotonic() - begin}
            else:
                seconds = bench.decode(batch)
                part = {"tokens_per_second": batch / seconds}
        report["torch"].append({"batch": batch, "seconds": seconds, "version": torch.__version__, "cuda": torch.version.cuda,
                                "weight_bytes": weights(bench.shape) * torch.finfo(bench.dtype).bits // 8, **part})
        write_report(arguments.out, report)
    return None


def measure_kiln(arguments, report, progress):
    """Adds its run of all batches, which takes the time of one, mostly."""
    if not arguments.llama or report["kiln"] or not progress.begins():
        return
    command = [arguments.llama, "--bench", "--json", "--shape", arguments.shape, "--precision", arguments.precision,
               "--batch", arguments.batch, "--prompt", str(arguments.prompt), "--steps", str(arguments.steps), "--device",
               arguments.device]
    report["kiln"].append(json.loads(run(*command)))
    write_report(arguments.out, report)


def number(value):
    return f"{value:.1f}" if value else "-"


def print_table(arguments, report):
    kiln, torch = next(iter(report["kiln"]), None), {part["batch"]: part for part in report["torch"]}
    ours = {step["batch"]: step["tokens_per_second"] for step in kiln["decode"]} if kiln else {}
    if kiln:
        ours["prompt"] = kiln["prefill"]["tokens_per_second"]
    print("| | kiln, tokens/s | PyTorch, tokens/s | ratio |\n|---|---|---|---|")
    for batch in ("prompt", *arguments.batches):
        mine, theirs = ours.get(batch), torch.get(batch, {}).get("tokens_per_second")
        ratio = f"{mine / theirs:.2f}" if mine and theirs else "-"
        print(f"| {'' if batch == 'prompt' else 'batch '}{batch} | {number(mine)} | {number(theirs)} | {ratio} |")
    if kiln:
        print(f"first token: kiln {kiln['seconds']['first_token']:.2f} s")
    if "prompt" in torch:
        print(f"first token: PyTorch {torch['prompt']['first_token']:.2f} s, importing and compiling included")


def identity(arguments):
    settings = {name: getattr(arguments, name) for name in ("shape", "precision", "batch", "prompt", "steps", "no_compile")}
    if arguments.llama:
        kiln = pathlib.Path(arguments.llama).resolve().parents[1] / "kiln"  # build/kiln of build/examples/llama
        return identity_of("bench_llama_torch.py", arguments.llama, device_of(str(kiln), arguments.device), **settings)
    name = nvidia_smi(arguments.device, "name").get("name", arguments.device)
    device = {"device": arguments.device, "name": name, "driver": "PyTorch's"}
    return identity_of("bench_llama_torch.py", __file__, device, **settings)


def main():
    begin = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", help="the program of docs/examples/llama")
    parser.add_argument("--shape", default="llama3-8b", choices=sorted(shapes()))
    parser.add_argument("--precision", default="bf16", choices=("f32", "f16", "bf16"))
    parser.add_argument("--batch", default="1,16,64")
    parser.add_argument("--prompt", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--no-compile", action="store_true")
    add_options(parser, 420, None)
    arguments = parser.parse_args()
    arguments.batches = [int(batch) for batch in arguments.batch.split(",")]
    progress = Progress(arguments.seconds)
    try:
        report = open_report(arguments.out, identity(arguments), ["kiln", "torch"], arguments.anew)
        measure_kiln(arguments, report, progress)
        if report["kiln"]:
            begin = time.monotonic()
        why_not = measure_torch(arguments, report, progress, begin)
    except Failed as failure:
        sys.exit(f"bench_llama_torch.py: {failure}")
    print_table(arguments, report)
    if why_not:
        print(f"PyTorch is not measured: {why_not}")
    print(progress.text(arguments.out))


if __name__ == "__main__":
    main()
