"""What kiln.torch.patch makes of the time of a small random model of each kind, on the CPU: a prompt of 128 tokens, and 32
tokens generated after one of 16. Unpatched and patched take turns; the best round of each counts, which other load of the
machine disturbs least."""
import sys
import time

ROUNDS = 15


def model_of(transformers, kind):
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=2048, hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, head_dim=64, max_position_embeddings=512)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


def main():
    try:
        import torch
        import transformers
    except ImportError as missing:
        print(f"patched models are not measured: {missing}")
        return
    import kiln.torch
    prompt, start = torch.randint(2, 2048, (1, 128)), torch.randint(2, 2048, (1, 16))
    print(f"milliseconds, PyTorch {torch.__version__}, transformers {transformers.__version__}, f32, "
          f"{torch.get_num_threads()} threads")
    for kind in ("Llama", "Mistral", "Qwen2", "Qwen3"):
        theirs, mine = model_of(transformers, kind), model_of(transformers, kind)
        mine.load_state_dict(theirs.state_dict())
        kiln.torch.patch(mine)
        calls = {"prompt": lambda model: model(prompt, use_cache=False),
                 "generation": lambda model: model.generate(start, max_new_tokens=32, min_new_tokens=32, do_sample=False,
                                                            pad_token_id=0)}
        for what, call in calls.items():
            times = {"theirs": [], "mine": []}
            for _ in range(ROUNDS):
                for model, taken in ((theirs, times["theirs"]), (mine, times["mine"])):
                    begin = time.perf_counter()
                    with torch.no_grad():
                        call(model)
                    taken.append(1000 * (time.perf_counter() - begin))
            unpatched, patched = (min(taken) for taken in times.values())
            print(f"{kind:8} {what:10} unpatched {unpatched:7.1f}  patched {patched:7.1f}  ratio {unpatched / patched:.2f}")


sys.exit(main())
