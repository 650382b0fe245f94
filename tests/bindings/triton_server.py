"""The real Triton Inference Server for tests: started on free ports of the loopback, asked over HTTP, stopped."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

BACKENDS = os.path.abspath(os.path.join(os.environ["KILN_BUILD"], "triton", "backends"))
PROGRAM = os.path.join(os.environ["TRITON_DIR"], "pytriton", "tritonserver", "bin", "tritonserver")
TIMEOUT = 120


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def parameters(**values):
    """The parameters of a config.pbtxt."""
    return "".join(f'parameters {{ key: "{key}" value {{ string_value: {json.dumps(str(value))} }} }}\n'
                   for key, value in values.items())


def add_model(repository, name, config):
    os.makedirs(os.path.join(repository, name, "1"), exist_ok=True)
    with open(os.path.join(repository, name, "config.pbtxt"), "w") as file:
        file.write('backend: "kiln"\n' + config)


class Failure(Exception):
    """An answer that is an error: its HTTP status and its text."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


class Server:
    def __init__(self, repository, log, arguments=(), environment=None):
        self.port, self.metrics_port, self.log = free_port(), free_port(), log
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                [PROGRAM, f"--model-repository={repository}", f"--backend-directory={BACKENDS}",
                 "--http-address=127.0.0.1", f"--http-port={self.port}", "--metrics-address=127.0.0.1",
                 f"--metrics-port={self.metrics_port}", "--allow-grpc=false", "--allow-gpu-metrics=false", *arguments],
                stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})
        for _ in range(600):
            if self.process.poll() is not None or self.is_ready():
                break
            time.sleep(0.1)
        assert self.is_ready(), self.log_text()[-4000:]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.terminate()
            self.process.wait(TIMEOUT)

    def log_text(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def is_ready(self):
        with contextlib.suppress(OSError):
            return self.get("/v2/health/ready", self.port)[0] == 200
        return False

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def get(self, path, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def post(self, path, body):
        """The status and the bytes of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def post_binary(self, path, body, header_size):
        """A question in JSON with binary tensors behind it; the answer, and how much of it is JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request("POST", path, body, {"Inference-Header-Content-Length": str(header_size)})
            response = connection.getresponse()
            answer = response.read()
            return response.status, answer, int(response.headers.get("Inference-Header-Content-Length", len(answer)))
        finally:
            connection.close()

    def ask(self, path, question):
        """The answer to a question, both as JSON."""
        status, body = self.post(path, question if isinstance(question, bytes) else json.dumps(question))
        answer = json.loads(body) if body else {}
        if status != 200 or "error" in answer:
            raise Failure(status, answer.get("error", ""))
        return answer

    def generate(self, model, **question):
        answer = self.ask(f"/v2/models/{model}/generate", question)
        return tokens_of(answer), answer["text_output"], answer["finish_reason"]

    def stream(self, model, **question):
        """As generate, one answer after the other; and the seconds until the first."""
        tokens, text, reason, begin, first = [], "", "", time.monotonic(), None
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            connection.request("POST", f"/v2/models/{model}/generate_stream", json.dumps({**question, "stream": True}),
                               {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise Failure(response.status, json.loads(response.read().removeprefix(b"data: "))["error"])
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                answer = json.loads(line[6:])
                if "error" in answer:
                    raise Failure(response.status, answer["error"])
                first = first or time.monotonic() - begin
                assert not reason, "an answer after the last one"
                assert len(tokens_of(answer)) == (not answer["finish_reason"]), answer
                tokens += tokens_of(answer)
                text += answer["text_output"]
                reason = answer["finish_reason"]
        finally:
            connection.close()
        if not reason:
            raise Failure(response.status, "the stream has no end")
        return tokens, text, reason, first

    def metrics(self, model):
        """kiln's metrics of a model: the name without kiln_, summed over instances; and those of each instance."""
        total, instances = {}, {}
        pattern = re.compile(r'^kiln_(\w+)\{instance="([^"]*)",model="([^"]*)",version="1"\} (\S+)$', re.M)
        for name, instance, of, value in pattern.findall(self.get("/metrics", self.metrics_port)[1]):
            if of == model:
                total[name] = total.get(name, 0) + float(value)
                instances.setdefault(instance, {})[name] = float(value)
        return total, instances

    def wait_for_metrics(self, model, **expected):
        """A request is answered before it is counted."""
        for _ in range(100):
            total, _ = self.metrics(model)
            if all(total[name] == value for name, value in expected.items()):
                return
            time.sleep(0.1)
        raise AssertionError(f"{total} does not become {expected}")


def tokens_of(answer):
    """One token is written as a number, and several as an array."""
    tokens = answer["token_ids"]
    return tokens if isinstance(tokens, list) else [tokens]
