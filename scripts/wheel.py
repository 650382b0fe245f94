#!/usr/bin/env python3
"""Writes kiln's wheel: wheel.py FOLDER VERSION LIBRARY OBJECT...

The package of loader/bindings/python with its type stubs, the shared library and other shared objects in it, for any
Python 3 on their platform, whose glibc is the newest that a symbol of theirs asks for. The same inputs give the same bytes.
"""
import base64
import hashlib
import platform
import re
import sys
import zipfile
from pathlib import Path

import stubs

SOURCES = Path(__file__).parent.parent / "loader/bindings/python/kiln"
LICENSE = Path(__file__).parent.parent / "LICENSE"


def platform_tag(objects: list[bytes]) -> str:
    versions = [tuple(map(int, found)) for data in objects for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", data)]
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def main() -> None:
    folder, version, library = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    objects = {path.name: path.read_bytes() for path in map(Path, sys.argv[3:])}
    tag = f"py3-none-{platform_tag(list(objects.values()))}"
    info = f"kiln-{version}.dist-info"
    files = {f"kiln/{source.relative_to(SOURCES).as_posix()}": source.read_bytes()
             for source in sorted(SOURCES.rglob("*.py"))}
    files |= {f"kiln/{name}": text.encode() for name, text in stubs.files(library.resolve()).items()}
    files |= {f"kiln/{name}": data for name, data in objects.items()}
    files[f"{info}/licenses/LICENSE"] = LICENSE.read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.4\nName: kiln\nVersion: {version}\n"
        "Summary: LLM-inference operators for NVIDIA GPUs, AMD GPUs and the CPU, without a toolkit\n"
        "Requires-Python: >=3.10\nLicense-Expression: MIT\nLicense-File: LICENSE\n").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: kiln\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"kiln-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if Path(name).name in objects else 0o644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    print(wheel)


main()
