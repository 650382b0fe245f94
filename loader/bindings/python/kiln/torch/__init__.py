"""kiln for PyTorch: its operators as PyTorch's own, and models of Hugging Face's that run on them.

>>> import kiln.torch, torch
>>> torch.ops.kiln.softmax(torch.ones(2, 4))
>>> kiln.torch.patch(model)
"""
from typing import Any

from kiln.torch._operators import names
from kiln.torch._operators import namespace as _namespace
from kiln.torch._patch import patch

__all__ = ["patch", *names]


def __getattr__(name: str) -> Any:
    if name in names:
        return getattr(_namespace, name)
    raise AttributeError(f"kiln.torch has no {name!r}")
