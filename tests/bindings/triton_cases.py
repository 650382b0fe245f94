"""kiln's backend in the real Triton Inference Server, over HTTP. `triton_cases.py CASE FOLDER` runs a case in an empty folder;
`triton_cases.py --list` prints their names. MODEL_DIR, KILN_BUILD and TRITON_DIR say where things are."""

import concurrent.futures
import json
import math
import os
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

from triton_server import Failure, Server, add_model, parameters

MODEL = os.path.abspath(os.path.join(os.environ["MODEL_DIR"], "stories260K.bin"))
TOKENIZER = os.path.abspath(os.path.join(os.environ["MODEL_DIR"], "tok512.bin"))
SIM = os.path.abspath(os.path.join(os.environ["KILN_BUILD"], "sim"))
LENGTH = 512
MANY = 200
CPU = "instance_group [ { kind: KIND_CPU count: 1 } ]\n"


def story(repository, name="story", instances=CPU, **values):
    add_model(repository, name, instances + parameters(model_file=MODEL, tokenizer_file=TOKENIZER, **values))


def simulated_amd(folder):
    """What makes a GPU of AMD's, which the server does not know of. A simulated NVIDIA driver it would open itself, and
    needs more of."""
    drivers = folder + "-drivers"
    os.mkdir(drivers)
    os.symlink(os.path.join(SIM, "libhsa-runtime64.so.1"), os.path.join(drivers, "libhsa-runtime64.so.1"))
    return {"LD_LIBRARY_PATH": drivers, "KILN_SIM_DEVICES": "gfx942"}


def refused(status, text, call, *arguments, **question):
    try:
        call(*arguments, **question)
    except Failure as failure:
        assert failure.status == status and text in failure.text, failure
        return
    raise AssertionError(f"{str(question)[:100]}: accepted")


# ---- What is generated ----


def tells_the_story(folder):
    story(folder)
    with open("docs/examples/llama/story.txt") as file:
        expected = file.read().rstrip("\n")
    with Server(folder, folder + "/log") as server:
        tokens, text, reason = server.generate("story", text_input="", max_tokens=200)
        assert (text, len(tokens), reason) == (expected, 200, "length"), text
        streamed, pieces, reason, _ = server.stream("story", text_input="", max_tokens=200)
        assert (streamed, pieces, reason) == (tokens, text, "length")
        tokens, text, reason = server.generate("story", text_input="", max_tokens=LENGTH)
        assert reason == "stop" and len(tokens) < LENGTH - 1
        # As parameters and not as inputs: by what is no input of that name.
        assert server.generate("story", text_input="Once upon", max_tokens=30, temperature=0.0, top_k=0, top_p=0.0,
                               min_p=0.0, seed=5) == server.generate("story", text_input="Once upon", max_tokens=30)


BEGINNINGS = ["", "Once upon a time", "Lily", "The big red dog", "One day, a boy", "It was raining", "Tim and Tom",
              "There was a little bird who could not fly. She was sad, and her mother said"]


def questions(count):
    """Of any length and sampling, always the same; some share a beginning."""
    numbers = random.Random(7)
    print(f"# {count} questions of seed 7")
    for i in range(count):
        question = {"text_input": numbers.choice(BEGINNINGS) + numbers.choice(["", " and", " was", " 日本 é"]),
                    "max_tokens": numbers.choice([1, 5, 30, 60, 120])}
        if i % 2:
            question.update(temperature=numbers.choice([0.5, 1.0, 1.5]), top_k=numbers.choice([0, 5, 50]),
                            top_p=numbers.choice([0.0, 0.9]), min_p=numbers.choice([0.0, 0.05]), seed=i)
        yield question


def together(call, asked):
    """Asks everything at once: a thread each, and none begins before all are there."""
    gate = threading.Barrier(len(asked))

    def ask(question):
        gate.wait()
        begin = time.monotonic()
        return call(question), time.monotonic() - begin

    with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
        return [answer.result() for answer in [pool.submit(ask, question) for question in asked]]


