"""Models of Hugging Face's transformers on kiln: what their layers compute, by kiln's operators."""
from types import MethodType
from typing import Any

import torch

_ops = torch.ops.kiln
_OLDEST = 5, 17  # transformers whose masks are asked for as _runs takes it
_PREFIXES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}


# ---- What padding means: runs of queries and keys that belong together

def _runs(batch_size: int, q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: Any = 0,
          mask_function: Any = None, attention_mask: torch.Tensor | None = None, local_size: int | None = None,
          config: Any = None, allow_is_causal_skip: bool = True, use_vmap: bool = False, device: Any = "cpu",
          **_: Any) -> torch.Tensor | None:
    """The mask of ``attn_implementation="kiln"``: cu_seqlens_q and cu_seqlens_k, [1, 1, 2, 3 * batch * kv_heads + 1],
    where each sequence is three of kiln's: padding before its tokens, its tokens, padding behind them. None: no
    padding. It has four dimensions because transformers makes no mask of one that has."""
    from transformers.masking_utils import causal_mask_function

    altered = use_vmap or not (allow_is_causal_skip or q_length == 1)  # a static cache allows one query no skip
    known = mask_function is causal_mask_function if local_size is None else local_size == config.sliding_window
    if altered or not known:
        raise ValueError("kiln attends causally, with padding and windows: not by other mask functions, nor to packed "
                         "sequences (with an attention_mask of ones their positions are not looked at)")
    end = q_offset + q_length - kv_offset  # keys that are there; a static cache has room for more
    if attention_mask is None or (not torch.compiler.is_compiling() and bool(attention_mask.all())):
        if not isinstance(end, torch.Tensor) and end == kv_length:
            return None
        first = torch.zeros(batch_size, dtype=torch.int32, device=device)
        last = first + end
    else:
        first, last = _padding(attention_mask, kv_length, kv_offset, end)
    ends = torch.stack((first, last, torch.full_like(first, kv_length)), 1)
    queries = (ends - (end - q_length)).clamp(0, q_length)
    queries[:, 2] = q_length
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    both = torch.stack((_starts(queries, q_length, heads), _starts(ends, kv_length, heads)))
    return torch.nn.functional.pad(both, (1, 0)).to(torch.int32)[None, None]


