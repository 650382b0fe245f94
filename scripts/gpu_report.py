"""The report of a measurement that several runs make together: each goes on where the one before stopped, on the same device,
by the same driver and with the same build."""
import hashlib
import json
import os
import pathlib
import subprocess
import time

WAYS_OUT = "--anew starts anew, another --out leaves it as it is"


class Failed(Exception):
    pass


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def device_of(kiln, name):
    devices = json.loads(run(kiln, "info", "--json"))["devices"]
    for device in devices:
        if device["device"] == name:
            return device
    raise Failed(f"there is no device {name}: " + ", ".join(device["device"] for device in devices))


def nvidia_smi(device, fields):
    """What it says of a device, now: {field: text}; nothing where it is not there."""
    if not device.startswith("cuda"):
        return {}
    try:
        line = run("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", device.partition(":")[2] or "0")
    except (Failed, OSError):
        return {}
    return dict(zip(fields.split(","), (value.strip() for value in line.split(","))))


def hash_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def identity_of(by, program, device, **more):
    """What must be the same in all runs that make a report: who writes it, the device and its driver, and the build, which
    the SHA-256 of the program that is measured stands for."""
    version = nvidia_smi(device["device"], "driver_version").get("driver_version")
    return {"by": by, "device": device["name"], "driver": device["driver"] + (f", {version}" if version else ""),
            "build": hash_of(program), **more}


def open_report(path, identity, lists, anew):
    """The report in the file if there is one, else a new one, in which each of `lists` is empty."""
    if anew or not path or not os.path.exists(path):
        return {"of": identity, **{name: [] for name in lists}}
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except ValueError as error:
        raise Failed(f"{path} is not JSON: {error}; {WAYS_OUT}") from None
    found = report.get("of") if isinstance(report, dict) else None
    if not isinstance(found, dict) or any(not isinstance(report.get(name), list) for name in lists):
        raise Failed(f"{path} is no report of {identity['by']}; {WAYS_OUT}")
    for name, value in identity.items():
        if found.get(name) != value:
            raise Failed(f"{path}: {name} is {found.get(name)!r}, now it is {value!r}; {WAYS_OUT}")
    return report


def write_report(path, report):
    """All of it, or nothing. Without a path it is not kept."""
    if not path:
        return
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1, default=str)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def add_options(parser, seconds, out):
    parser.add_argument("--out", default=out, help="the report, a JSON file")
    parser.add_argument("--seconds", type=float, default=seconds, help="begin nothing after so many; the next run goes on")
    parser.add_argument("--anew", action="store_true", help="forget what the report has")


class Progress:
    """Which of the work is to be done now: what was not, as long as there is time."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.fresh = self.left = 0

    def begins(self):
        late = time.monotonic() > self.end
        self.left += late
        self.fresh += not late
        return not late

    def text(self, path):
        left = f", {self.left} left: the same command goes on" if self.left else ", none left"
        return f"{path or 'no report'}: {self.fresh} case{'s' * (self.fresh != 1)} measured{left}"
