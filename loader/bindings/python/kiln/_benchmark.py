"""How long calls take, by the device's own clock."""
import ctypes
from dataclasses import dataclass
from statistics import median
from typing import Any, Callable

from kiln._device import device
from kiln._library import check, lib
from kiln._tensor import native_stream, view


@dataclass(frozen=True)
class Timing:
    """What ``benchmark`` found, in seconds."""

    times: tuple[float, ...]  # of each call, in order

    @property
    def median(self) -> float:
        return median(self.times)

    @property
    def low(self) -> float:
        """A tenth of the calls took less."""
        return sorted(self.times)[len(self.times) // 10]

    @property
    def high(self) -> float:
        """A tenth of the calls took more."""
        return sorted(self.times)[-1 - len(self.times) // 10]

    def __str__(self) -> str:
        return (f"{self.median * 1e6:.2f} us, {self.low * 1e6:.2f} to {self.high * 1e6:.2f} in four of five of "
                f"{len(self.times)} calls")


def benchmark(fn: Callable[[], Any], warmup: int = 10, iters: int = 100, like: Any = None) -> Timing:
    """Times `iters` calls of `fn` after `warmup` others.

    An event stands between any two calls on the stream that they use: the current one of the library and the device of
    `like`, an array, or without it of fn's result (of several the first). Where the host is slower than the device the
    times are the host's.
    """
    if warmup < 0 or iters < 1:
        raise ValueError(f"benchmark: warmup is {warmup}, iters is {iters}: must be at least 0 and 1")
    result = None
    for _ in range(warmup):
        result = fn()
    if like is None:
        result = result if warmup else fn()
        like = result[0] if isinstance(result, tuple) else result
        if like is None:
            raise TypeError("benchmark: fn returns nothing: like must be an array on the device that fn uses")
    tensor = view("benchmark: like", like)
    place = device(tensor.backend, tensor.ordinal)
    return Timing(_times(fn, iters, place, place.stream(native_stream(like))))


def _times(fn: Callable[[], Any], iters: int, place: Any, stream: Any) -> tuple[float, ...]:
    events = [ctypes.c_void_p() for _ in range(iters + 1)]
    try:
        for event in events:
            check(lib.kiln_event_create(place.handle, 0, ctypes.byref(event)))
        check(lib.kiln_event_record(events[0], ctypes.byref(stream)))
        for event in events[1:]:
            fn()
            check(lib.kiln_event_record(event, ctypes.byref(stream)))
        check(lib.kiln_event_sync(events[-1]))
        return tuple(_elapsed(start, end) for start, end in zip(events, events[1:]))
    finally:
        for event in events:
            lib.kiln_event_destroy(event)


def _elapsed(start: Any, end: Any) -> float:
    nanoseconds = ctypes.c_double()
    check(lib.kiln_event_elapsed(start, end, ctypes.byref(nanoseconds)))
    return nanoseconds.value * 1e-9
