"""kiln.jax: jax_test.py CASE runs a case on the CPU; --list prints the cases and the modules that each needs."""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from samples import samples

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


def wide():
    """Arrays of 64 bits, as rope's frequencies are."""
    import jax
    jax.config.update("jax_enable_x64", True)


def given(arrays, options):
    """A sample's arrays as JAX's."""
    import jax.numpy as jnp
    of = lambda value: jnp.asarray(value) if isinstance(value, np.ndarray) else value
    return tuple(map(of, arrays)), {name: of(value) for name, value in options.items()}


def wanted(name, arrays, options):
    """What kiln.ops writes and makes of them."""
    import kiln
    from kiln import _describe
    operator = next(operator for operator in _describe.operators() if operator.name == name)
    arrays = [array.copy() for array in arrays]
    made = getattr(kiln.ops, name)(*arrays, **options)
    updates = [array for field, array in zip(operator.inputs, arrays) if field.role == _describe.UPDATE]
    return [*updates, *(made if isinstance(made, tuple) else () if made is None else (made,))]


def same(name, found, right):
    found = found if isinstance(found, (tuple, list)) else [found]
    assert len(found) == len(right), name
    for one, other in zip(found, right):
        assert one.shape == other.shape and one.dtype == other.dtype, (name, one.shape, other.shape)
        np.testing.assert_array_equal(np.asarray(one), other, name)


@case
def operators():
    """Each operator, eagerly and inside a jitted function, gives what kiln.ops gives; what is given stays as it was."""
    wide()
    import jax
    import kiln.jax
    for name, (arrays, options) in samples().items():
        right = wanted(name, arrays, options)
        mine, more = given(arrays, options)
        call = lambda *mine: getattr(kiln.jax, name)(*mine, **more)
        same(name, call(*mine), right)
        same(name, jax.jit(call)(*mine), right)
        for before, after in zip(arrays, mine):
            np.testing.assert_array_equal(np.asarray(after), before, name)


@case
def precisions():
    """Functions of one precision, bf16 too; optional outputs."""
    import jax.numpy as jnp
    import kiln.jax
    x = np.random.default_rng().standard_normal((3, 40)).astype(np.float32)
    for dtype, part, error in ((jnp.float16, "f16", 1e-3), (jnp.bfloat16, "bf16", 1e-2), (jnp.float32, "f32", 1e-6)):
        y = getattr(kiln.jax, f"softmax_{part}")(jnp.asarray(x, dtype))
        assert y.dtype == dtype
        e = np.exp(x.astype(dtype).astype(np.float64))
        np.testing.assert_allclose(np.asarray(y, np.float64), e / e.sum(-1, keepdims=True), atol=error)
    values, indices = kiln.jax.top_k(jnp.asarray(x), k=3, values=True)
    order = np.argsort(-x, axis=-1)[:, :3]
    np.testing.assert_array_equal(np.asarray(indices), order)
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, order, -1))


@case
def workspace():
    """Long rows of argmax need one; many calls at once."""
    import jax
    import jax.numpy as jnp
    import kiln.jax
    x = np.random.default_rng().standard_normal((5, 20000)).astype(np.float32)
    several = jax.jit(lambda x: jnp.stack([kiln.jax.argmax(x * scale) for scale in (1.0, -1.0, 2.0)]))
    right = np.stack([x.argmax(-1), x.argmin(-1), x.argmax(-1)])
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(several(x)), right)


@case
def updates():
    """A donated cache is written in place; one that is used again is copied before."""
    import jax
    import jax.numpy as jnp
    import kiln.jax
    cache, row = jnp.zeros((6, 8)), jnp.ones((1, 8))
    step = jax.jit(lambda k, v, row, slot: kiln.jax.kv_store(k, v, row, row, slot), donate_argnums=(0, 1))
    k, v, kept = cache + 0, cache + 0, cache
    for slot in (4, 1):
        k, v = step(k, v, row * (slot + 1), jnp.array([slot], jnp.int32))
    right = np.zeros((6, 8), np.float32)
    right[4], right[1] = 5, 2
    np.testing.assert_array_equal(np.asarray(k), right)
    np.testing.assert_array_equal(np.asarray(v), right)
    both = jax.jit(lambda k, row, slot: (kiln.jax.kv_store(k, k, row, row, slot), k))
    (k, v), before = both(kept, row, jnp.array([2], jnp.int32))
    assert not np.asarray(before).any() and np.asarray(k)[2].all() and np.asarray(v)[2].all()


