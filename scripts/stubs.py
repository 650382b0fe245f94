"""The type stubs of the Python package, from what a library says of its operators: files(LIBRARY)."""
import ast
import os
import sys
from pathlib import Path

PACKAGES = Path(__file__).parent.parent / "loader/bindings/python"


def _annotation(field, describe) -> str:
    if field.role in describe.TENSORS:
        array = "_Array" if field.dtype == "part" else "Any"
        if field.role == describe.OUTPUT and field.optional:
            return f"{array} | Literal[True] | None"
        return f"{array} | None" if field.optional or field.role == describe.OUTPUT else array
    if field.role == describe.OPTION:
        return f"Literal[{', '.join(repr(choice) for choice in field.choices)}] | int | None"
    return "int | None" if field.role in (describe.INTEGER, describe.SIZE) else "float | None"


def _result(operator, describe) -> str:
    outputs = ["_Array" if field.dtype == "part" else "Any" for field in operator.tensors
               if field.role == describe.OUTPUT and not field.optional]
    return "None" if not outputs else outputs[0] if len(outputs) == 1 else f"tuple[{', '.join(outputs)}]"


def _definition(operator, fields, result: str, describe, text: str) -> list[str]:
    by_place = [f"    {field.name}: {_annotation(field, describe)}," for field in operator.inputs]
    by_name = [f"    {field.name}: {_annotation(field, describe)} = None," for field in fields]
    body = [f") -> {result}:", f'    """{text}"""']
    return [f"def {operator.name}(", *by_place, *(["    *,", *by_name] if by_name else []), *body]


def _functions(operator, describe) -> list[str]:
    """The operator's function, in two forms where an optional output makes the result another one."""
    from kiln import ops
    text = getattr(ops, operator.name).__doc__.replace("\n", "\n    ").replace("\n    \n", "\n\n")
    named = [field for field in operator.options if field not in operator.inputs]
    asked = [field for field in named if field.role == describe.OUTPUT and field.optional]
    result = _result(operator, describe)
    aliases = [f"{operator.name}_{part} = {operator.name}" for part in operator.calls]
    if not asked:
        return [*_definition(operator, named, result, describe, text), *aliases]
    plain = [field for field in named if field not in asked]
    return ["@overload", *_definition(operator, plain, result, describe, text),
            "@overload", *_definition(operator, named, "Any", describe, text), *aliases]


def files(library: Path) -> dict[str, str]:
    """The stubs' names in the package, and their texts."""
    os.environ["KILN_LIBRARY"] = str(library)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(PACKAGES))
    from kiln import _describe as describe
    from kiln._library import errors
    functions = [line for operator in describe.operators() for line in ("", *_functions(operator, describe))]
    ops = ["from typing import Any, Literal, TypeVar, overload", "", '_Array = TypeVar("_Array")', "__all__: list[str]",
           *functions]

    source = (PACKAGES / "kiln/__init__.py").read_text()
    imports = [f"from {node.module} import {', '.join(f'{name.name} as {name.name}' for name in node.names)}"
               for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
    classes = [f"class {name}(Error): ..." for name in errors]
    package = [*imports, "", "__version__: str", "", *classes]
    return {"ops.pyi": "\n".join(ops) + "\n", "__init__.pyi": "\n".join(package) + "\n", "py.typed": ""}
