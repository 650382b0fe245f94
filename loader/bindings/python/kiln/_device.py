"""Devices and streams. Devices are opened at first use and stay open; streams are the frameworks' own, borrowed."""
import ctypes
import threading

from kiln._library import check, lib

BACKENDS = {"any": 0, "cuda": 1, "rocm": 2, "cpu": 3}


class _Options(ctypes.Structure):
    """kiln_device_options: what is not passed is zero."""

    _fields_ = [("backend", ctypes.c_int), ("ordinal", ctypes.c_int32), ("require_gpu", ctypes.c_int32),
                ("allow_amx", ctypes.c_int32), ("context", ctypes.c_void_p), ("cpu_level", ctypes.c_char_p),
                ("threads", ctypes.c_int32), ("take_faults", ctypes.c_int32), ("parallel_for", ctypes.c_void_p),
                ("parallel_user", ctypes.c_void_p), ("id", ctypes.c_char_p)]


class _Stream(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("native", ctypes.c_void_p), ("state", ctypes.c_void_p)]
    programmatic = False


class _Thread(threading.local):
    """What a thread has asked for: ``kiln.programmatic()``."""

    programmatic = False


thread = _Thread()


class Device:
    """A device of kiln's. Get one from ``device()``: each is opened once, for the life of the process."""

    def __init__(self, backend: str, ordinal: int, id: str | None) -> None:
        if backend not in BACKENDS:
            raise ValueError(f"backend is {backend!r}: must be one of {', '.join(BACKENDS)}")
        options = _Options(backend=BACKENDS[backend], ordinal=ordinal, id=id.encode() if id is not None else None)
        handle = ctypes.c_void_p()
        check(lib.kiln_device_open_sized(ctypes.byref(options), ctypes.sizeof(options), ctypes.byref(handle)))
        self.handle = handle
        info = (ctypes.c_int32 * 1024)()  # more than kiln_device_info has, which begins with these two
        check(lib.kiln_device_get_info(handle, info))
        self.backend = next(name for name, number in BACKENDS.items() if number == info[0])
        self.ordinal = info[1]
        self._threads = threading.local()

    @property
    def selection_log(self) -> str:
        """Why each backend was chosen or left."""
        return lib.kiln_device_selection_log(self.handle).decode()

    def stream(self, native: int) -> _Stream:
        """The stream that is the framework's `native` one; the CPU has one for each thread."""
        streams = self._threads.__dict__.setdefault("streams", {})
        if native not in streams:
            stream = _Stream()
            check(lib.kiln_stream_borrow(self.handle, native or None, ctypes.byref(stream)))
            streams[native] = stream
        stream = streams[native]
        if stream.programmatic != thread.programmatic:
            check(lib.kiln_stream_set_programmatic(ctypes.byref(stream), thread.programmatic))
            stream.programmatic = thread.programmatic
        return stream

    def __repr__(self) -> str:
        return f"kiln.Device({self.backend}:{self.ordinal})"


_devices: dict[tuple[str, int, str | None], Device] = {}
_lock = threading.Lock()


def device(backend: str = "any", ordinal: int = 0, id: str | None = None) -> Device:
    """The device of a backend: "cuda", "rocm", "cpu", or "any" for the best there is; or the GPU whose UUID or PCI
    address is `id`, as ``str(torch.cuda.get_device_properties(0).uuid)`` or ``nvidia-smi -L`` writes it."""
    with _lock:
        found = _devices.get((backend, ordinal, id))
        if not found:
            opened = Device(backend, ordinal, id)
            found = _devices.setdefault((opened.backend, opened.ordinal, None), opened)
            _devices[backend, ordinal, id] = found
        return found
