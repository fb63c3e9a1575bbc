"""Local transformer models, with the extra `semantic`: an ONNX directory, or fastembed."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from claude_mem.distribution import install_command
from claude_mem.errors import EmbedderError
from claude_mem.index.vectors.blocks import Floats, normalise

BATCH = 32
MAX_TOKENS = 256


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """Reads model.onnx and tokenizer.json; averages token vectors, unless the model does it."""

    id: str
    dimension: int
    session: Any
    tokenizer: Any

    @classmethod
    def open(cls, identity: str, directory: Path) -> "OnnxModel":
        runtime, tokenizers = _import("onnxruntime"), _import("tokenizers")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
            tokenizer.enable_truncation(MAX_TOKENS)
            tokenizer.enable_padding()
            options = runtime.SessionOptions()
            options.intra_op_num_threads = 1  # the same numbers on every machine
            options.enable_cpu_mem_arena = False
            session = runtime.InferenceSession(
                str(directory / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # both libraries raise errors of their own
            raise EmbedderError(f"{directory} contains no usable model: {error}") from None
        dimension = session.get_outputs()[0].shape[-1]
        if not isinstance(dimension, int):
            raise EmbedderError(f"{directory / 'model.onnx'} declares no vector dimension")
        return cls(identity, dimension, session, tokenizer)

    def encode(self, texts: Sequence[str]) -> Floats:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        encodings = self.tokenizer.encode_batch(list(texts))
        lengths = [sum(encoding.attention_mask) for encoding in encodings]
        nonempty = [number for number, text in enumerate(texts) if text.strip()]
        nonempty.sort(key=lambda number: (lengths[number], number))  # for little padding
        for start in range(0, len(nonempty), BATCH):
            numbers = nonempty[start : start + BATCH]
            length = max(lengths[number] for number in numbers)
            vectors[numbers] = self._run([encodings[number] for number in numbers], length)
        return normalise(vectors)

    def _run(self, encodings: list[Any], length: int) -> Floats:
        mask = np.array([encoding.attention_mask[:length] for encoding in encodings], np.int64)
        inputs = {
            "input_ids": np.array([encoding.ids[:length] for encoding in encodings], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        names = [tensor.name for tensor in self.session.get_inputs()]
        (output, *_) = self.session.run(None, {n: inputs[n] for n in names if n in inputs})
        if output.ndim == 2:
            return np.asarray(output, np.float32)
        weights = mask[:, :, None].astype(np.float32)
        averaged: Floats = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        return averaged


@dataclass(frozen=True, slots=True)
class FastembedModel:
    id: str
    dimension: int
    model: Any

    @classmethod
    def open(cls, identity: str, name: str) -> "FastembedModel":
        """Downloads the model if fastembed has not done so before."""
        fastembed = _import("fastembed")
        try:
            model = fastembed.TextEmbedding(name)
            (probe,) = model.embed(["a lamp"])
        except Exception as error:  # network, files, an unknown name
            raise EmbedderError(f"fastembed cannot load {name!r}: {error}") from None
        return cls(identity, len(probe), model)

    def encode(self, texts: Sequence[str]) -> Floats:
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        nonempty = [number for number, text in enumerate(texts) if text.strip()]
        if nonempty:
            vectors[nonempty] = list(self.model.embed([texts[number] for number in nonempty]))
        return normalise(vectors)


def _import(name: str) -> Any:
    # onnxruntime sends telemetry unless this is set before it is imported; fastembed imports it.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        return importlib.import_module(name)
    except ImportError:
        raise EmbedderError(
            f"{name} is not installed: `{install_command('semantic')}`, or "
            "`claude-mem settings CLAUDE_MEM_EMBEDDER static`"
        ) from None