def percentiles(seconds):
    cuts = statistics.quantiles(seconds, n=100)
    return " ".join(f"p{cut} {1e3 * cuts[cut - 1]:.1f}" for cut in (50, 90, 99))


def timed(call, question):
    begin = time.monotonic()
    return call(question), time.monotonic() - begin


def show(name, answers, seconds):
    tokens = sum(len(answer[0]) for answer, _ in answers)
    print(f"# {name}: {tokens / seconds:.0f} tokens/s, {len(answers) / seconds:.0f} requests/s; "
          f"ms to the answer: {percentiles([latency for _, latency in answers])}")


def many_at_once_as_each_alone(folder):
    story(folder)
    asked = list(questions(MANY))
    with Server(folder, folder + "/log") as server:
        call = lambda question: server.generate("story", **question)
        begin = time.monotonic()
        alone = [timed(call, question) for question in asked]
        show("one at a time", alone, time.monotonic() - begin)
        begin = time.monotonic()
        answers = together(call, asked)
        show(f"{MANY} at once", answers, time.monotonic() - begin)
        for question, (one, _), (other, _) in zip(asked, alone, answers):
            assert one == other, (question, one, other)
        count = 2 * sum(len(answer[0]) for answer, _ in alone)
        server.wait_for_metrics("story", generated_tokens_total=count, accepted_requests_total=2 * MANY,
                                running_requests=0, waiting_requests=0, used_blocks=0)
        total, _ = server.metrics("story")
        assert total["reused_tokens_total"] > 0
        steps, rows = total["steps_total"], total["step_tokens_total"]
        print(f"# {steps:.0f} steps of {rows / steps:.1f} tokens; of {total['prompt_tokens_total']:.0f} tokens of prompts "
              f"{total['reused_tokens_total']:.0f} were found in the cache")


def streams_give_each_token(folder):
    """One stream after the other, and some at once: the server's front end loses events of more (docs/serving.md)."""
    story(folder)
    asked = [{**question, "max_tokens": 20} for question in questions(8)]
    with Server(folder, folder + "/log") as server:
        call = lambda question: server.stream("story", **question)
        alone = [call(question) for question in asked]
        answers = [answer for answer, _ in together(call, asked)]
        for name, streams in [("one stream at a time", alone), (f"{len(asked)} streams at once", answers)]:
            print(f"# {name}: ms to the first token: {percentiles([stream[3] for stream in streams])}")
        for question, one, other in zip(asked, alone, answers):
            assert one[:3] == other[:3] == server.generate("story", **question), question


def few_blocks_give_the_same(folder):
    """Less cache than what runs asks for: requests are preempted, and prompts computed in pieces."""
    story(folder)
    story(folder, "narrow", max_batch=16, max_step_tokens=16, blocks=40, block_size=8)
    asked = list(questions(40))
    with Server(folder, folder + "/log") as server:
        answers = together(lambda question: server.generate("narrow", **question), asked)
        for question, (answer, _) in zip(asked, answers):
            assert answer == server.generate("story", **question), question
        assert server.metrics("narrow")[0]["preemptions_total"] > 0


def instances_share_the_work(folder):
    story(folder, instances="instance_group [ { kind: KIND_CPU count: 2 } ]\n", threads=1)
    asked = list(questions(60))
    with Server(folder, folder + "/log") as server:
        together(lambda question: server.generate("story", **question), asked)
        server.wait_for_metrics("story", accepted_requests_total=len(asked))
        accepted = [of["accepted_requests_total"] for of in server.metrics("story")[1].values()]
        print(f"# accepted by each instance: {accepted}")
        assert len(accepted) == 2 and min(accepted) > 0


