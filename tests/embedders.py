"""An embedder with a fixed list of meanings, and models and servers for tests of the others."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from claude_mem.errors import EmbedderError
from claude_mem.index.text.words import pieces
from claude_mem.index.vectors.blocks import Floats
from claude_mem.index.vectors.lazy_index import SemanticIndex

MEANINGS = (
    "login signin authentication password",
    "loop redirect circle again",
    "database sqlite storage table",
    "slow performance latency sluggish",
    "lamp light lantern bulb",
    "gull bird",
)


class Concepts:
    """A text means the lists that its words are in, and nothing else."""

    dimension = 64

    def __init__(self, identity: str = "concepts", shift: int = 0) -> None:
        self.id = identity
        self.encoded: list[str] = []
        self._axes = {
            word: (number + shift) % self.dimension
            for number, words in enumerate(MEANINGS)
            for word in words.split()
        }

    def encode(self, texts: Sequence[str]) -> Floats:
        self.encoded += texts
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in pieces(text.lower()):
                if word in self._axes:
                    row[self._axes[word]] += 1
            row /= np.linalg.norm(row) or 1
        return vectors


def new_index(embedder: Concepts | None = None, **options: Any) -> SemanticIndex:
    used = embedder or Concepts()
    return SemanticIndex(used.id, lambda: used, **options)


def broken(reason: str = "the model is not there") -> SemanticIndex:
    def load() -> Concepts:
        raise EmbedderError(reason)

    return SemanticIndex("broken", load)


# A transformer in a directory: the vector of a token is its row of a table


def onnx_directory(directory: Path, words: Sequence[str], dimension: int = 8) -> Path:
    directory.mkdir()
    vocabulary = {word: number for number, word in enumerate(("[PAD]", "[UNK]", *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(directory / "tokenizer.json"))
    rows = np.random.default_rng(1).standard_normal((len(vocabulary), dimension), np.float32)
    (directory / "model.onnx").write_bytes(_gather_model(rows))
    return directory


def _gather_model(rows: "np.ndarray[Any, np.dtype[np.float32]]") -> bytes:
    """ONNX is protobuf; this is as much of it as a table needs."""
    axis = _field(1, b"axis") + _field(3, 0) + _field(20, 2)
    node = b"".join((
        _field(1, b"rows"), _field(1, b"input_ids"), _field(2, b"last_hidden_state"),
        _field(4, b"Gather"), _field(5, axis),
    ))  # fmt: skip
    size = b"".join(_field(1, count) for count in rows.shape)
    table = size + _field(2, 1) + _field(8, b"rows") + _field(9, rows.tobytes())
    graph = b"".join((
        _field(1, node), _field(2, b"table"), _field(5, table),
        _field(11, _value("input_ids", 7, "n", "t")),
        _field(11, _value("attention_mask", 7, "n", "t")),
        _field(12, _value("last_hidden_state", 1, "n", "t", rows.shape[1])),
    ))  # fmt: skip
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, 13))


def _value(name: str, kind: int, *sizes: str | int) -> bytes:
    shape = b"".join(
        _field(1, _field(1, size) if isinstance(size, int) else _field(2, size.encode()))
        for size in sizes
    )
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes((*encoded, value))


# A server on loopback


class EmbeddingServer(HTTPServer):
    """Answers like OpenAI or Ollama, or with the reply that a test sets."""

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.way, self.embedder = way, Concepts()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.reply: tuple[int, bytes] | None = None
        self.may_answer = threading.Event()  # until then it takes requests and says nothing
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/embed"


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingServer

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(body)
        server.keys.append(self.headers["Authorization"])
        server.may_answer.wait()
        status, answer = server.reply or (200, self._answer(body["input"]))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", server.url + "/elsewhere")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(self, texts: list[str]) -> bytes:
        rows = self.server.embedder.encode(texts) * np.float32(3)
        if self.server.way == "ollama":
            return json.dumps({"embeddings": rows.tolist()}).encode()
        data = [{"index": number, "embedding": row} for number, row in enumerate(rows.tolist())]
        return json.dumps({"data": data[::-1]}).encode()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def embedding_server(way: str = "openai") -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(way)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
