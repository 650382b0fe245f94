"""kiln.torch: torch_test.py CASE runs a case on the CPU; --list prints the cases and the modules that each needs."""
import copy
import sys
import unittest.mock

from samples import samples as numpy_samples

CASES = {}


def case(modules):
    def register(function):
        CASES[function.__name__] = (function, modules)
        return function
    return register


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


def samples():
    """A call of each operator: name, arrays, options."""
    import numpy
    import torch
    tensor = lambda value: torch.from_numpy(value) if isinstance(value, numpy.ndarray) else value
    return {name: (tuple(map(tensor, arrays)), {key: tensor(value) for key, value in options.items()})
            for name, (arrays, options) in numpy_samples().items()}


@case("torch")
def operators():
    """PyTorch's own checks of each: schema, what is written, fake results, dynamic shapes."""
    import torch
    import kiln.torch
    given = samples()
    assert sorted(given) == sorted(kiln.torch.__all__[1:]), set(given) ^ set(kiln.torch.__all__[1:])
    for name, (arrays, options) in given.items():
        torch.library.opcheck(getattr(torch.ops.kiln, name).default, arrays, options)


@case("torch")
def results():
    """The same as kiln.ops, and outputs without a name."""
    import torch
    import kiln.torch
    for name, (arrays, options) in samples().items():
        mine, theirs = copy.deepcopy(arrays), copy.deepcopy(arrays)
        wanted = getattr(kiln.ops, name)(*theirs, **options)
        torch.testing.assert_close(getattr(kiln.torch, name)(*mine, **options), wanted, rtol=0, atol=0)
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


@case("torch")
def fast_calls():
    """The second call of each runs without Python's part; a parameter's gradient is refused only where it is recorded."""
    import torch
    import kiln.torch
    from kiln import _call
    for name, (arrays, options) in samples().items():
        mine, theirs = copy.deepcopy(arrays), copy.deepcopy(arrays)
        wanted = getattr(kiln.ops, name)(*theirs, **options)
        with unittest.mock.patch.object(_call.Call, "run", side_effect=AssertionError(f"{name} went through Python")):
            found = getattr(kiln.ops, name)(*mine, **options)
        torch.testing.assert_close((mine, found), (theirs, wanted), rtol=0, atol=0)
    x, weight = torch.randn(2, 8), torch.nn.Parameter(torch.ones(8))
    with torch.no_grad():
        kiln.ops.rmsnorm(x, weight=weight)
        with unittest.mock.patch.object(_call.Call, "run", side_effect=AssertionError("went through Python")):
            assert not kiln.ops.rmsnorm(x, weight=weight).requires_grad
    refused(RuntimeError, "rmsnorm: weight requires a gradient", lambda: kiln.ops.rmsnorm(x, weight=weight))
    half = torch.randn(3, 8, dtype=torch.bfloat16)
    assert kiln.ops.softmax(half).equal(kiln.ops.softmax(half)) and kiln.ops.softmax(half).dtype == torch.bfloat16


@case("torch")
def compiled():
    """torch.compile takes a function whole, with sizes that change."""
    import torch
    import kiln.torch

    def block(x, w):
        y, residual = torch.ops.kiln.add_rmsnorm(x, x + 1)
        return torch.ops.kiln.gemm(y, w, activation="silu") * 2 + torch.ops.kiln.softmax(residual).sum()

    whole = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (2, 5):
        x, w = torch.randn(rows, 16), torch.randn(7, 16)
        torch.testing.assert_close(whole(x, w), block(x, w))


@case("torch")
def gradients():
    """Refused, with the argument's name; not where none are recorded."""
    import torch
    import kiln.torch
    x, weight = torch.randn(2, 8), torch.randn(8, requires_grad=True)
    refused(RuntimeError, "rmsnorm: weight requires a gradient: kiln is for inference",
            lambda: torch.ops.kiln.rmsnorm(x, weight=weight))
    refused(RuntimeError, "softmax: x requires a gradient", lambda: torch.ops.kiln.softmax(weight[None]))
    whole = torch.compile(torch.ops.kiln.softmax, backend="aot_eager", fullgraph=True)
    refused(RuntimeError, "softmax: x requires a gradient", lambda: whole(weight[None]))
    with torch.no_grad():
        assert not torch.ops.kiln.rmsnorm(x, weight=weight).requires_grad


