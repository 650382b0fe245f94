"""kiln: LLM-inference operators for NVIDIA GPUs, AMD GPUs and the CPU, from one library without a toolkit.

>>> import kiln, numpy
>>> kiln.ops.softmax(numpy.ones((2, 4), numpy.float32))

``kiln.ops`` has every operator, on arrays of NumPy, PyTorch, CuPy, JAX and whatever else speaks DLPack.
"""
from kiln import ops
from kiln._benchmark import Timing, benchmark
from kiln._device import Device, device
from kiln._gated_mlp import GatedMLP
from kiln._library import Error, errors, version
from kiln._names import attention, element_wise_mul_add, fused_add_gelu, gemm, quantize
from kiln._programmatic import programmatic
from kiln._trace import trace

globals().update(errors)
__all__ = ["Device", "Error", "GatedMLP", "Timing", "attention", "benchmark", "device", "element_wise_mul_add",
           "fused_add_gelu", "gemm", "ops", "programmatic", "quantize", "trace", "version", *errors]
__version__ = version()
