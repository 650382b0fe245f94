#!/usr/bin/env python3
"""Makes the kernels' rates, the last number of each KILN_SHAPE of a tuned source, of what scripts/tune_gpu.py measured, and
says how well the operators choose by them, and which of the tiles for tuning (kernels/tuning) would be faster, and where.

    scripts/tuning.py [--write] [--sources kernels] FILE.json...

The host sides predict rounds of tiles x the elements of a tile x k / rate. So a kernel's rate is the median of
rounds x elements x k / time over its undivided products of two rounds or more, which the end of the last tile hardly delays,
relative to the fastest kernel of its source, which has 100. --write puts it into the sources; their images are then to be
fired, one commit behind."""
import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import sys

ROUNDS_LEAST = 2


def source_of(sources, operator, image):
    """The tuned source that an image comes from: that of its target, or of the nearest lower one."""
    target = image.split()[0].replace("_", "").replace("-", "_")
    own = sources / operator / f"{operator}_{target}"
    for suffix in (".cu", ".c"):
        if own.with_suffix(suffix).exists():
            return own.with_suffix(suffix)
    number = re.match(r"sm(\d+)", target)
    lower = []
    for path in (sources / operator).glob(f"{operator}_sm*.cu"):
        level = re.fullmatch(rf"{operator}_sm(\d+)\.cu", path.name)
        if number and level and int(level[1]) <= int(number[1]):
            lower.append((int(level[1]), path))
    return max(lower)[1] if lower else None


def operator_of(function):
    return function.rpartition("_")[0]


def kernel_of(case):
    """The name in the source: without kiln_ and the precision."""
    return case["kernel"].removeprefix("kiln_").rpartition("_")[0]


def speed_of(case):
    """Elements times k that a multiprocessor did in a nanosecond, or None where the shape does not tell."""
    settings, tile = case["settings"], case["tile"]
    tiles = math.ceil(settings["m"] / tile[0]) * math.ceil(settings["n"] / tile[1])
    rounds = math.ceil(tiles / case["multiprocessors"])
    if rounds < ROUNDS_LEAST or case["splits"] > 1:
        return None
    return rounds * tile[0] * tile[1] * settings["k"] / case["nanoseconds"]


def timed(reports, shipped=True):
    """The cases with times: those of kernels that ship, or of tiles for tuning."""
    for report in reports:
        for case in report["cases"]:
            if case.get("nanoseconds") and shipped == (not case.get("variant")):
                yield case


def call_of(case):
    settings = case["settings"]
    return case["function"], settings["m"], settings["n"], settings["k"]


def text_of(call):
    return f"{call[0]} m={call[1]} n={call[2]} k={call[3]}"


def rates_of(reports, sources):
    """{source: {kernel: rate}}"""
    speeds = collections.defaultdict(lambda: collections.defaultdict(list))
    for case in timed(reports):
        source = source_of(sources, operator_of(case["function"]), case["image"])
        speed = speed_of(case) if source and case["tile"] else None
        if speed:
            speeds[source][kernel_of(case)].append(speed)
    rates = {}
    for source, kernels in speeds.items():
        medians = {kernel: statistics.median(all_of_it) for kernel, all_of_it in kernels.items()}
        fastest = max(medians.values())
        rates[source] = {kernel: max(1, round(100 * speed / fastest)) for kernel, speed in medians.items()}
    return rates


def shape_rows(text):
    """(kernel, rate, span of the rate) of each row."""
    for row in re.finditer(r"^KILN_SHAPE\((\w+),[^)]*, (\d+)\)$", text, re.MULTILINE):
        yield row[1], int(row[2]), row.span(2)


def apply(source, rates, write):
    text = source.read_text()
    for kernel, old, (begin, end) in reversed(list(shape_rows(text))):
        if kernel not in rates:
            continue
        print(f"| {source.name} | {kernel} | {old} | {rates[kernel]} |")
        text = text[:begin] + str(rates[kernel]) + text[end:]
    if write:
        source.write_text(text)


def choices(reports):
    """Of each function and shape: the time of the kernel that a call takes over that of the fastest."""
    calls = collections.defaultdict(dict)
    for case in timed(reports):
        calls[call_of(case)][case["kernel"]] = case
    for call, kernels in calls.items():
        taken = next(iter(kernels.values()))["automatic"]
        if len(kernels) > 1 and taken in kernels:
            fastest = min(kernels.values(), key=lambda case: case["nanoseconds"])
            yield call, taken, fastest["kernel"], kernels[taken]["nanoseconds"] / fastest["nanoseconds"]


def gains(reports):
    """{(variant, kernel, tile): [(its time over that of the fastest kernel that ships, call, that kernel)]}"""
    fastest = {}
    for case in timed(reports):
        call = call_of(case)
        if call not in fastest or case["nanoseconds"] < fastest[call]["nanoseconds"]:
            fastest[call] = case
    found = collections.defaultdict(list)
    for case in timed(reports, shipped=False):
        shipped = fastest.get(call_of(case))
        if shipped:
            name = case["variant"], kernel_of(case), " x ".join(str(size) for size in case["tile"])
            found[name].append((case["nanoseconds"] / shipped["nanoseconds"], call_of(case), shipped["kernel"]))
    return found


def print_gains(found):
    print("\n| for tuning | kernel | tile | calls | faster than all that ship | median time over theirs |\n|---|---|---|---|---|---|")
    for (variant, kernel, tile), times in sorted(found.items()):
        faster = sum(ratio < 1 for ratio, _, _ in times)
        print(f"| {variant} | {kernel} | {tile} | {len(times)} | {faster} | {statistics.median(row[0] for row in times):.2f} |")
    best = sorted((ratio, name, call, shipped) for name, times in found.items() for ratio, call, shipped in times)
    for ratio, (variant, kernel, tile), call, shipped in best[:20]:
        if ratio < 0.98:
            print(f"{text_of(call)}: {kernel} of {variant}, {tile}, takes {ratio:.2f} of {shipped}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sources", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "kernels")
    arguments = parser.parse_args()
    reports = [json.loads(pathlib.Path(path).read_text()) for path in arguments.files]
    rates = rates_of(reports, arguments.sources)
    if not rates:
        sys.exit("tuning.py: no case has a time and the shape for a rate")
    print("| source | kernel | rate | measured |\n|---|---|---|---|")
    for source in sorted(rates):
        apply(source, rates[source], arguments.write)
    losses = list(choices(reports))
    right = sum(taken == fastest for _, taken, fastest, _ in losses)
    print(f"\nThe kernel taken is the fastest in {right} of {len(losses)} calls.")
    for call, taken, fastest, loss in sorted(losses, key=lambda row: -row[3])[:10]:
        if loss > 1.02:
            print(f"{text_of(call)}: {taken} takes {loss:.2f} of {fastest}")
    tiles = gains(reports)
    if tiles:
        print_gains(tiles)


if __name__ == "__main__":
    main()
