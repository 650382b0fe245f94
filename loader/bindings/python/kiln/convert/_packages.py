"""Packages that not every user needs."""
from importlib import import_module
from typing import Any


def package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        missing = name.partition(".")[0] if error.name is None else error.name.partition(".")[0]
        raise ImportError(f"kiln.convert needs {missing}: pip install {missing}", name=missing) from None