def _padding(mask: torch.Tensor, kv_length: int, kv_offset: Any, end: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Where each sequence's tokens begin and end among the keys."""
    places = torch.arange(kv_length, device=mask.device) + kv_offset
    there = mask.bool()[:, places.clamp(max=mask.shape[1] - 1)] & (places < mask.shape[1]) & (places - kv_offset < end)
    first = there.int().argmax(1)
    last = first + there.sum(1)
    run = (places - kv_offset >= first[:, None]) & (places - kv_offset < last[:, None])
    torch._assert_async((run == there).all(), "kiln: the tokens of an attention_mask must stand together")
    return first, last


def _starts(ends: torch.Tensor, length: int, heads: int) -> torch.Tensor:
    """The ends of all runs in the rows of all sequences, of which each has a row for each head."""
    rows = ends.shape[0] * heads
    begins = torch.arange(rows, device=ends.device) * length
    return (ends.repeat_interleave(heads, 0) + begins[:, None]).flatten()


# ---- The layers

def _added(mask: torch.Tensor, query: torch.Tensor, kv_heads: int) -> torch.Tensor:
    """A mask of the caller's, [batch, heads, queries, keys] or 1 for the first two, as it is added to the scores of a call
    in which each head of the keys is a sequence."""
    batch, heads = query.shape[:2]
    if mask.ndim != 4 or mask.shape[0] not in (1, batch) or mask.shape[1] not in (1, heads):
        raise ValueError(f"attention_mask is {list(mask.shape)}: must be [batch, tokens] or [batch, heads, queries, keys], "
                         f"of {batch} sequences or 1 and {heads} heads or 1")
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    mask = mask.to(query.dtype)
    if mask.shape[:2] == (1, 1):
        return mask.contiguous()
    return mask.expand(batch, heads, -1, -1).reshape(batch * kv_heads, heads // kv_heads, *mask.shape[2:])


def _attend(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
            attention_mask: torch.Tensor | None, dropout: float = 0.0, scaling: float | None = None,
            sliding_window: int | None = None, softcap: float | None = None, is_causal: bool | None = None,
            **_: Any) -> tuple[torch.Tensor, None]:
    """The attention of ``attn_implementation="kiln"``. Keys and values stay where the cache has them, [batch, kv_heads,
    keys, head_dim]: each of their heads is a sequence of its own to kiln, with the heads of the query that share it.
    attention_mask is _runs', or one of four dimensions that the model's caller made."""
    if dropout:
        raise ValueError("kiln is for inference: attention has no dropout")
    batch, heads, q_length, head_dim = query.shape
    kv_heads = key.shape[1]
    grouped = query.reshape(batch * kv_heads, heads // kv_heads, q_length, head_dim).transpose(1, 2).contiguous()
    keys, values = (x.contiguous().view(batch * kv_heads, -1, 1, head_dim) for x in (key, value))
    options: dict[str, Any] = {}
    causal = module.is_causal if is_causal is None else is_causal
    if attention_mask is not None and attention_mask.dtype != torch.int32:  # it says all that there is to say
        options, causal, sliding_window = {"mask": _added(attention_mask, query, kv_heads)}, False, None
    elif attention_mask is not None:
        options = {"cu_seqlens_q": attention_mask[0, 0, 0], "cu_seqlens_k": attention_mask[0, 0, 1],
                   "max_seqlen_q": q_length, "max_seqlen_k": key.shape[2]}
    out = _ops.mha(grouped, keys, values, scale=scaling, softcap=softcap, causal="yes" if causal else "no",
                   window_left=sliding_window, **options)
    out = out.view(batch, kv_heads, q_length, heads // kv_heads, head_dim).transpose(1, 2)
    return out.reshape(batch, q_length, heads, head_dim), None


def _attention(self: Any, hidden_states: torch.Tensor, position_embeddings: Any, attention_mask: Any = None,
               cache: Any = None, past_key_values: Any = None, **options: Any) -> tuple[torch.Tensor, None]:
    cache = past_key_values if cache is None else cache  # its name up to transformers 5.23
    shape = (*hidden_states.shape[:-1], -1, self.head_dim)
    query, key, value = (project(hidden_states).view(shape) for project in (self.q_proj, self.k_proj, self.v_proj))
    if hasattr(self, "q_norm"):
        query, key = self.q_norm(query), self.k_norm(key)
    cosines, sines = position_embeddings
    query, key = (_ops.rope(x, cosines=cosines, sines=sines, layout="half") for x in (query, key))
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if cache is not None:
        key, value = cache.update(key, value, self.layer_idx)
    window = self.sliding_window if hasattr(self, "sliding_window") else getattr(self.config, "sliding_window", None)
    out, _ = _attend(self, query, key, value, attention_mask, scaling=self.scaling, sliding_window=window)
    return self.o_proj(out.flatten(-2)), None


def _rotary(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of each token of the batch, [batch * tokens, pairs], in f32."""
    like = torch.empty(0, dtype=torch.float32, device=x.device)
    tables = type(self).forward(self, like, position_ids)
    return tuple(table.chunk(2, -1)[0].expand(x.shape[0], -1, -1).flatten(0, 1).contiguous() for table in tables)


def _rmsnorm(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    return _ops.rmsnorm(hidden_states, weight=self.weight, eps=self.variance_epsilon)


def _mlp(self: Any, x: torch.Tensor) -> torch.Tensor:
    gated = _ops.silu_mul(self.gate_proj(x), up=self.up_proj(x), activation=_ACTIVATIONS[self.config.hidden_act])
    return self.down_proj(gated)


_FORWARDS = {"Attention": _attention, "RotaryEmbedding": _rotary, "RMSNorm": _rmsnorm, "MLP": _mlp}


def patch(model: Any) -> Any:
    """Puts RMSNorm, rotary embedding, gated activation and attention of a Llama, Mistral, Qwen2 or Qwen3 model of
    transformers on kiln, in place, and returns it. It computes the same, for inference: causally, with padding on
    either side, with sliding windows, and with masks of four dimensions, boolean or added. Projections stay PyTorch's."""
    from transformers import AttentionInterface, AttentionMaskInterface, __version__

    if tuple(map(int, __version__.split(".")[:2])) < _OLDEST:
        raise ImportError(f"transformers is {__version__}: must be {'.'.join(map(str, _OLDEST))} or later")
    config = model.config
    if config.model_type not in _PREFIXES:
        raise ValueError(f"model_type is {config.model_type!r}: must be one of {', '.join(_PREFIXES)}")
    if config.hidden_act not in _ACTIVATIONS:
        raise ValueError(f"hidden_act is {config.hidden_act!r}: must be one of {', '.join(_ACTIVATIONS)}")
    AttentionInterface.register("kiln", _attend)
    AttentionMaskInterface.register("kiln", _runs)
    model.set_attn_implementation("kiln")
    forwards = {_PREFIXES[config.model_type] + name: forward for name, forward in _FORWARDS.items()}
    for module in model.modules():
        if type(module).__name__ in forwards:
            module.forward = MethodType(forwards[type(module).__name__], module)
    return model