@case
def vmap():
    """Over each operator: as many calls, and where a call of more rows does, that one call."""
    wide()
    import jax
    import jax.numpy as jnp
    import kiln.jax
    whole = set()
    for name, (arrays, options) in samples().items():
        many = [jnp.stack([jnp.asarray(array)] * 3) for array in arrays]
        if arrays[0].dtype == np.float32:
            many[0] = many[0] * jnp.array([1.0, 0.5, 2.0], jnp.float32).reshape(3, *[1] * arrays[0].ndim)
        more = given((), options)[1]
        call = lambda *mine: getattr(kiln.jax, name)(*mine, **more)
        found = jax.vmap(call)(*many)
        found = found if isinstance(found, tuple) else (found,)
        rights = [wanted(name, [np.asarray(array[i]) for array in many], options) for i in range(3)]
        same(name, found, [np.stack(each) for each in zip(*rights)])
        if "scan" not in str(jax.make_jaxpr(jax.vmap(call))(*many)):
            whole.add(name)
    rows = {"add", "add_gelu", "add_rmsnorm", "argmax", "gemm", "log_softmax", "mul_add", "rmsnorm", "softmax", "top_k"}
    others = {"amax", "dequantize_fp8", "kv_store", "mha", "rope", "sample", "tree_accept"}
    assert rows <= whole and not others & whole, whole
    x = jnp.ones((3, 2, 5, 8), jnp.float32)
    assert "scan" not in str(jax.make_jaxpr(jax.vmap(lambda x: kiln.jax.gemm(x, x)))(x))
    table, ids = jnp.arange(12, dtype=jnp.float32).reshape(6, 2), jnp.array([[1, 5], [0, 2]])
    np.testing.assert_array_equal(np.asarray(jax.vmap(lambda ids: kiln.jax.embedding(table, ids))(ids)), table[ids])
    x, w = jnp.ones((4, 3, 8), jnp.float32), jnp.ones((4, 8), jnp.float32)
    found = jax.vmap(lambda x, w: kiln.jax.rmsnorm(x, weight=w))(x * 2, w * jnp.arange(4, dtype=w.dtype)[:, None])
    right = jnp.stack([kiln.jax.rmsnorm(x[i] * 2, weight=w[i] * i) for i in range(4)])
    np.testing.assert_array_equal(np.asarray(found), np.asarray(right))
    np.testing.assert_array_equal(np.asarray(jax.vmap(kiln.jax.softmax, in_axes=1, out_axes=1)(x)),
                                  np.asarray(kiln.jax.softmax(x)))


@case
def threads():
    """Calls of several threads at once, each with a stream of its own."""
    import threading
    import jax
    import jax.numpy as jnp
    import kiln.jax
    function, found = jax.jit(lambda x: kiln.jax.softmax(x).sum(-1)), []

    def work():
        for _ in range(50):
            found.append(np.asarray(function(jnp.ones((16, 300)))))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 200 and all(np.allclose(sums, 1, atol=1e-5) for sums in found)


@case
def wrong_arguments():
    """What is wrong is named when the call is traced, or by kiln when it runs."""
    import jax
    import jax.numpy as jnp
    import kiln.jax
    x = jnp.ones((2, 4))
    refused(TypeError, "softmax: x is missing", lambda: kiln.jax.softmax())
    refused(TypeError, "softmax takes 1 positional argument, not 2", lambda: kiln.jax.softmax(x, x))
    refused(TypeError, "softmax_f16: x is f32: must be f16", lambda: kiln.jax.softmax_f16(x))
    refused(ValueError, "b is [2, 3], so count is 6, but it is 8", lambda: kiln.jax.add(x, jnp.ones((2, 3))))
    refused(ValueError, "must be one of none, gelu_erf", lambda: kiln.jax.gemm(x, x, activation="relu"))
    refused(TypeError, "frequencies is i32: must be i64", lambda: kiln.jax.rope(
        jnp.ones((1, 2, 4, 8)), frequencies=jnp.ones(4, jnp.int32)))
    refused(Exception, "rmsnorm_f32: eps is -1", lambda: kiln.jax.rmsnorm(x, eps=-1.0).block_until_ready())
    refused(ValueError, "cannot be differentiated", lambda: jax.grad(lambda x: kiln.jax.softmax(x).sum())(x))