def devices_take_turns(folder):
    """One instance on a simulated GPU, the other on the CPU: both tell the same."""
    story(folder, instances="instance_group [ { kind: KIND_CPU count: 2 } ]\n", device="rocm:0,cpu")
    asked = [{"text_input": text, "max_tokens": 4} for text in BEGINNINGS[:3]] * 6
    with Server(folder, folder + "/log", (), simulated_amd(folder)) as server:
        answers = [answer[:3] for answer, _ in together(lambda question: server.stream("story", **question), asked)]
        assert answers == answers[:3] * 6, answers
        accepted = [of["accepted_requests_total"] for of in server.metrics("story")[1].values()]
        print(f"# accepted by each device: {accepted}")
        assert len(accepted) == 2 and min(accepted) > 0


# ---- Operators ----


FORMATS = {"FP32": "f", "FP16": "e", "INT32": "i", "INT64": "q", "BF16": "H", "UINT8": "B", "INT8": "b"}


def infer(server, model, wanted, **inputs):
    """Asks with binary tensors: inputs are (datatype, shape, values), and of the output named the same comes back."""
    header, data = {"inputs": [], "outputs": [{"name": wanted, "parameters": {"binary_data": True}}]}, b""
    for name, (datatype, shape, values) in inputs.items():
        some = struct.pack(f"<{len(values)}{FORMATS[datatype]}", *values)
        header["inputs"].append({"name": name, "datatype": datatype, "shape": shape,
                                 "parameters": {"binary_data_size": len(some)}})
        data += some
    text = json.dumps(header).encode()
    status, answer, length = server.post_binary(f"/v2/models/{model}/infer", text + data, len(text))
    if status != 200:
        raise Failure(status, json.loads(answer)["error"])
    output = json.loads(answer[:length])["outputs"][0]
    size = struct.calcsize(FORMATS[output["datatype"]])
    return output["datatype"], output["shape"], list(struct.unpack(
        f"<{(len(answer) - length) // size}{FORMATS[output['datatype']]}", answer[length:]))


def softmax(row):
    most = max(row)
    parts = [math.exp(x - most) for x in row]
    return [part / sum(parts) for part in parts]


def operator(folder, name, function=None, **values):
    add_model(folder, name, CPU + parameters(function=function or name, **values))


def close(found, expected, tolerance):
    assert len(found) == len(expected), (len(found), len(expected))
    for one, other in zip(found, expected):
        assert abs(one - other) <= tolerance * (1 + abs(other)), (found, expected)


