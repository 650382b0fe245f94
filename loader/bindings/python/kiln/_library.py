"""The shared library: its functions, and its statuses as exceptions."""
import ctypes
import os
from pathlib import Path

NAME = "libkiln.so.0"


class Error(RuntimeError):
    """A call of kiln's that failed. ``status`` is the kiln_status; the text is kiln_last_error()'s."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


# The class of each status, in the order of kiln_status after KILN_OK.
_CLASSES = [type(name, (Error,), {"__module__": "kiln", "__doc__": f"KILN_ERROR_{status}."}) for name, status in (
    ("InvalidArgumentError", "INVALID_ARGUMENT"), ("OutOfMemoryError", "OUT_OF_MEMORY"), ("NotFoundError", "NOT_FOUND"),
    ("NoDriverError", "NO_DRIVER"), ("NoImageError", "NO_IMAGE"), ("CorruptImageError", "CORRUPT_IMAGE"),
    ("UnsupportedError", "UNSUPPORTED"), ("DriverTooOldError", "DRIVER_TOO_OLD"), ("DriverError", "DRIVER"),
    ("ForkedError", "FORKED"), ("CapturingError", "CAPTURING"), ("DeviceLostError", "DEVICE_LOST"))]
errors = {error.__name__: error for error in _CLASSES}
InvalidArgument = errors["InvalidArgumentError"]


def _load() -> ctypes.CDLL:
    """KILN_LIBRARY names another library than the one beside this file."""
    path = os.environ.get("KILN_LIBRARY") or Path(__file__).with_name(NAME)
    return ctypes.CDLL(str(path))


lib = _load()
for _name, _result, _arguments in (
    ("kiln_version", ctypes.c_uint32, ()),
    ("kiln_last_error", ctypes.c_char_p, ()),
    ("kiln_status_text", ctypes.c_char_p, (ctypes.c_int,)),
    ("kiln_all_operators", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_device_open_sized", ctypes.c_int, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)),
    ("kiln_device_get_info", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_device_selection_log", ctypes.c_char_p, (ctypes.c_void_p,)),
    ("kiln_stream_borrow", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_stream_set_programmatic", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int32)),
    ("kiln_stream_sync", ctypes.c_int, (ctypes.c_void_p,)),
    ("kiln_event_create", ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)),
    ("kiln_event_destroy", None, (ctypes.c_void_p,)),
    ("kiln_event_record", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_event_sync", ctypes.c_int, (ctypes.c_void_p,)),
    ("kiln_event_elapsed", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_trace_start", ctypes.c_int, (ctypes.c_void_p, ctypes.c_size_t)),
    ("kiln_trace_stop", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_memory_alloc", ctypes.c_int, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)),
    ("kiln_memory_free", None, (ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_w4a16_from_awq", ctypes.c_int, (*[ctypes.c_void_p] * 4, ctypes.c_int)),
    ("kiln_w4a16_from_gptq", ctypes.c_int, (*[ctypes.c_void_p] * 4, ctypes.c_int, ctypes.c_void_p)),
    ("kiln_w4a16_from_q4_0", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_w4a16_from_q4_1", ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)),
    ("kiln_w4a16_layout_find", ctypes.c_int, (ctypes.c_char_p, ctypes.c_void_p)),
    ("kiln_w4a16_repack", ctypes.c_int, (ctypes.c_int, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2)),
    ("kiln_w4a16_unpack", ctypes.c_int, (ctypes.c_int, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2)),
):
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments


def check(status: int) -> None:
    if status:
        text = lib.kiln_last_error() or lib.kiln_status_text(status)
        error = _CLASSES[status - 1] if status <= len(_CLASSES) else Error
        raise error(status, text.decode(errors="replace"))


def version() -> str:
    number = lib.kiln_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
