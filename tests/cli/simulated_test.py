"""`kiln run` on every simulated device gives the files that it gives on the CPU; `kiln bench` there counts.

    simulated_test.py KILN SIM FOLDER DEVICE...     prints TAP; SIM is the folder of the simulated drivers

Inputs are random (the seed is printed), with an odd number of columns."""

import json
import os
import random
import subprocess
import sys

import numpy as np

# Both results are within their operator's error of the true one: twice that, (relative, absolute).
TOLERANCES = {"f32": (8e-6, 4e-6), "f16": (2.0**-9, 2e-6), "bf16": (2.0**-6, 2e-6)}
CASES = [("softmax", {"x": (3, 5, 129)}, []), ("add_gelu", {"x": (3, 5, 129), "bias": (129,)}, ["approx=tanh"])]
ELEMENT = {"f32": 4, "f16": 2, "bf16": 2}


def backend(device):
    return "cuda:0" if device.startswith("sm_") else "rocm:0"


def kiln(settings, device, *arguments):
    """Runs the program, with one simulated device or none, and nothing else changed."""
    environment = dict(os.environ)
    if device:
        environment |= {"KILN_SIM_DEVICES": device, "LD_LIBRARY_PATH": settings["sim"]}
    return subprocess.run([settings["kiln"], *arguments], capture_output=True, text=True, timeout=120, env=environment)


def as_float(array, part):
    if part == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def encode(values, part):
    if part == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float32 if part == "f32" else np.float16)


def same_file(settings, device, case, part):
    operator, shapes, options = case
    folder = settings["folder"]
    arguments = []
    for name, shape in shapes.items():
        np.save(f"{folder}/{name}.npy", encode(settings["generator"].standard_normal(shape) * 3, part))
        arguments += ["--in", f"{name}={folder}/{name}.npy"]
    for option in options:
        arguments += ["--set", option]
    results = []
    for simulated, place in ((None, "cpu"), (device, backend(device))):
        ran = kiln(settings, simulated, "run", f"{operator}_{part}", *arguments, "--device", place, "--out",
                   f"y={folder}/y.npy")
        if ran.returncode != 0 or "sim:" in ran.stderr:
            return f"on {place}: {ran.stderr.strip()}"
        if place not in ran.stdout + ran.stderr:
            return f"it did not say that it ran on {place}: {ran.stdout}"
        results.append(np.load(f"{folder}/y.npy"))
    if results[0].shape != results[1].shape or results[0].dtype != results[1].dtype:
        return f"{results[1].dtype}{results[1].shape}, on the CPU {results[0].dtype}{results[0].shape}"
    expected, got = (as_float(result, part) for result in results)
    relative, absolute = TOLERANCES[part]
    excess = np.abs(got - expected) - (relative * np.abs(expected) + absolute)
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    return None if excess[worst] <= 0 else f"at {worst}: {got[worst]}, on the CPU {expected[worst]}"


def bench_counts(settings, device):
    """Short rows of whole vectors are read once and written once; nothing of time is in the output."""
    arguments = ["bench", "softmax", "--device", backend(device), "--set", "rows=7", "--set", "cols=1008"]
    ran = kiln(settings, device, *arguments, "--json")
    if ran.returncode != 0:
        return ran.stderr.strip()
    bench = json.loads(ran.stdout)
    if bench["simulated"] is not True or len(bench["functions"]) != 3:
        return ran.stdout
    for row in bench["functions"]:
        part = row["function"].split("_")[1]
        wanted = {"elements": 7056, "launches": 1, "global_read_bytes": 7056 * ELEMENT[part],
                  "global_written_bytes": 7056 * ELEMENT[part], "matrix_instructions": 0}
        if {name: row[name] for name in wanted} != wanted or not row["instructions"] > 0:
            return f"{row}"
        if any("_ns" in name or "second" in name for name in row):
            return f"a time: {row}"
    text = kiln(settings, device, *arguments).stdout
    return None if "simulated" in text and "GB/s" not in text else text


def main():
    program, sim, folder, *devices = sys.argv[1:]
    seed = random.randrange(2**32)
    print(f"# seed {seed}")
    settings = {"kiln": program, "sim": sim, "folder": folder, "generator": np.random.default_rng(seed)}
    tests = []
    for device in devices:
        for case in CASES:
            for part in TOLERANCES:
                tests.append((f"{case[0]}_{part} on {device}", same_file, (settings, device, case, part)))
        tests.append((f"kiln bench on {device}", bench_counts, (settings, device)))
    print(f"1..{len(tests)}")
    failures = 0
    for number, (name, test, arguments) in enumerate(tests, 1):
        problem = test(*arguments)
        failures += problem is not None
        print(f"{'ok' if problem is None else 'not ok'} {number} - {name}")
        if problem is not None:
            print("# " + problem.replace("\n", "\n# "))
    return failures != 0


sys.exit(main())