def operators_are_models(folder):
    for name in ["softmax_f16", "softmax_f32", "gemm_f32", "add_rmsnorm_f32", "embedding_f32", "silu_mul_f32", "add_bf16",
                 "quantize_int8_f32", "mha_f32"]:
        operator(folder, name)
    operator(folder, "gelu_tanh", "add_gelu_f32", approx="tanh")
    operator(folder, "ids_of_64_bits", "embedding_f32", index_type="i64")
    operator(folder, "gated", "gemm_f32", gated="yes", activation="silu")
    operator(folder, "small", "softmax_f32", max_bytes=100)
    numbers = random.Random(11)
    rows, cols = 5, 37
    x = [numbers.uniform(-4, 4) for _ in range(rows * cols)]
    with Server(folder, folder + "/log") as server:
        for name, datatype, tolerance in [("softmax_f32", "FP32", 1e-5), ("softmax_f16", "FP16", 2e-3)]:
            kind, shape, y = infer(server, name, "y", x=(datatype, [rows, cols], x))
            assert (kind, shape) == (datatype, [rows, cols])
            for row in range(rows):
                close(y[row * cols:(row + 1) * cols], softmax(x[row * cols:(row + 1) * cols]), tolerance)
        a, b = x[:6], x[6:18]
        expected = [sum(a[2 * i + k] * b[2 * j + k] for k in range(2)) for i in range(3) for j in range(6)]
        kind, shape, d = infer(server, "gemm_f32", "d", a=("FP32", [1, 3, 2], a), b=("FP32", [1, 6, 2], b))
        assert shape == [1, 3, 6]
        close(d, expected, 1e-5)
        biased = infer(server, "gemm_f32", "d", a=("FP32", [1, 3, 2], a), b=("FP32", [1, 6, 2], b),
                       bias=("FP32", [6], [1, 2, 3, 4, 5, 6]))[2]
        close(biased, [value + 1 + i % 6 for i, value in enumerate(expected)], 1e-5)
        shape, gated = infer(server, "gated", "d", a=("FP32", [1, 3, 2], a), b=("FP32", [1, 6, 2], b))[1:]
        assert shape == [1, 3, 3]
        halves = [(expected[6 * i + j], expected[6 * i + j + 3]) for i in range(3) for j in range(3)]
        close(gated, [gate / (1 + math.exp(-gate)) * up for gate, up in halves], 1e-5)
        two = {"x": ("FP32", [rows, cols], x), "residual": ("FP32", [rows, cols], [1] * len(x))}
        close(infer(server, "add_rmsnorm_f32", "sum", **two)[2], [value + 1 for value in x], 1e-6)
        ids = [3, 0, 4]
        table = [value for i in ids for value in x[i * cols:(i + 1) * cols]]
        for name, datatype in [("embedding_f32", "INT32"), ("ids_of_64_bits", "INT64")]:
            shape, y = infer(server, name, "y", table=("FP32", [rows, cols], x), ids=(datatype, [3], ids))[1:]
            assert shape == [3, cols]
            close(y, table, 1e-7)
        silu = [g / (1 + math.exp(-g)) * u for g, u in zip(x[:4], x[4:8])]
        close(infer(server, "silu_mul_f32", "y", gate=("FP32", [1, 4], x[:4]), up=("FP32", [1, 4], x[4:8]))[2], silu, 1e-5)
        close(infer(server, "silu_mul_f32", "y", gate=("FP32", [1, 8], x[:8]))[2], silu, 1e-5)
        assert infer(server, "add_bf16", "y", a=("BF16", [2], [0x3f80, 0x4000]), b=("BF16", [2], [0x4000, 0x4040])) == \
            ("BF16", [2], [0x4040, 0x40a0])
        gelu = [0.5 * t * (1 + math.tanh(math.sqrt(2 / math.pi) * (t + 0.044715 * t ** 3))) for t in x]
        close(infer(server, "gelu_tanh", "y", x=("FP32", [rows, cols], x))[2], gelu, 1e-5)
        assert infer(server, "quantize_int8_f32", "codes", x=("FP32", [1, 3], [1, -2, 0.5]))[2] == [64, -127, 32]
        # As JSON, and with nothing in it.
        answer = server.ask("/v2/models/softmax_f32/infer", {"inputs": [
            {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0, 0]}]})
        assert answer["outputs"][0]["data"] == [0.5, 0.5]
        assert infer(server, "softmax_f32", "y", x=("FP32", [0, 4], [])) == ("FP32", [0, 4], [])
        for text, model, inputs in [
                ("dimension 2 of b says that k is 3, and others 2", "gemm_f32",
                 {"a": ("FP32", [1, 3, 2], a), "b": ("FP32", [1, 4, 3], b)}),
                ("larger than max_bytes of the model, 100", "small", {"x": ("FP32", [1, 20], x[:20])}),
                ("model 'softmax_f32' expects 'FP32'", "softmax_f32", {"x": ("FP16", [1, 2], [0, 0])}),
                ("unexpected shape", "softmax_f32", {"x": ("FP32", [4], [0, 0, 0, 0])}),
                ("expected number of inputs", "gemm_f32", {"a": ("FP32", [1, 1, 1], [1])})]:
            refused(400, text, infer, server, model, "y" if model != "gemm_f32" else "d", **inputs)


