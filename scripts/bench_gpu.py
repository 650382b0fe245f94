#!/usr/bin/env python3
"""Measures kiln's operators on a GPU of this machine, in one run with what they are held against: copies on the same
device, by its driver and by a kernel, and PyTorch on the same sizes where python3 has it. Prints a table in Markdown and
writes everything as JSON.

    scripts/bench_gpu.py BUILD [--device cuda:0] [--out FILE.json] [--seconds 500] [--anew] [--only WORD] [--no-compile]
                         [--dry-run]

What the report has already is not measured again: a run that was cut short, or ended after its seconds, goes on where it
stopped. A case that failed is not tried again. The exit status is 0 if all that the report has is well.
Simulated devices have no times: --dry-run runs everything small, on any device, and prints and writes no time at all."""
import argparse
import datetime
import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # beside the sources
from gpu_report import Failed, Progress, add_options, device_of, identity_of, nvidia_smi, open_report, run, write_report

PRECISIONS = ("f32", "f16", "bf16")
MIB, MIB_DRY = 512, 1  # of the largest tensor of an operator that memory bounds: many times any cache
GOAL = 0.9             # of the copy

# Each element of these is read once and written once: they are held against the copy.
BOUND_BY_MEMORY = ("add", "mul_add", "silu_mul", "add_gelu", "softmax", "rmsnorm", "add_rmsnorm", "rope", "rope3d",
                   "embedding", "argmax", "log_softmax")
# These touch parts of their tensors only, or write less or more than they read.
OTHERS = ("amax", "causal_conv1d", "engram_gate", "engram_hash", "gemm_fp8", "gemm_int8", "dequantize_fp8", "dequantize_int8", "dequantize_nvfp4",
          "dequantize_w4a16", "gemm_nvfp4", "gemm_w4a16", "kv_store", "kv_compact", "kv_copy_blocks", "merge_attention_states",
          "mha_fp8_fwd", "mha_int8_x_fp8_fwd", "mha_nvfp4_fwd", "mha_paged", "mha_quantize",
          "mha_quantize_nvfp4", "quantize_embedding", "quantize_fp8", "quantize_int8", "quantize_nvfp4",
          "rmsnorm_fp8", "rmsnorm_int8", "rmsnorm_nvfp4", "rope_kv_store", "sample", "silu_mul_fp8", "silu_mul_int8",
          "silu_mul_nvfp4", "softmax_update", "top_k", "tree_accept", "tree_verify_sampled", "vector_search")

GEMM = [dict(m=m, n=n, k=k) for m, n, k in ((1, 8192, 8192), (8, 8192, 8192), (1024, 1024, 1024), (4096, 4096, 4096),
                                            (8192, 8192, 8192))]
PREFILL = dict(tokens=4096, kv_tokens=4096, batch=1, heads=32, kv_heads=32, head_dim=128, causal="yes")
MHA = [PREFILL, dict(PREFILL, kv_heads=8), dict(PREFILL, tokens=8192, kv_tokens=8192, batch=4, head_dim=64),
       dict(PREFILL, tokens=16, kv_tokens=16 * 8192, batch=16, kv_heads=8)]
GEMM_DRY = [dict(m=3, n=33, k=40)]
MHA_DRY = [dict(tokens=32, kv_tokens=32, batch=2, heads=4, kv_heads=2, head_dim=32, causal="yes")]
# What kiln bench would otherwise give: PyTorch's calls beside it have none of that.
WITHOUT = {"gemm": ("c", "bias", "norm_weight"), "gemm_fp8": ("bias",), "gemm_int8": ("bias",), "gemm_nvfp4": ("bias",),
           "gemm_w4a16": ("c", "bias", "pre_scale", "norm_weight"), "mha": ("lse", "mask"), "mha_paged": ("lse",)}
for on_codes in ("mha_fp8_fwd", "mha_int8_x_fp8_fwd", "mha_nvfp4_fwd"):
    WITHOUT[on_codes] = ("lse", "k_means", "v_means")


def settings_of(dry):
    """(operator, settings, MiB) in order."""
    mib = MIB_DRY if dry else MIB
    for operator in BOUND_BY_MEMORY + OTHERS:
        yield operator, {}, mib
    for operator, all_settings in (("gemm", GEMM_DRY if dry else GEMM), ("mha", MHA_DRY if dry else MHA)):
        for settings in all_settings:
            yield operator, settings, mib


