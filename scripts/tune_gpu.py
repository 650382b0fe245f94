#!/usr/bin/env python3
"""Measures every tile that the chosen images of the products have, over shapes of real models, on a GPU of this machine:
what scripts/tuning.py makes the kernels' rates of.

    scripts/tune_gpu.py BUILD [--device cuda:0] [--out tune.json] [--seconds 520] [--anew] [--shipped] [--only WORD]
                        [--dry-run]

What the report has already is not measured again: a run that was cut short, or ended after its seconds, goes on where it
stopped. Of the programs of `make tuning-images`, BUILD/tuning/*/kiln, what their kernels take is measured beside; they are left
out by --shipped.
Simulated devices have no times: --dry-run runs small shapes, on any device, and writes no time."""
import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # beside the sources
from gpu_report import Failed, Progress, add_options, device_of, hash_of, identity_of, open_report, run, write_report

PRECISIONS = ("f16", "bf16")
# Operators and what of them has several tiles: the choices of `tile`, further settings, and the optional tensors that are left
# out.
OPERATORS = {
    "gemm": (("large", "medium", "small", "portable"), {}, ("c", "bias", "norm_weight")),
    "gemm_fp8": (("large", "medium", "small", "portable"), {}, ("bias",)),
    "gemm_int8": (("large", "medium", "small", "portable"), {}, ("bias",)),
    "gemm_nvfp4": (("large", "small", "portable"), {}, ("bias",)),
    "gemm_w4a16": (("256", "128", "64"), {"weight_layout": "sm80_v1"}, ("c", "bias", "pre_scale", "norm_weight")),
}
# n and k of the products of Llama 3: 8B's, and a shard's of 70B; and squares, which fill every device.
LAYERS = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584))
ROWS = (17, 32, 64, 128, 256, 512, 1024, 4096)
SQUARES = (1024, 2048, 4096, 8192)
DRY_SHAPES = ((48, 128, 128), (64, 192, 64))


def shapes_of(dry):
    """(m, n, k): the large ones first, from which rates follow; a run that ends early has those."""
    if dry:
        return DRY_SHAPES
    squares = [(size, size, size) for size in reversed(SQUARES)]
    return squares + [(m, n, k) for m in reversed(ROWS) for n, k in LAYERS]


def variants_of(build):
    """{name: {operator: names of kernels that are others there}} of the programs with other tiles."""
    variants = {}
    for path in sorted(pathlib.Path(build, "tuning").glob("*/kernels")):
        if not path.with_name("kiln").exists():
            continue
        kernels = variants.setdefault(path.parent.name, {})
        for line in path.read_text(encoding="utf-8").splitlines():
            operator, kernel = line.split()
            kernels.setdefault(operator, []).append(kernel)
    return variants


def cases_of(dry, only, variants):
    """(function, settings, variant); that of what ships is None."""
    for shape in shapes_of(dry):
        for operator, (tiles, settings, _) in OPERATORS.items():
            for precision in PRECISIONS:
                for tile in tiles:
                    function = f"{operator}_{precision}"
                    if only and only not in function:
                        continue
                    for variant in (None, *(name for name, kernels in variants.items() if operator in kernels)):
                        yield function, dict(zip("mnk", shape), tile=tile, **settings), variant


def key_of(case):
    return case["function"], tuple(sorted(case["settings"].items())), case["variant"]


def plan_of(kiln, device, function, settings):
    """What the call would launch; the operator itself is asked."""
    words = [f"{name}={value}" for name, value in settings.items()]
    return json.loads(run(kiln, "explain", "--device", device, "--json", function, *words))


def first_launch(plan):
    return plan["launches"][0]["kernel"] if plan["launches"] else None


def kernel_name(kernel):
    """Without kiln_ and the precision."""
    return (kernel or "").removeprefix("kiln_").rpartition("_")[0]


def is_of_tile(plan, tile):
    """Whether the image has that tile: else the call takes another kernel."""
    name = first_launch(plan) or ""
    return ("_tiles_" in name) if tile == "portable" else (f"_{tile}_" in name)


def splits_of(plan):
    return next((kernel["splits"] for kernel in plan["kernels"] if kernel["taken"] and "splits" in kernel), 1)


def bench(kiln, device, function, settings):
    command = [kiln, "bench", "--device", device, "--json", "--size", "1"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    for name in OPERATORS[function.rpartition("_")[0]][2]:
        command += ["--without", name]
    return json.loads(run(*command, function))["functions"][0].get("median_ns")  # a simulated device has none


def measure(arguments, variants, report, progress):
    done = {key_of(case) for case in report["cases"]}
    for function, settings, variant in cases_of(arguments.dry_run, arguments.only, variants):
        case = {"function": function, "settings": settings, "variant": variant}
        if key_of(case) in done or not progress.begins():
            continue
        kiln = f"{arguments.build}/tuning/{variant}/kiln" if variant else f"{arguments.build}/kiln"
        plan = plan_of(kiln, arguments.device, function, settings)
        case["image"], case["kernel"] = plan["image"], first_launch(plan)
        operator = function.rpartition("_")[0]
        others = variants[variant][operator] if variant else [kernel_name(case["kernel"])]
        if is_of_tile(plan, settings["tile"]) and kernel_name(case["kernel"]) in others:
            case["multiprocessors"], case["splits"] = plan["multiprocessors"], splits_of(plan)
            case["tile"] = next((kernel["tile"] for kernel in plan["kernels"] if kernel["taken"] and "tile" in kernel), None)
            if not variant:
                automatic = {name: value for name, value in settings.items() if name != "tile"}
                case["automatic"] = first_launch(plan_of(kiln, arguments.device, function, automatic))
            time_of_call = bench(kiln, arguments.device, function, settings)
            case["nanoseconds"] = None if arguments.dry_run else time_of_call
        report["cases"].append(case)
        write_report(arguments.out, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--device", default="cuda:0")
    add_options(parser, 520, "tune.json")
    parser.add_argument("--only", help="functions with this in their names")
    parser.add_argument("--shipped", action="store_true", help="what ships alone, no tiles for tuning")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    progress = Progress(arguments.seconds)
    try:
        device = device_of(f"{arguments.build}/kiln", arguments.device)
        if device["name"].startswith("kiln simulated") and not arguments.dry_run:
            raise Failed("a simulated device has no times: --dry-run")
        variants = {} if arguments.shipped else variants_of(arguments.build)
        identity = identity_of("tune_gpu.py", f"{arguments.build}/kiln", device, dry_run=arguments.dry_run,
                               tuning={name: hash_of(f"{arguments.build}/tuning/{name}/kiln") for name in variants})
        measure(arguments, variants, open_report(arguments.out, identity, ["cases"], arguments.anew), progress)
    except Failed as failure:
        sys.exit(f"tune_gpu.py: {failure}")
    print(progress.text(arguments.out))


if __name__ == "__main__":
    main()