def every_operator_has_a_model(folder):
    """Each function loads, with the inputs and outputs of its description, unless it updates a tensor in place or has a shape
    that the server has not, of parts of a size; and is refused for that."""
    lines = subprocess.run([os.path.join(os.environ["KILN_BUILD"], "kiln"), "run", "--help"], capture_output=True,
                           text=True, check=True).stdout
    functions = sorted(set(re.findall(r"\b[a-z0-9_]+_(?:f32|f16|bf16)\b", lines)))
    for function in functions:
        operator(folder, function)
    with Server(folder, folder + "/log", ["--exit-on-error=false", "--strict-readiness=false"]) as server:
        loaded = [function for function in functions if server.get(f"/v2/models/{function}/ready", server.port)[0] == 200]
        log = server.log_text()
        parts = {f"{name}_{part}" for name in ("dequantize_w4a16", "gemm_w4a16") for part in ("f32", "f16", "bf16")}
        for function in set(functions) - set(loaded):
            assert f"function {function} updates " in log or function in parts and re.search(
                f"function {function}: [a-z_]* has a type or a shape that the server has not", log), function
        print(f"# {len(loaded)} of {len(functions)} functions are models")
        assert len(loaded) > 40 and "softmax_f16" in loaded


# ---- What is wrong ----


def wrong_requests_are_refused(folder):
    story(folder)
    with Server(folder, folder + "/log") as server:
        path = "/v2/models/story/generate"
        refused(500, "failed to parse the request JSON", server.ask, path, b'{"text_input": "Once')
        refused(500, "failed to parse the request JSON", server.ask, path, b"Once upon a time")
        refused(400, "missing required input", server.ask, path, b"{}")
        refused(400, "text_input is no UTF-8: byte 1 is wrong", server.ask, path, b'{"text_input": "a\xff\xfe"}')
        refused(400, "text_input is no UTF-8: byte 0", server.ask, path, b'{"text_input": "\xed\xa0\x80"}')
        refused(400, "text_input is no UTF-8: byte 2", server.ask, path, b'{"text_input": "ab\xe2\x82"}')
        refused(400, "text_input has a NUL", server.generate, "story", text_input="a\0b")
        refused(400, "at most 512 tokens", server.generate, "story", text_input="once upon a time " * 400)
        refused(400, "at most 512 tokens", server.generate, "story", text_input="x" * 4_000_000)
        for name, value, rule in [("max_tokens", 0, "1 or more"), ("temperature", -1.0, "from 0 to 1e6"),
                                  ("top_p", 1.5, "from 0 to 1"), ("min_p", -0.5, "from 0 to 1"),
                                  ("top_k", -1, "0 or more")]:
            refused(400, f"{name} must be {rule}", server.generate, "story", text_input="a", **{name: value})
            refused(400, f"{name} must be {rule}", server.stream, "story", text_input="a", **{name: value})
        refused(500, "", server.generate, "story", text_input=5)
        refused(500, "", server.generate, "story", text_input="a", max_tokens="7")
        assert server.generate("story", text_input="Once", max_tokens=3)[2] == "length"
        server.wait_for_metrics("story", accepted_requests_total=1, failed_requests_total=0)


def cut_off_requests_leave_the_server_well(folder):
    """Clients that go away: within their request, before their answer, and within it."""
    story(folder)
    body = json.dumps({"text_input": "Once", "stream": True, "temperature": 1.0, "seed": 3}).encode()
    with Server(folder, folder + "/log") as server:
        for sent in range(0, len(body), 7):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(b"POST /v2/models/story/generate_stream HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" %
                               len(body) + body[:sent])
        streams = 20
        for _ in range(streams):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(b"POST /v2/models/story/generate_stream HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" %
                               len(body) + body)
                client.recv(200)
        server.wait_for_metrics("story", accepted_requests_total=streams, running_requests=0, waiting_requests=0,
                                used_blocks=0)
        cancelled = server.metrics("story")[0]["cancelled_requests_total"]
        print(f"# of {streams} requests {cancelled:.0f} were cancelled")
        assert cancelled > 0
        assert server.generate("story", text_input="Once", max_tokens=3)[2] == "length"