def bench_kiln(kiln, device, operator, precision, settings, mib):
    command = [kiln, "bench", "--device", device, "--json", "--size", str(mib)]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    for name in WITHOUT.get(operator, ()):
        command += ["--without", name]
    return json.loads(run(*command, f"{operator}_{precision}"))


def sizes_of(result, settings):
    sizes = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", result["sizes"])}
    sizes["causal"] = settings.get("causal") == "yes"
    return sizes


def machine_of(device):
    return nvidia_smi(device, "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,temperature.gpu")


def torch_or_why(device, dry):
    """The module, or None with the reason."""
    try:
        sys.path.insert(0, str(pathlib.Path(__file__).parent))
        import bench_torch
    except ImportError as error:
        return None, str(error)
    if not dry and not bench_torch.torch.cuda.is_available():
        return None, "this PyTorch sees no GPU"
    return bench_torch, None


def without_times(value):
    """What a dry run may write: no key that holds a time or what is made of one."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items()
                if not re.search(r"_ns$|per_second$|^(of_copy|runs|calls)$", k)}
    return [without_times(v) for v in value] if isinstance(value, list) else value


# ---- Output


def microseconds(nanoseconds):
    return f"{nanoseconds / 1e3:.1f}"


def rate(case):
    """GB/s, or TFLOP/s of a product."""
    s, ns = case["sizes"], case["kiln"]["median_ns"]
    if case["operator"] == "gemm":
        return f"{2e-3 * s['batch'] * s['m'] * s['n'] * s['k'] / ns:.1f} TFLOP/s"
    if case["operator"] == "mha":
        pairs = s["tokens"] * s["kv_tokens"] / s["batch"]
        if s["causal"] and s["tokens"] > s["batch"]:
            pairs *= 1 - (s["tokens"] / s["batch"] - 1) / (2 * s["kv_tokens"] / s["batch"])
        return f"{4e-3 * pairs * s['heads'] * s['head_dim'] / ns:.1f} TFLOP/s"
    return f"{case['kiln']['moved_bytes'] / ns:.0f} GB/s"


def rows_of(case, copy, dry):
    name = f"`{case['operator']}_{case['precision']}`"
    sizes = " ".join(f"{k}={v}" for k, v in case["sizes"].items() if k != "causal") + " causal" * case["sizes"]["causal"]
    ways = case["torch_ns"].items() if not dry else ((way, None) for way in case["torch_ways"])
    if dry:
        yield [name, sizes, "-", "-", "-", ", ".join(way for way, _ in ways) or "-", "-", "-"]
        return
    ns = case["kiln"]["median_ns"]
    copy = copy or case["copy_bytes_per_second"]  # that of the driver, measured with the case
    share = case["kiln"]["moved_bytes"] / ns * 1e9 / copy if copy and case["operator"] in BOUND_BY_MEMORY else None
    of_copy = f"{100 * share:.0f} %{'' if share >= GOAL else ' (below the goal)'}" if share else "-"
    mine = [name, sizes, microseconds(ns), rate(case), of_copy]
    for way, time in list(ways) or [("-", None)]:
        if isinstance(time, (int, float)):
            yield mine + [way, microseconds(time), f"{time / ns:.2f}"]
        else:
            yield mine + [way, (time or "-").replace("|", "/"), "-"]
        mine = [""] * 5


def table(report, dry):
    copy = max((report["copy"].get(f"{by}_bytes_per_second", 0) for by in ("driver", "kernel")), default=0)
    lines = ["| function | sizes | kiln, us | | of the copy | PyTorch | us | PyTorch / kiln |", "|---" * 8 + "|"]
    if not dry and copy:
        by = {k.split("_")[0]: v for k, v in report["copy"].items() if k.endswith("per_second")}
        lines[:0] = ["Copies: " + ", ".join(f"by the {k} {v / 1e9:.0f} GB/s" for k, v in by.items()) +
                     ", bytes read and written. The faster is the bound.", ""]
    for case in report["cases"]:
        lines += ["| " + " | ".join(row) + " |" for row in rows_of(case, copy, dry)]
    return "\n".join(lines)


# ---- The run


def copies(build, device, dry):
    if not device.startswith("cuda"):
        return {}
    return json.loads(run(f"{build}/bench/gpu_copy", device, str(2 * MIB_DRY if dry else MIB)))


def measure_case(arguments, torch, operator, precision, settings, mib):
    kiln = bench_kiln(f"{arguments.build}/kiln", arguments.device, operator, precision, settings, mib)
    if not arguments.dry_run and kiln.get("simulated"):
        raise Failed("a simulated device has no times")
    result = kiln["functions"][0]
    case = {"operator": operator, "precision": precision, "settings": settings, "sizes": sizes_of(result, settings), "kiln": result,
            "copy_bytes_per_second": kiln.get("copy_bytes_per_second", 0), "torch_ns": {}, "torch_ways": [],
            "machine": machine_of(arguments.device)}
    if torch:
        where = "cpu" if arguments.dry_run else "cuda:" + (arguments.device.partition(":")[2] or "0")
        if arguments.dry_run:
            case["torch_ways"] = torch.try_out(operator, precision, case["sizes"], where)
        else:
            case["torch_ns"] = torch.compare(operator, precision, case["sizes"], where, not arguments.no_compile)
    return case


def version_of(build):
    """With the commit, which a package of scripts/gpu_package.sh has in a file."""
    version = run(f"{build}/kiln", "--version").strip()
    try:
        commit = run("git", "describe", "--always", "--dirty")
    except (Failed, OSError):
        commit = pathlib.Path("version").read_text(encoding="utf-8") if pathlib.Path("version").exists() else "?"
    return f"{version} ({commit.strip()})"


def key_of(case):
    return case["operator"], case["precision"], tuple(sorted(case["settings"].items()))


def begin(arguments, device, torch, why_not):
    """The report of the runs before, or a new one."""
    identity = identity_of("bench_gpu.py", f"{arguments.build}/kiln", device, dry_run=arguments.dry_run,
                           pytorch=torch.versions() if torch else why_not)
    report = open_report(arguments.out, identity, ["cases", "failed"], arguments.anew)
    if "date" not in report:
        report.update({"date": datetime.date.today().isoformat(), "device": device, "kiln": version_of(arguments.build),
                       "before": machine_of(arguments.device),
                       "copy": copies(arguments.build, arguments.device, arguments.dry_run)})
    return report


def measure_all(arguments, report, torch, progress):
    """Writes the report after each case, so that a run that is stopped has what it measured."""
    done = {key_of(case) for case in report["cases"] + report["failed"]}
    for operator, settings, mib in settings_of(arguments.dry_run):
        for precision in PRECISIONS:
            case = {"operator": operator, "precision": precision, "settings": settings}
            if arguments.only not in f"{operator}_{precision}" or key_of(case) in done or not progress.begins():
                continue
            print(f"{operator}_{precision} ...", file=sys.stderr)
            try:
                report["cases"].append(measure_case(arguments, torch, operator, precision, settings, mib))
            except Failed as error:
                print(f"bench_gpu: {error}", file=sys.stderr)
                report["failed"].append({**case, "error": str(error)})
            report["after"] = machine_of(arguments.device)
            write_report(arguments.out, without_times(report) if arguments.dry_run else report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of what was built: build")
    parser.add_argument("--device", default="cuda:0")
    add_options(parser, 500, None)
    parser.add_argument("--only", default="", metavar="WORD", help="only functions with this in their name")
    parser.add_argument("--no-compile", action="store_true", help="do not measure torch.compile, which takes seconds each")
    parser.add_argument("--dry-run", action="store_true", help="small sizes, and no times")
    arguments = parser.parse_args()
    progress = Progress(arguments.seconds)
    try:
        device = device_of(f"{arguments.build}/kiln", arguments.device)
        if device["name"].startswith("kiln simulated") and not arguments.dry_run:
            raise Failed(f"{arguments.device} is simulated and has no times; --dry-run tries everything without them")
        if not arguments.out and not arguments.dry_run:
            slug = re.sub(r"[^a-z0-9]+", "-", device["name"].lower()).strip("-")
            arguments.out = f"docs/benchmarks/{slug}-{datetime.date.today().isoformat()}.json"
        torch, why_not = torch_or_why(arguments.device, arguments.dry_run)
        report = begin(arguments, device, torch, why_not)
        measure_all(arguments, report, torch, progress)
    except Failed as error:
        print(f"bench_gpu: {error}", file=sys.stderr)
        return 1
    print(f"# {device['name']}, {report['date']}\n\n{device['driver']}; {report['kiln']}; PyTorch: {report['of']['pytorch']}")
    print(f"nvidia-smi before: {report['before'] or '-'}\nafter: {report.get('after') or '-'}\n")
    print(table(report, arguments.dry_run))
    print(f"\n{progress.text(arguments.out)}")
    for case in report["failed"]:
        print(f"failed: {case['operator']}_{case['precision']} {case['settings']}: {case['error']}")
    return 1 if report["failed"] or not report["cases"] else 0


if __name__ == "__main__":
    sys.exit(main())
