"""The gated MLP of Llama and the models after it."""
from typing import Any

from kiln import ops


class GatedMLP:
    """y = (activation(x gate^T) * (x up^T)) down^T.

    gate and up are [hidden, in], down is [out, hidden], as checkpoints store them. Without up gate is both,
    [2 * hidden, in], the rows of gate before those of up: one product instead of two. activation is silu or gelu_tanh.
    The weights are the caller's arrays, of one library and precision with x; x is [..., in], and y is [..., out].
    """

    def __init__(self, gate: Any, down: Any, up: Any = None, activation: str = "silu") -> None:
        hidden = gate.shape[0] if up is not None else gate.shape[0] // 2
        if up is not None and tuple(up.shape) != tuple(gate.shape):
            raise ValueError(f"GatedMLP: up is {list(up.shape)}: must be {list(gate.shape)}, as gate")
        if up is None and gate.shape[0] % 2:
            raise ValueError(f"GatedMLP: gate is {list(gate.shape)}: without up its rows must be those of both")
        if down.shape[1] != hidden:
            raise ValueError(f"GatedMLP: down is {list(down.shape)}: must have {hidden} columns, the rows of gate")
        self.gate, self.down, self.up, self.activation = gate, down, up, activation

    def __call__(self, x: Any) -> Any:
        rows = x.reshape(-1, x.shape[-1])
        gate = ops.gemm(rows, self.gate)
        up = None if self.up is None else ops.gemm(rows, self.up)
        y = ops.gemm(ops.silu_mul(gate, up=up, activation=self.activation), self.down)
        return y.reshape(*x.shape[:-1], y.shape[-1])