def full_queues_refuse(folder):
    story(folder, max_batch=1, max_queue=3)
    with Server(folder, folder + "/log") as server:
        question = {"text_input": "", "max_tokens": 200}

        def ask(_):
            try:
                return server.generate("story", **question)
            except Failure as failure:
                assert failure.status == 400 and "the queue of story is full: 3 requests wait" in failure.text, failure
                return None

        answers = [answer for answer, _ in together(ask, [None] * 40)]
        good = [answer for answer in answers if answer]
        assert 4 <= len(good) < 40 and all(answer == good[0] for answer in good)
        server.wait_for_metrics("story", refused_requests_total=40 - len(good))
        print(f"# of 40 requests {len(good)} were answered and the others refused")


def whole_configurations_need_no_completing(folder):
    def tensor(kind, name, dtype, dimensions, more=""):
        return f"{kind} [ {{ name: \"{name}\" data_type: TYPE_{dtype} dims: {dimensions} {more} }} ]\n"

    tensors = (tensor("input", "text_input", "STRING", [1]) + tensor("input", "max_tokens", "INT32", [1], "optional: true") +
               tensor("output", "text_output", "STRING", [1]) + tensor("output", "token_ids", "INT32", [-1]) +
               tensor("output", "finish_reason", "STRING", [1]))
    story(folder, instances=CPU + tensors + "model_transaction_policy { decoupled: true }\n")
    story(folder, "coupled", instances=CPU + tensors)
    add_model(folder, "softmax_f32", CPU + parameters(function="softmax_f32") + tensor("input", "x", "FP32", [-1, -1]) +
              tensor("output", "y", "FP32", [-1, -1]))
    with Server(folder, folder + "/log", ["--disable-auto-complete-config", "--exit-on-error=false",
                                          "--strict-readiness=false"]) as server:
        assert server.generate("story", text_input="", max_tokens=3)[1] == "Once upon a"
        assert infer(server, "softmax_f32", "y", x=("FP32", [1, 2], [1, 1]))[2] == [0.5, 0.5]
        assert "model_transaction_policy must have decoupled: true" in server.log_text()


def wrong_models_are_refused(folder):
    story(folder)
    story(folder, "misspelt", modelfile="x")
    story(folder, "odd_blocks", block_size=12)
    story(folder, "too_many", max_batch=5000)
    story(folder, "no_device", device="cuda:7")
    story(folder, "strange_device", device="gpu")
    story(folder, "strange_precision", precision="fp32")
    story(folder, "batched", instances="max_batch_size: 8\n" + CPU)
    add_model(folder, "no_file", CPU)
    reasons = {
        "misspelt": "parameter modelfile: a model of text has these: model_file",
        "odd_blocks": "parameter block_size must be a power of two",
        "too_many": 'parameter max_batch is \\"5000\\": must be a whole number from 1 to 4096',
        "no_device": "driver absent: ",
        "strange_device": 'parameter device is \\"gpu\\": must be cpu, cuda:N or rocm:N',
        "strange_precision": "must be f32, f16 or bf16",
        "batched": "max_batch_size must be 0",
        "no_file": "/no_file/1/model.bin: No such file or directory",
    }
    with Server(folder, folder + "/log", ["--exit-on-error=false", "--strict-readiness=false"]) as server:
        assert server.generate("story", text_input="Once", max_tokens=3)[2] == "length"
        log = server.log_text()
        for name, reason in reasons.items():
            assert any(name in line and (reason in line or reason.replace("\\", "") in line)
                       for line in log.splitlines()), (name, reason)


# ---- What fails ----


