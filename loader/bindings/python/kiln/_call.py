"""One call: arrays and options in, the params struct filled, the operator called on the arrays' own stream."""
import ctypes
import struct
from dataclasses import replace
from math import prod
from operator import index
from typing import Any

from kiln import _describe as describe
from kiln._describe import Field, Operator, Term
from kiln._device import device
from kiln._library import check
from kiln._tensor import SIZES, Tensor, empty, native_stream, packed, view

_FORMATS = {describe.SIZE: "q", describe.STRIDE: "q", describe.OPTION: "i", describe.INTEGER: "q", describe.REAL: "f"}


class Call:
    def __init__(self, operator: Operator, part: str | None, arguments: tuple, options: dict[str, Any]) -> None:
        self.operator = operator
        self.name = f"{operator.name}_{part}" if part else operator.name
        self.part = part
        self.given = self._assign(arguments, options)
        self.arrays: dict[str, Any] = {}
        self.tensors: dict[str, Tensor] = {}
        self.sizes: dict[str, int] = {}
        self.leading: dict[str, tuple[int, ...]] = {}
        self.left_out = False  # an optional input
        self.had: set[str] = set()  # sizes that an array has a dimension for, or that are given
        self.params = bytearray(operator.params_size)

    def run(self) -> Any:
        outputs = self.allocate()
        self.fill()
        self._launch()
        return outputs

    def allocate(self) -> Any:
        """The outputs, before anything is in them: one, several, or None."""
        self._view_inputs()
        self._check_types()
        self._take_sizes()
        outputs = self._outputs()
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    def fill(self) -> None:
        """The struct, all but the workspace."""
        for field in self.operator.fields:
            if field.role in _FORMATS:
                self._put_value(field)
        for field in self.operator.tensors:
            if field.name in self.tensors:
                self._put_tensor(field, self.tensors[field.name])

    view = staticmethod(view)
    empty = staticmethod(empty)

    # ---- What the caller gave

    def _assign(self, arguments: tuple, options: dict[str, Any]) -> dict[str, Any]:
        inputs = self.operator.inputs
        if len(arguments) > len(inputs):
            raise TypeError(f"{self.name} takes {len(inputs)} positional argument{'s' * (len(inputs) != 1)}, not "
                            f"{len(arguments)}")
        given = {field.name: value for field, value in zip(inputs, arguments)}
        known = {field.name for field in self.operator.options}
        for name, value in options.items():
            if name not in known:
                raise TypeError(f"{self.name} has no argument {name!r}; it has {', '.join(sorted(known))}")
            if name in given:
                raise TypeError(f"{self.name}: {name} is given twice")
            if value is not None:
                given[name] = value
        for field in inputs:
            if given.get(field.name) is None:
                raise TypeError(f"{self.name}: {field.name} is missing")
        return given

    def _view_inputs(self) -> None:
        for field in self.operator.tensors:
            array = self.given.get(field.name)
            if array is None or array is True:
                continue
            self.arrays[field.name] = array
            self.tensors[field.name] = self.view(f"{self.name}: {field.name}", array, field.role != describe.INPUT)
        if not self.tensors:
            raise TypeError(f"{self.name}: no array is given")
        if self.part is None or "precision" in self.given:
            wanted = self._precision()
            if self.part not in (None, wanted):
                raise ValueError(f"{self.name}: precision is {wanted}: must be {self.part}, or be left out")
            self.part = wanted
        if self.part not in self.operator.calls:
            raise TypeError(f"{self.name} is for {', '.join(self.operator.calls)}, not for {self.part}")
        self._check_places()

    def _precision(self) -> str:
        if "precision" in self.given:
            return self.operator.precision.choices[self._choice(self.operator.precision, self.given["precision"])]
        for field in self.operator.tensors:
            if field.dtype == "part" and field.name in self.tensors:
                return self.tensors[field.name].dtype
        for field in self.operator.may_have_precision:
            if field.name in self.tensors and self.tensors[field.name].dtype in self.operator.calls:
                return self.tensors[field.name].dtype
        raise TypeError(f"{self.name}: precision is missing: no array that is given has it")

    def _check_places(self) -> None:
        first_name, first = next(iter(self.tensors.items()))
        for name, tensor in self.tensors.items():
            if (tensor.backend, tensor.ordinal) != (first.backend, first.ordinal):
                raise ValueError(f"{self.name}: {name} is on {tensor.backend}:{tensor.ordinal}, {first_name} on "
                                 f"{first.backend}:{first.ordinal}: must be on one device")

    # ---- Shapes

    def _terms(self, field: Field) -> list[Term]:
        terms = field.terms[self._chosen(field.by) > 0 if field.by else self.left_out]
        return [replace(term, factor=1 + self._chosen(term.option)) if term.option else term for term in terms]

    def _chosen(self, option: str) -> int:
        return self._choice(self.operator.by_name[option], self.given.get(option, 0))

    def _dimension(self, term: Term) -> int:
        if term.size not in self.sizes:
            raise TypeError(f"{self.name}: {term.size} is missing: no array that is given has it")
        size = self.sizes[term.size]
        if not term.divisor:
            return term.factor * size + term.more
        divisor = int(term.divisor) if term.divisor.isdecimal() else int(self.given.get(term.divisor, 0))
        return -(-size // (divisor if divisor > 0 else max(size, 1)))

    def _take_sizes(self) -> None:
        self.left_out = any(field.name not in self.tensors for field in self.operator.optional_inputs)
        for field in self.operator.named_sizes:
            if field.name in self.given:
                self.sizes[field.name] = self._given_size(field)
                self.had.add(field.name)
            elif field in self.operator.shapeless_sizes:
                raise TypeError(f"{self.name}: {field.name} is missing: no array has it")
        for field in self.operator.tensors:
            if field.name in self.tensors and field.role != describe.OUTPUT:
                self._match(field, self.tensors[field.name].shape)
        for field in self.operator.tensors:
            if field.name in self.tensors and field.role == describe.OUTPUT:
                self._take_named_sizes(field, self.tensors[field.name].shape)
        for field in self.operator.fields:
            if field.role == describe.SIZE and field not in self.operator.named_sizes:
                self.sizes.setdefault(field.name, self._leading_size(field))

    def _given_size(self, field: Field) -> int:
        value = self.given[field.name]
        try:
            size = index(value)
        except TypeError:
            raise TypeError(f"{self.name}: {field.name} is {value!r}: must be an integer") from None
        if not 0 <= size < 1 << 63:
            raise ValueError(f"{self.name}: {field.name} is {size}: must be from 0 to 2^63 - 1")
        return size

    def _take_named_sizes(self, field: Field, shape: tuple[int, ...]) -> None:
        """Of an output that is given, where nothing else says them."""
        terms = self._terms(field)
        for term, size in zip(terms, shape if len(shape) == len(terms) else ()):
            if term.plain and term.size not in self.sizes:
                self.sizes[term.size] = size
                self.had.add(term.size)

    def _leading_size(self, field: Field) -> int:
        """Of a size that no shape has: the first of several leading dimensions of its tensor, else 1; or 0."""
        if not field.shape:
            return 0
        leading = self.leading.get(self._terms(self.operator.by_name[field.shape])[0].size, ())
        return leading[0] if len(leading) > 1 else 1

    def _match(self, field: Field, shape: tuple[int, ...]) -> None:
        terms = self._terms(field)
        lead = len(shape) - len(terms) + 1
        dimensions = [prod(shape[:lead])] + list(shape[lead:]) if lead > 0 else [1] * (1 - lead) + list(shape)
        self.had.update(term.size for term in terms[max(0, 1 - lead):])
        for term, dimension in zip(terms, dimensions):
            if term.divisor:
                if term.divisor.isdecimal():
                    self.sizes.setdefault(term.size, dimension * int(term.divisor))
                if term.size not in self.sizes:
                    raise ValueError(f"{self.name}: no array before {field.name} says what {term.size} is")
                if dimension != self._dimension(term):
                    raise ValueError(f"{self.name}: {field.name} is {list(shape)}: {dimension} must be {term.size} / "
                                     f"{term.divisor}, which is {self._dimension(term)}")
                continue
            size = (dimension - term.more) // term.factor
            if size < 0 or size * term.factor != dimension - term.more:
                raise ValueError(f"{self.name}: {field.name} is {list(shape)}: {dimension} must be {term.factor} * "
                                 f"{term.size} + {term.more}")
            if self.sizes.setdefault(term.size, size) != size:
                raise ValueError(f"{self.name}: {field.name} is {list(shape)}, so {term.size} is {size}, but it is "
                                 f"{self.sizes[term.size]}")
        if lead > 0 and terms[0].plain:
            leading = self.leading.setdefault(terms[0].size, shape[:lead])
            if leading != shape[:lead]:
                raise ValueError(f"{self.name}: {field.name} is {list(shape)}: its leading dimensions must be "
                                 f"{list(leading)}, as another array's are")

    def _shape(self, field: Field) -> tuple[int, ...]:
        terms = self._terms(field)
        shape = [self._dimension(term) for term in terms]
        for term in terms:  # the library may take the 0 for another size
            if term.size in self.given and not self.sizes[term.size]:
                raise ValueError(f"{self.name}: {term.size} is 0: must be at least 1, as the shape of {field.name} follows "
                                 "from it")
        first = terms[0]
        if first.plain and prod(self.leading.get(first.size, (0,))) == shape[0]:
            return (*self.leading[first.size], *shape[1:])
        return tuple(shape) if first.size in self.had else tuple(shape[1:])

    # ---- Types

    def _dtype(self, field: Field) -> str:
        """The dtype that a tensor must have; an option that decides it and is not given follows the array."""
        option = self.operator.by_name.get(field.dtype)
        if not option:
            return self.part if field.dtype == "part" else field.dtype
        names = [self.part if choice == "part" else choice for choice in option.choices]
        if option.name in self.given:
            return names[self._choice(option, self.given[option.name])]
        tensor = self.tensors.get(field.name)
        if tensor and tensor.dtype in names:
            struct.pack_into("i", self.params, option.offset, names.index(tensor.dtype))
            return tensor.dtype
        return names[0]

    def _check_types(self) -> None:
        for field in self.operator.tensors:
            tensor = self.tensors.get(field.name)
            if tensor and tensor.dtype != self._dtype(field):
                raise TypeError(f"{self.name}: {field.name} is {tensor.dtype}: must be {self._dtype(field)}")

    def _choice(self, field: Field, value: Any) -> int:
        if isinstance(value, str):
            if value not in field.choices:
                raise ValueError(f"{self.name}: {field.name} is {value!r}: must be one of {', '.join(field.choices)}")
            return field.choices.index(value)
        return int(value)

    # ---- The struct

    def _put_value(self, field: Field) -> None:
        if field.role == describe.SIZE:
            value = self.sizes.get(field.name, 0)
        elif field.name not in self.given:
            return
        else:
            value = self.given[field.name]
            value = self._choice(field, value) if field.role == describe.OPTION else value
        try:
            struct.pack_into(_FORMATS[field.role], self.params, field.offset, value)
        except (struct.error, OverflowError):
            wanted = "a number" if field.role == describe.REAL else "an integer of 64 bits"
            raise TypeError(f"{self.name}: {field.name} is {value!r}: must be {wanted}") from None

    def _put_tensor(self, field: Field, tensor: Tensor) -> None:
        if tensor.strides != packed(tensor.shape) and 0 not in tensor.shape:
            self._put_stride(field, tensor)
        struct.pack_into("Q", self.params, field.offset, tensor.data)

    def _put_stride(self, field: Field, tensor: Tensor) -> None:
        """Rows that are packed in themselves may lie apart where the operator takes their stride, columns likewise."""
        strides = [f for f in self.operator.fields if f.role == describe.STRIDE and f.shape == field.name]
        columns = next((f for f in strides if f.name == f"{field.name}_col_stride"), None)
        rows = [f for f in strides if f is not columns]
        whole = packed(tensor.shape)
        ordinary = all(stride == step for size, stride, step in zip(tensor.shape, tensor.strides, whole) if size != 1)
        if ordinary:
            return
        plain = len(tensor.shape) == len(self._terms(field)) and len(rows) == 1
        if plain and whole[1:] == tensor.strides[1:] and tensor.strides[0] >= whole[0]:
            struct.pack_into("q", self.params, rows[0].offset, tensor.strides[0])
        elif plain and columns and min(tensor.strides) > 0:  # along either axis: the library refuses what overlaps
            struct.pack_into("q", self.params, rows[0].offset, tensor.strides[0])
            struct.pack_into("q", self.params, columns.offset, tensor.strides[1])
        else:
            raise ValueError(f"{self.name}: {field.name} has strides {list(tensor.strides)}: must be contiguous"
                             + (", except for the stride between rows" if rows else "")
                             + (", or have two dimensions with positive strides" if columns else ""))

    def _outputs(self) -> list[Any]:
        like = next(iter(self.arrays.values()))
        found = []
        for field in self.operator.tensors:
            if field.role != describe.OUTPUT:
                continue
            if field.optional and field.name not in self.tensors and self.given.get(field.name) is not True:
                continue
            shape = self._shape(field)
            if field.name not in self.tensors:
                self.arrays[field.name] = self.empty(like, shape, self._dtype(field))
                self.tensors[field.name] = self.view(f"{self.name}: {field.name}", self.arrays[field.name])
            elif self.tensors[field.name].shape != shape:
                raise ValueError(f"{self.name}: {field.name} is {list(self.tensors[field.name].shape)}: must be "
                                 f"{list(shape)}")
            found.append(self.arrays[field.name])
        return found

    # ---- The call

    def _launch(self) -> None:
        like, tensor = next(iter(self.arrays.values())), next(iter(self.tensors.values()))
        stream = device(tensor.backend, tensor.ordinal).stream(native_stream(like))
        params = (ctypes.c_char * len(self.params)).from_buffer(self.params)
        workspace = self._workspace(like, stream, params)
        check(self.operator.calls[self.part](ctypes.byref(stream), params, len(params)))
        del workspace  # the library's allocator orders what it is used for next behind this call

    def _workspace(self, like: Any, stream: Any, params: Any) -> Any:
        query = self.operator.workspace_sizes.get(self.part)
        if not query:
            return None
        size = ctypes.c_size_t()
        check(query(ctypes.byref(stream), params, len(params), ctypes.byref(size)))
        if not size.value:
            return None
        memory = self.empty(like, (-(-size.value // SIZES["i64"]),), "i64")
        for field in self.operator.fields:
            if field.role == describe.WORKSPACE:
                struct.pack_into("Q", self.params, field.offset, view("workspace", memory).data)
            if field.role == describe.WORKSPACE_SIZE:
                struct.pack_into("Q", self.params, field.offset, size.value)
        return memory
