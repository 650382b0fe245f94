"""Every launch, copy and load of a device, on a timeline."""
import ctypes
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from kiln._device import Device, device
from kiln._library import check, lib

_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FORMATS = {".json": 0, ".txt": 1}  # kiln_trace_format


@contextmanager
def trace(path: str | Path, place: Device | None = None, capacity: int = 0) -> Iterator[None]:
    """Writes what a device did meanwhile to a file: ``with kiln.trace("calls.json"): ...``.

    A .json file is for chrome://tracing or Perfetto, a .txt file for people. `place` is the device, without it the best
    there is; at most `capacity` records are kept, 0: 65536.
    """
    suffix = Path(path).suffix
    if suffix not in _FORMATS:
        raise ValueError(f"trace: path is {str(path)!r}: must end in {' or '.join(_FORMATS)}")
    place = place or device()
    with open(path, "wb") as file:
        check(lib.kiln_trace_start(place.handle, capacity))
        try:
            yield
        finally:
            failures: list[OSError] = []

            def write(user: int, data: int, size: int) -> int:
                try:
                    file.write(ctypes.string_at(data, size))
                except OSError as error:
                    failures.append(error)
                return len(failures)

            status = lib.kiln_trace_stop(place.handle, _FORMATS[suffix], _WRITE(write), None)
            if failures:
                raise failures[0]
            check(status)
