#!/usr/bin/env python3
"""Times kiln's operators on an NVIDIA GPU as replays of CUDA graphs, in one process with what they are held against: PyTorch's
call on the same tensors (cuBLAS, cuDNN, scaled_dot_product_attention), copies and reads of the same device.

    scripts/bench_graphs.py [--only WORD,...] [--tiles] [--out FILE.json] [--seconds 500] [--anew] [--dry-run]

Needs PyTorch with CUDA, and the package kiln (PYTHONPATH=loader/bindings/python KILN_LIBRARY=build/libkiln.so.0 uses what was
built here). Each case is first compared with PyTorch in f32 where that can be done. A graph holds many calls, over buffers that
together exceed the L2 cache unless the case says warm; the time is the median of its replays, kiln's and the peers' in turn.
Results are written after every case, and a case that the report has already is not measured again: a run that was cut short, or
ended after its seconds, goes on where it stopped. --dry-run calls everything once, small, on the CPU, without times."""
import argparse
import itertools
import statistics
import sys
import time

import torch

sys.dont_write_bytecode = True  # beside the sources
import bench_cases
import kiln
from gpu_report import Failed, Progress, add_options, identity_of, nvidia_smi, open_report, write_report

COLD, ROUNDS, REST = 200 << 20, 5, 0.01
TARGET = 4e-3  # seconds of one graph


def nbytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


# ---- Time


def graph_of(call, sets, calls):
    for s in sets[:2]:
        call(*s)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for s in itertools.islice(itertools.cycle(sets), calls):
            call(*s)
    return graph


def once(call, s):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call(*s)
    start.record()
    call(*s)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def replay(graph, calls):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / calls


def times_of(functions, sets):
    """{name: seconds a call}, the functions in turn."""
    graphs, found = {}, {}
    for name, call in functions.items():
        try:
            calls = max(2, min(40, int(TARGET / max(once(call, sets[0]), 1e-6))))
            graphs[name] = graph_of(call, sets, calls), calls
        except Exception as error:
            torch.cuda.synchronize()
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    samples = {name: [] for name in graphs}
    for r in range(ROUNDS + 1):
        for name, (graph, calls) in graphs.items():
            time.sleep(REST)
            t = replay(graph, calls)
            if r:
                samples[name].append(t)
    found.update({name: statistics.median(s) for name, s in samples.items()})
    return found


def sustained(call, s, seconds):
    calls = max(1, int(0.02 / once(call, s)))
    graph = graph_of(call, [s], calls)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    replays = max(1, int(seconds / (0.02)))
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / calls / replays


# ---- The run


def copies():
    x = torch.empty(512 << 20, device="cuda", dtype=torch.uint8)
    y = torch.empty_like(x)
    found = times_of({"torch copy": lambda x, y: y.copy_(x)}, [(x, y)])
    return {"torch_copy_bytes_per_second": 2 * x.numel() / found["torch copy"]}


def measure(case, dry):
    first = case.sets()
    sets = [first]
    if not dry:
        size = nbytes(first) + sum(nbytes(t.values()) for t in first if isinstance(t, dict))
        free = torch.cuda.mem_get_info()[0]
        many = 1 if case.warm else max(1, min(64, -(-COLD // max(size, 1)), int(free * 0.4 / max(size, 1))))
        if "w4a16" in case.name:  # packed on the host
            sets += [tuple(t.clone() if isinstance(t, torch.Tensor) else t for t in first) for _ in range(many - 1)]
        else:
            sets += [case.sets() for _ in range(many - 1)]
    row = {"name": case.name, "moved": case.moved, "operations": case.operations, "sets": len(sets)}
    case.kiln(*first)
    if case.check:
        if not dry:
            torch.cuda.synchronize()
        row["error"], row["bound"] = case.check(*first), case.bound
        row["right"] = row["error"] <= case.bound
    if dry:
        return row
    found = times_of({"kiln": case.kiln, **case.peers}, sets)
    row["seconds"] = found
    if case.sustained:
        row["sustained"] = {name: sustained(call, first, case.sustained) for name, call in {"kiln": case.kiln, **case.peers}.items()}
    return row


def line(row):
    out = f"{row['name']:58s}"
    if "error" in row:
        out += f" err {row['error']:.1e}{'' if row['right'] else ' WRONG'}"
    seconds = row.get("seconds")
    if seconds:
        mine = seconds["kiln"]
        if not isinstance(mine, float):
            return f"{out} {mine}"
        out += f" {mine * 1e6:9.2f} us"
        if row["operations"]:
            out += f" {row['operations'] / mine / 1e12:7.1f} T"
        out += f" {row['moved'] / mine / 1e9:6.0f} GB/s"
        for name, t in seconds.items():
            if name != "kiln":
                out += f" | {name} {t * 1e6:.2f} ({t / mine:.3f})" if isinstance(t, float) else f" | {name} {t[:60]}"
        if "sustained" in row:
            s = row["sustained"]
            out += " | sustained " + ", ".join(f"{n} {row['operations'] / t / 1e12:.0f} T" for n, t in s.items())
    return out


def clocks():
    return nvidia_smi("cuda:0", "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu")


def begin(arguments):
    """The report of the runs before, or a new one; that of a dry run is not kept."""
    if arguments.dry_run:
        return {"rows": []}
    device = {"device": "cuda:0", "name": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda} of PyTorch"}
    identity = identity_of("bench_graphs.py", kiln._library.lib._name, device, torch=torch.__version__, tiles=arguments.tiles)
    report = open_report(arguments.out, identity, ["rows"], arguments.anew)
    if "before" not in report:
        report.update({"before": clocks(), **copies()})
    return report


def measured(case, dry):
    try:
        return measure(case, dry)
    except Exception as error:
        return {"name": case.name, "failed": f"{type(error).__name__}: {error}"[:400]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases with one of these words, between commas, in their names")
    parser.add_argument("--tiles", action="store_true")
    add_options(parser, 500, "graphs.json")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    dry = bench_cases.dry = arguments.dry_run
    bench_cases.device = "cpu" if dry else "cuda"
    torch.manual_seed(int(time.time()))
    print(f"seed {torch.initial_seed()}")
    progress = Progress(arguments.seconds)
    try:
        report = begin(arguments)
    except Failed as failure:
        sys.exit(f"bench_graphs.py: {failure}")
    words, done = [w for w in arguments.only.split(",") if w], {row["name"] for row in report["rows"]}
    if not dry:
        print(report["before"], {k: round(v / 1e9) for k, v in report.items() if k.endswith("second")}, flush=True)
    with torch.inference_mode():
        for case in bench_cases.tile_cases() if arguments.tiles else bench_cases.cases():
            if words and not any(w in case.name for w in words) or case.name in done or not progress.begins():
                continue
            row = {**measured(case, dry), "seed": torch.initial_seed()}
            report["rows"].append(row)
            print(f"{row['name']:58s} FAILED {row['failed']}" if "failed" in row else line(row), flush=True)
            if not dry:
                report["after"] = clocks() if len(report["rows"]) % 20 == 0 else report.get("after")
                write_report(arguments.out, report)
    wrong = [r["name"] for r in report["rows"] if "failed" in r or r.get("right") is False]
    print(f"{len(report['rows'])} cases, {len(wrong)} failed or wrong: {wrong}")
    print(progress.text(None if dry else arguments.out))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