def model_of(kind, **options):
    import torch
    import transformers
    torch.manual_seed(7)
    config = {"Llama": {}, "Mistral": {"sliding_window": 6}, "Qwen3": {"head_dim": 16}, "Qwen2": {
        "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}}[kind] | options
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=None, **config)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    for parameter in model.parameters():  # small ones make every token as likely as any other
        torch.nn.init.normal_(parameter, std=0.3) if parameter.ndim > 1 else torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model


def models(kind):
    """Tokens and logits of a patched model: prompts padded on either side, windows, a static cache."""
    import torch
    import kiln.torch
    theirs = model_of(kind)
    mine = kiln.torch.patch(copy.deepcopy(theirs))
    ids, mask = torch.randint(2, 97, (2, 9)), torch.ones(2, 9, dtype=torch.int64)
    with torch.no_grad():
        for cut in (slice(0, 0), slice(0, 4), slice(7, 9)):
            padded = mask.clone()
            padded[0, cut] = 0
            there = padded.bool()
            torch.testing.assert_close(mine(ids, attention_mask=padded).logits[there],
                                       theirs(ids, attention_mask=padded).logits[there], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(mine(ids).logits, theirs(ids).logits, rtol=1e-4, atol=1e-4)
    mask[0, :4] = 0
    for cache in (None, "static"):
        options = {"attention_mask": mask, "max_new_tokens": 12, "do_sample": False, "cache_implementation": cache,
                   "disable_compile": True}
        assert mine.generate(ids, **options).equal(theirs.generate(ids, **options)), cache


for _kind in ("Llama", "Mistral", "Qwen2", "Qwen3"):
    case("torch,transformers")(lambda kind=_kind: models(kind))
    CASES[f"patched_{_kind}"] = CASES.pop("<lambda>")


@case("torch,transformers")
def patched_and_compiled():
    """A patched model is one graph."""
    import torch
    import kiln.torch
    model = kiln.torch.patch(model_of("Llama"))
    ids, mask = torch.randint(2, 97, (2, 9)), torch.ones(2, 9, dtype=torch.int64)
    mask[1, :3] = 0
    with torch.no_grad():
        wanted = model(ids, attention_mask=mask, use_cache=False).logits
        whole = torch.compile(model, fullgraph=True, backend="aot_eager")
        got = whole(ids, attention_mask=mask, use_cache=False).logits
    torch.testing.assert_close(got[mask.bool()], wanted[mask.bool()])


@case("torch,transformers")
def patched_with_masks():
    """Masks of the caller's own, for all heads or for each, of all sequences or of each, boolean or added."""
    import torch
    import kiln.torch
    theirs, mine = model_of("Llama"), kiln.torch.patch(model_of("Llama"))
    mine.load_state_dict(theirs.state_dict())
    ids, heads = torch.randint(2, 97, (3, 7)), theirs.config.num_attention_heads
    for shape in ((1, 1, 7, 7), (3, 1, 7, 7), (1, heads, 7, 7), (3, heads, 7, 7)):
        seen = (torch.rand(shape) < 0.6) | torch.eye(7, dtype=torch.bool)
        added = torch.where(seen, torch.randn(shape), float("-inf"))
        for mask in (added, torch.where(seen, 0.0, float("-inf")), seen):
            given = mask if mask.dtype != torch.bool else torch.where(mask, 0.0, float("-inf"))
            with torch.no_grad():
                torch.testing.assert_close(mine(ids, attention_mask=mask, use_cache=False).logits,
                                           theirs(ids, attention_mask=given, use_cache=False).logits, rtol=1e-4, atol=1e-4)


@case("torch,transformers")
def patch_refuses():
    """What kiln has not is named."""
    import torch
    import transformers
    import kiln.torch
    other = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=11))
    refused(ValueError, "model_type is 'gpt2': must be one of llama", lambda: kiln.torch.patch(other))
    with unittest.mock.patch("transformers.__version__", "5.9.1"):
        refused(ImportError, "transformers is 5.9.1: must be 5.17 or later", lambda: kiln.torch.patch(other))
    refused(ValueError, "hidden_act is 'relu': must be one of silu",
            lambda: kiln.torch.patch(model_of("Llama", hidden_act="relu")))
    model, ids = kiln.torch.patch(model_of("Llama")), torch.randint(2, 97, (1, 4))
    refused(RuntimeError, "requires a gradient: kiln is for inference", lambda: model(ids))
    with torch.no_grad():
        refused(RuntimeError, "must stand together", lambda: model(ids, attention_mask=torch.tensor([[1, 0, 1, 1]])))
        refused(ValueError, "nor to packed sequences",
                lambda: model(ids, position_ids=torch.tensor([[0, 1, 0, 1]]), use_cache=False))
        chunked = transformers.masking_utils.create_chunked_causal_mask
        model.config.attention_chunk_size, model.config.sliding_window = 2, None
        refused(ValueError, "not by other mask functions",
                lambda: chunked(model.config, torch.zeros(1, 4, 64), None, None))
        refused(ValueError, "attention_mask is [1, 3, 4, 4]: must be [batch, tokens] or [batch, heads, queries, keys]",
                lambda: model(ids, attention_mask=torch.zeros(1, 3, 4, 4)))


if sys.argv[1] == "--list":
    print(*(f"{name}:{modules}" for name, (_, modules) in CASES.items()))
else:
    CASES[sys.argv[1]][0]()