def lost_devices_fail_their_requests(folder):
    """A simulated device on which a kernel takes too long once sequences are long: what runs then fails with the reason,
    the server lives, and opens the device anew."""
    story(folder)
    story(folder, "lost", device="rocm:0", max_step_tokens=64)

    def ask(question):
        try:
            return server.stream("lost", **question)
        except Failure as failure:
            return failure

    with Server(folder, folder + "/log", (), {**simulated_amd(folder), "KILN_SIM_BUDGET": "12000"}) as server:
        short = {"text_input": "Once", "max_tokens": 3}
        before = ask(short)[:3]
        assert before == server.stream("story", **short)[:3]
        asked = [{"text_input": "", "max_tokens": 200}] * 4
        answers = [answer for answer, _ in together(ask, asked)]
        print(f"# {answers[0]}")
        assert all(isinstance(answer, Failure) and "device lost: rocm:0 is lost: HSA_" in answer.text
                   for answer in answers), answers
        assert server.process.poll() is None
        assert server.generate("story", **short)[2] == "length"
        server.wait_for_metrics("lost", failed_requests_total=len(answers), running_requests=0)
        time.sleep(1)
        assert ask(short)[:3] == before


def unloading_lets_requests_end(folder):
    story(folder)
    with Server(folder, folder + "/log", ["--model-control-mode=explicit", "--load-model=story"]) as server:
        question = {"text_input": "", "max_tokens": 400, "temperature": 1.0, "seed": 11}
        alone = server.generate("story", **question)
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = [pool.submit(server.generate, "story", **question) for _ in range(20)]
            while server.metrics("story")[0]["accepted_requests_total"] < 21:
                time.sleep(0.01)
            assert server.post("/v2/repository/models/story/unload", "{}")[0] == 200
            assert all(answer.result() == alone for answer in answers)
        while server.get("/v2/models/story/ready", server.port)[0] == 200:
            time.sleep(0.1)
        assert server.post("/v2/repository/models/story/load", "{}")[0] == 200
        assert server.generate("story", **question) == alone


def shutdown_loses_nothing_silently(folder):
    """While many requests run the server is told to end: each has its whole answer, an error, or was never taken."""
    story(folder)
    with Server(folder, folder + "/log", ["--exit-timeout-secs=30"]) as server:
        question = {"text_input": "", "max_tokens": 400, "temperature": 1.0, "seed": 11}
        alone = server.generate("story", **question)
        accepted = server.metrics("story")[0]["accepted_requests_total"]

        def ask(_):
            try:
                return server.generate("story", **question)
            except (Failure, OSError) as error:
                return error

        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            answers = [pool.submit(ask, None) for _ in range(100)]
            while server.metrics("story")[0]["accepted_requests_total"] < accepted + 60:
                time.sleep(0.01)
            server.terminate()
            answers = [answer.result() for answer in answers]
        server.process.wait(60)
        whole = [answer for answer in answers if not isinstance(answer, Exception)]
        told = [answer for answer in answers if isinstance(answer, Failure)]
        print(f"# {len(whole)} whole answers, {len(told)} errors, {len(answers) - len(whole) - len(told)} not taken")
        assert all(answer == alone for answer in whole)
        assert len(whole) + len(told) >= 60, [str(answer) for answer in answers if isinstance(answer, OSError)]
        assert server.process.returncode == 0, server.log_text()[-2000:]


CASES = [tells_the_story, many_at_once_as_each_alone, streams_give_each_token, few_blocks_give_the_same,
         instances_share_the_work, devices_take_turns, operators_are_models, every_operator_has_a_model, whole_configurations_need_no_completing,
         wrong_requests_are_refused, cut_off_requests_leave_the_server_well, full_queues_refuse, wrong_models_are_refused,
         lost_devices_fail_their_requests, unloading_lets_requests_end, shutdown_loses_nothing_silently]

if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print("\n".join(case.__name__ for case in CASES))
    else:
        next(case for case in CASES if case.__name__ == sys.argv[1])(os.path.abspath(sys.argv[2]))
