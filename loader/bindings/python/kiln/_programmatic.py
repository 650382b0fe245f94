"""Kernels that start before those in front of them have ended."""
from contextlib import contextmanager
from typing import Iterator

from kiln import _device
from kiln._plan import _fast


def _set(on: bool) -> None:
    _device.thread.programmatic = on
    if _fast:
        _fast.programmatic(on)


@contextmanager
def programmatic(on: bool = True) -> Iterator[None]:
    """Enables programmatic dependent launch for the calls of this thread meanwhile: ``with kiln.programmatic(): ...``.

    A kernel may then start before the one in front of it on the stream has ended, which hides the latency of a launch;
    results do not change. On a device that does not have it, CUDA's from sm_90 on, a call raises UnsupportedError.
    """
    before = _device.thread.programmatic
    _set(on)
    try:
        yield
    finally:
        _set(before)