DECLARED = {
    "xla_extension": ("XLA_FFI_Extension_Base", "type next"),
    "xla_version": ("XLA_FFI_Api_Version", "major:major_version minor:minor_version"),
    "xla_metadata": ("XLA_FFI_Metadata", "version:api_version traits state_type:state_type_id"),
    "xla_metadata_extension": ("XLA_FFI_Metadata_Extension", "base:extension_base metadata"),
    "xla_buffer": ("XLA_FFI_Buffer", "dtype data rank dimensions:dims"),
    "xla_buffers": ("XLA_FFI_Args", "count:size types buffers:args"),
    "xla_text": ("XLA_FFI_ByteSpan", "bytes:ptr size:len"),
    "xla_array": ("XLA_FFI_Array", "dtype count:size data"),
    "xla_attributes": ("XLA_FFI_Attrs", "count:size types names values:attrs"),
    "xla_error_arguments": ("XLA_FFI_Error_Create_Args", "message code:errc"),
    "xla_stream_arguments": ("XLA_FFI_Stream_Get_Args", "context:ctx stream"),
    "xla_ordinal_arguments": ("XLA_FFI_DeviceOrdinal_Get_Args", "context:ctx ordinal:device_ordinal"),
    "xla_allocate_arguments": ("XLA_FFI_DeviceMemory_Allocate_Args", "context:ctx size alignment data"),
    "xla_free_arguments": ("XLA_FFI_DeviceMemory_Free_Args", "context:ctx size data"),
    "xla_frame": ("XLA_FFI_CallFrame", "api context:ctx stage arguments:args results:rets attributes:attrs future"),
    "xla_api": ("XLA_FFI_Api", "version:api_version internal:internal_api error_create:XLA_FFI_Error_Create "
                "stream_get:XLA_FFI_Stream_Get memory_allocate:XLA_FFI_DeviceMemory_Allocate "
                "memory_free:XLA_FFI_DeviceMemory_Free device_ordinal:XLA_FFI_DeviceOrdinal_Get"),
}
NUMBERS = {"XLA_VERSION_MAJOR": "XLA_FFI_API_MAJOR", "XLA_VERSION_MINOR": "XLA_FFI_API_MINOR",
           "XLA_EXTENSION_METADATA": "XLA_FFI_Extension_Metadata", "XLA_ATTRIBUTE_ARRAY": "XLA_FFI_AttrType_ARRAY",
           "XLA_ATTRIBUTE_STRING": "XLA_FFI_AttrType_STRING",
           "XLA_INVALID_ARGUMENT": "XLA_FFI_Error_Code_INVALID_ARGUMENT", "XLA_INTERNAL": "XLA_FFI_Error_Code_INTERNAL",
           "XLA_RESOURCE_EXHAUSTED": "XLA_FFI_Error_Code_RESOURCE_EXHAUSTED",
           "XLA_UNIMPLEMENTED": "XLA_FFI_Error_Code_UNIMPLEMENTED"}


@case
def declarations():
    """kiln's words for XLA's interface say what the header in jaxlib says."""
    import jaxlib
    checks = [f"_Static_assert((int){ours} == (int){theirs}, \"{ours}\");" for ours, theirs in NUMBERS.items()]
    for ours, (theirs, fields) in DECLARED.items():
        checks.append(f"_Static_assert(sizeof({ours}) == sizeof({theirs}), \"{ours}\");")
        for field in fields.split():
            mine, _, other = field.partition(":")
            checks.append(f"_Static_assert(offsetof({ours}, {mine}) == offsetof({theirs}, {other or mine}) && sizeof((({ours} *)0)"
                          f"->{mine}) == sizeof((({theirs} *)0)->{other or mine}), \"{ours}.{mine}\");")
    program = "\n".join(("#include <xla/ffi/api/c_api.h>", '#include "loader/bindings/python/xla_ffi.h"', *checks, ""))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "declarations.c")
        source.write_text(program)
        subprocess.run([*os.environ.get("CC", "cc").split(), "-fsyntax-only", "-I.", "-I",
                        str(pathlib.Path(jaxlib.__file__).parent / "include"), str(source)], check=True)


if sys.argv[1] == "--list":
    print(*(f"{name}:jax" for name in CASES))
else:
    CASES[sys.argv[1]]()
