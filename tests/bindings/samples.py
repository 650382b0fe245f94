"""A call of each operator, for the tests of every binding: samples() gives its arrays by place and its options, arrays of
NumPy in f32 where the operator has a choice. An operator that has no call here fails python_test.py, with its name."""
import numpy as np


def samples(seed=None):
    """{operator: (arrays, options)}, of random numbers that a seed makes the same again."""
    random = np.random.default_rng(seed)

    def real(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def integers(*values):
        return np.array(values, np.int32)

    def codes(dtype, *shape):
        """Of int8, or of E4M3 and two of E2M1 without NaN."""
        return random.integers(0, 0x78, shape).astype(dtype)

    x, y = real(3, 2, 8), real(3, 2, 8)
    q, k, v = real(1, 5, 4, 8), real(1, 5, 2, 8), real(1, 5, 2, 8)
    cache, table = real(6, 16, 2, 8), integers([4, 1])
    frequencies = np.array([1 << 60, 1 << 50, 1 << 40, 1])
    scales, group_scales = abs(real(1, 1)), abs(real(5, 2))
    row = {"bias": real(5), "activation": "silu"}
    return {
        "add": ((x, y), {}),
        "add_gelu": ((x,), {"bias": real(8), "approx": "tanh"}),
        "add_rmsnorm": ((x, y), {"weight": real(8), "eps": 1e-5}),
        "amax": ((real(4, 130),), {"scale_rows": 4, "scale_cols": 2}),
        "argmax": ((x,), {}),
        "causal_conv1d": ((real(2, 5, 8), real(4, 8)), {
            "bias": real(8), "initial_states": real(2, 9, 8), "dilation": 3, "activation": "silu"}),
        "dequantize_fp8": ((codes(np.uint8, 4, 9), scales), {"precision": "f32"}),
        "dequantize_int8": ((codes(np.int8, 4, 9), scales), {"precision": "f32"}),
        "dequantize_nvfp4": ((codes(np.uint8, 4, 16), codes(np.uint8, 4, 2), abs(real(1))), {
            "precision": "f32", "cols": 32}),
        "dequantize_w4a16": ((codes(np.uint8, 5, 32), group_scales), {"zeros": real(5, 2), "group": 32}),
        "embedding": ((real(3, 8), np.array([2, 0, 1, 1])), {}),
        "engram_gate": ((real(3, 2, 8), real(3, 2, 8), real(3, 8)), {"key_weight": real(2, 8)}),
        "engram_hash": ((integers([1, 2, 3, 1]), np.array([[3, 5, 7]]), np.array([[[11, 13], [17, 19]]])), {
            "precision": "f32", "offsets": np.array([[[0, 11], [24, 41]]]), "pad_id": 2}),
        "gemm": ((x, real(3, 5, 8)), row),
        "gemm_fp8": ((codes(np.uint8, 3, 32), codes(np.uint8, 5, 32), scales, scales), row),
        "gemm_int8": ((codes(np.int8, 3, 32), codes(np.int8, 5, 32), scales, scales), row),
        "gemm_nvfp4": ((codes(np.uint8, 3, 16), codes(np.uint8, 5, 16), codes(np.uint8, 3, 2), codes(np.uint8, 5, 2),
                        abs(real(1)), abs(real(1))), row | {"k": 32}),
        "gemm_w4a16": ((real(3, 64), codes(np.uint8, 5, 32), group_scales), {"zeros": real(5, 2), "group": 32}),
        "kv_compact": ((real(6, 8), real(6, 8), integers([5, 1, 0]), integers([0, 2]), integers(2)), {}),
        "kv_copy_blocks": ((real(4, 16), real(4, 16), integers([0, 2])), {}),
        "kv_store": ((real(6, 8), real(6, 8), real(2, 8), real(2, 8), integers(5, 0)), {}),
        "log_softmax": ((x,), {}),
        "merge_attention_states": ((real(2, 5, 4, 8), real(2, 4, 5)), {}),
        "mha": ((q, k, v), {"causal": "yes", "scale": 0.3}),
        "mha_fp8_fwd": ((codes(np.uint8, 5, 4, 8), codes(np.uint8, 5, 2, 8), codes(np.uint8, 5, 2, 8), abs(real(4, 5)),
                         abs(real(2, 5)), abs(real(1, 2, 8))), {"precision": "f32", "scale": 1e-5}),
        "mha_int8_x_fp8_fwd": ((codes(np.int8, 5, 4, 8), codes(np.int8, 5, 2, 8), codes(np.uint8, 5, 2, 8),
                                abs(real(4, 5)), abs(real(2, 5)), abs(real(1, 2, 8))), {
                                    "precision": "f32", "scale": 1e-5, "causal": "yes"}),
        "mha_nvfp4_fwd": ((codes(np.uint8, 5, 4, 32), codes(np.uint8, 5, 2, 32), codes(np.uint8, 2, 8, 32),
                           codes(np.uint8, 5, 4, 4), codes(np.uint8, 5, 2, 4), codes(np.uint8, 2, 8, 4), abs(real(4, 5)),
                           abs(real(2, 5)), abs(real(1, 2, 8))), {"precision": "f32", "scale": 1e-5}),
        "mha_paged": ((q, cache, cache, table, integers(20)), {"causal": "yes"}),
        "mha_quantize": ((q, k, v), {"q_scale_rows": 5, "k_scale_rows": 5}),
        "mha_quantize_nvfp4": ((q, k, v), {"head_blocks": 4, "v_blocks": 4}),
        "mul_add": ((x, y, x), {}),
        "quantize_embedding": ((real(3, 2, 20),), {"code_cols": 10, "code_type": "int4", "normalize": "yes"}),
        "quantize_fp8": ((x,), {"amax": abs(real(1, 1))}),
        "quantize_int8": ((x,), {"given": abs(real(1, 1))}),
        "quantize_nvfp4": ((real(4, 32),), {"given": abs(real(1)), "scale_rows": 4, "scale_cols": 2}),
        "rmsnorm": ((x,), {"weight": real(8)}),
        "rmsnorm_fp8": ((x,), {"residual": y, "weight": real(8)}),
        "rmsnorm_int8": ((x,), {"static_scale": 0.03}),
        "rmsnorm_nvfp4": ((real(4, 32),), {"residual": real(4, 32), "scale_rows": 4, "scale_cols": 2}),
        "rope": ((q,), {"frequencies": frequencies}),
        "rope3d": ((q, integers([1, 2, 2])), {"frequencies": frequencies}),
        "rope_kv_store": ((real(6, 2, 8), real(6, 2, 8), real(2, 4, 8), real(2, 2, 8), real(2, 2, 8), integers(5, 0)), {
            "frequencies": frequencies, "layout": "half"}),
        "sample": ((real(2, 8),), {"temperature": 0.7, "seed": 3, "top_k": 4}),
        "silu_mul": ((x,), {"up": y}),
        "silu_mul_fp8": ((x,), {"up": y}),
        "silu_mul_int8": ((real(4, 260),), {"scale_cols": 2}),
        "silu_mul_nvfp4": ((real(4, 32),), {"up": real(4, 32), "scale_rows": 4, "scale_cols": 2}),
        "softmax": ((x,), {}),
        "softmax_update": ((x,), {"other": abs(real(18))}),
        "top_k": ((x,), {"k": 3}),
        "tree_accept": ((integers([7, 2, 3]), integers([-1, 0, 0])), {"logits": real(1, 3, 8), "depth": 2}),
        "tree_verify_sampled": ((abs(real(1, 3, 8)), integers([7, 2, 3]), integers([-1, 0, 0])), {"depth": 2, "seed": 3}),
        "vector_search": ((codes(np.uint8, 2, 16), codes(np.uint8, 9, 16)), {
            "precision": "f32", "table_scales": abs(real(9)), "k": 3, "code_type": "int8"}),
    }
