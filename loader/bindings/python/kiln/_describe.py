"""The operators as the library describes them (ops.h: kiln_operator): a new one appears here by itself."""
import ctypes
from dataclasses import dataclass
from functools import cached_property

from kiln._library import check, lib

INPUT, OUTPUT, UPDATE, SIZE, STRIDE, OPTION, INTEGER, REAL, WORKSPACE, WORKSPACE_SIZE = range(10)
TENSORS = (INPUT, OUTPUT, UPDATE)


class _Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("role", ctypes.c_int), ("offset", ctypes.c_uint32),
                ("size", ctypes.c_uint32), ("optional", ctypes.c_uint32), ("dtype", ctypes.c_char_p),
                ("shape", ctypes.c_char_p), ("choices", ctypes.c_char_p), ("typical", ctypes.c_int64),
                ("text", ctypes.c_char_p), ("instead", ctypes.c_char_p), ("follows", ctypes.c_char_p),
                ("integers", ctypes.c_char_p), ("reserved", ctypes.c_void_p)]


class _Function(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("part", ctypes.c_char_p), ("call", ctypes.c_void_p),
                ("workspace_size", ctypes.c_void_p), ("reserved", ctypes.c_void_p * 2)]


class _Operator(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("summary", ctypes.c_char_p), ("bundle", ctypes.c_void_p),
                ("fields", ctypes.POINTER(_Field)), ("functions", ctypes.POINTER(_Function)),
                ("field_count", ctypes.c_uint32), ("function_count", ctypes.c_uint32),
                ("params_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


@dataclass(frozen=True)
class Term:
    """A dimension: factor * size + more, or a size divided by a number or by a field, which says 0 for the size.
    Where an option is named, its choice's number is added to the factor."""

    factor: int
    size: str
    more: int
    divisor: str = ""
    option: str = ""

    @property
    def plain(self) -> bool:
        return self.factor == 1 and not self.more and not self.divisor


def _term(text: str) -> Term:
    factor, _, rest = text.rpartition("*")
    rest, _, divisor = rest.partition("/")
    size, _, more = rest.partition("+")
    number = not factor or factor.isdecimal()
    return Term(int(factor or 1) if number else 1, size, int(more or 0), divisor, "" if number else factor)


@dataclass(frozen=True)
class Field:
    name: str
    role: int
    offset: int
    optional: bool
    dtype: str
    shape: str
    choices: tuple[str, ...]
    text: str
    instead: str
    terms: tuple[list[Term], list[Term]]  # the shape's, and what it is otherwise:
    by: str  # the option that decides it by its first choice; "": it is otherwise where an optional input is left out


_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_WORKSPACE_SIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class Operator:
    def __init__(self, raw: _Operator) -> None:
        self.name = raw.name.decode()
        self.summary = raw.summary.decode()
        self.params_size = raw.params_size
        self.fields = [_field(raw.fields[i]) for i in range(raw.field_count)]
        functions = [raw.functions[i] for i in range(raw.function_count)]
        self.calls = {f.part.decode(): _CALL(f.call) for f in functions}
        self.workspace_sizes = {f.part.decode(): _WORKSPACE_SIZE(f.workspace_size) for f in functions if f.workspace_size}

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @cached_property
    def tensors(self) -> list[Field]:
        return [field for field in self.fields if field.role in TENSORS]

    @cached_property
    def inputs(self) -> list[Field]:
        """The positional arguments of a call: tensors that must be given."""
        return [field for field in self.tensors if field.role != OUTPUT and not field.optional]

    @cached_property
    def optional_inputs(self) -> list[Field]:
        return [field for field in self.fields if field.role == INPUT and field.optional]

    @cached_property
    def named_sizes(self) -> list[Field]:
        """Sizes that no array has which must be given: of outputs, as top_k's k, and shapeless ones."""
        given = {term.size for field in self.inputs for terms in field.terms for term in terms}
        made = {term.size for field in self.tensors if field.role == OUTPUT for terms in field.terms for term in terms}
        named = made - given | {field.name for field in self.shapeless_sizes}
        return [field for field in self.fields if field.role == SIZE and field.name in named and not field.shape]

    @cached_property
    def shapeless_sizes(self) -> list[Field]:
        """Sizes that no array has: gemm_nvfp4's k, since its codes have columns of padding."""
        shaped = {term.size for field in self.tensors for terms in field.terms for term in terms}
        return [field for field in self.fields if field.role == SIZE and field.name not in shaped and not field.shape]

    @cached_property
    def options(self) -> list[Field]:
        """What a call takes by name: all but what follows from the arrays."""
        follow = (SIZE, STRIDE, WORKSPACE, WORKSPACE_SIZE)
        named = [field for field in self.fields if field.role not in follow or field in self.named_sizes]
        return named if any(field.dtype == "part" for field in self.inputs) else [*named, self.precision]

    @cached_property
    def may_have_precision(self) -> list[Field]:
        """Tensors of the precision or of another type, as an option says: a cache, which may have codes instead."""
        return [field for field in self.tensors if field.dtype in self.by_name and "part" in self.by_name[field.dtype].choices]

    @cached_property
    def precision(self) -> Field:
        """What a call takes where no array that must be given has the precision; no field of the struct."""
        return Field("precision", OPTION, 0, True, "", "", tuple(self.calls), "of the result, where no array has it", "",
                     ([], []), "")


def _field(raw: _Field) -> Field:
    shape = raw.shape.decode()
    by, _, shapes = shape.rpartition(":")
    first, _, second = shapes.partition("|")
    terms = tuple([_term(text) for text in dimensions.split(",")] for dimensions in (first, second or first))
    return Field(raw.name.decode(), raw.role, raw.offset, bool(raw.optional), raw.dtype.decode(), shape,
                 tuple(raw.choices.decode().split(",")) if raw.choices else (), raw.text.decode(),
                 raw.instead.decode() if raw.instead else "", terms, by)


def operators() -> list[Operator]:
    table, count = ctypes.POINTER(ctypes.POINTER(_Operator))(), ctypes.c_size_t()
    check(lib.kiln_all_operators(ctypes.byref(table), ctypes.byref(count)))
    return [Operator(table[i].contents) for i in range(count.value)]
