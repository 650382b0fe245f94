"""Compares the results in this folder with NumPy in float64; exits with 1 if one is wrong."""

import math
import sys

import numpy as np

TOLERANCE = 1e-6  # relative and absolute: the operators compute in float32

x = np.load("embedding.npy").astype(np.float64)
t = x + np.load("bias.npy")
e = np.exp(x - x.max(axis=1, keepdims=True))
expected = {
    "softmax.npy": e / e.sum(axis=1, keepdims=True),
    "gelu.npy": 0.5 * t * (1 + np.vectorize(math.erf)(t / math.sqrt(2))),
    "gelu_tanh.npy": 0.5 * t * (1 + np.tanh(math.sqrt(2 / math.pi) * (t + 0.044715 * t**3))),
}
wrong = 0
for name, wanted in expected.items():
    result = np.load(name)
    ok = result.shape == wanted.shape and np.allclose(result, wanted, rtol=TOLERANCE, atol=TOLERANCE)
    wrong += not ok
    print(f"{name}: {'ok, within' if ok else 'WRONG, not within'} {TOLERANCE} of NumPy in float64")
sys.exit(wrong != 0)
