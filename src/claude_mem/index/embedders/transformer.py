"""Transformers on this machine, for the extra `semantic`: an ONNX directory, or fastembed."""

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from claude_mem.errors import EmbedderError
from claude_mem.index.vectors.blocks import Floats, of_length_one

AT_ONCE = 32
LONGEST = 256  # tokens


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """model.onnx and tokenizer.json; what each token means is averaged, unless the model does."""

    id: str
    dimension: int
    session: Any
    tokenizer: Any

    @classmethod
    def open(cls, identity: str, directory: Path) -> "OnnxModel":
        runtime, tokenizers = _import("onnxruntime"), _import("tokenizers")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
            tokenizer.enable_truncation(LONGEST)
            tokenizer.enable_padding()
            options = runtime.SessionOptions()
            options.intra_op_num_threads = 1  # the same numbers on every machine
            options.enable_cpu_mem_arena = False
            session = runtime.InferenceSession(
                str(directory / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # each of the two has errors of its own
            raise EmbedderError(f"{directory} holds no model that can be used: {error}") from None
        dimension = session.get_outputs()[0].shape[-1]
        if not isinstance(dimension, int):
            raise EmbedderError(f"{directory / 'model.onnx'} does not say how long its vectors are")
        return cls(identity, dimension, session, tokenizer)

    def encode(self, texts: Sequence[str]) -> Floats:
        made = np.zeros((len(texts), self.dimension), np.float32)
        tokens = self.tokenizer.encode_batch(list(texts))
        said = [number for number, text in enumerate(texts) if text.strip()]
        said.sort(key=lambda number: (sum(tokens[number].attention_mask), number))
        for start in range(0, len(said), AT_ONCE):  # short ones together: little is padding
            numbers = said[start : start + AT_ONCE]
            longest = max(sum(tokens[number].attention_mask) for number in numbers)
            made[numbers] = self._run([tokens[number] for number in numbers], longest)
        return of_length_one(made)

    def _run(self, tokens: list[Any], longest: int) -> Floats:
        mask = np.array([one.attention_mask[:longest] for one in tokens], np.int64)
        given = {
            "input_ids": np.array([one.ids[:longest] for one in tokens], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        wanted = {one.name for one in self.session.get_inputs()}
        (found, *_) = self.session.run(
            None, {name: value for name, value in given.items() if name in wanted}
        )
        if found.ndim == 2:
            return np.asarray(found, np.float32)
        weights = mask[:, :, None].astype(np.float32)
        averaged: Floats = (found * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        return averaged


@dataclass(frozen=True, slots=True)
class FastembedModel:
    id: str
    dimension: int
    model: Any

    @classmethod
    def open(cls, identity: str, name: str) -> "FastembedModel":
        """Downloads the model, where fastembed has not done so before."""
        fastembed = _import("fastembed")
        try:
            model = fastembed.TextEmbedding(name)
            (probe,) = model.embed(["a lamp"])
        except Exception as error:  # of the network, of files, of the name
            raise EmbedderError(f"fastembed cannot load {name!r}: {error}") from None
        return cls(identity, len(probe), model)

    def encode(self, texts: Sequence[str]) -> Floats:
        made = np.zeros((len(texts), self.dimension), np.float32)
        said = [number for number, text in enumerate(texts) if text.strip()]
        if said:
            made[said] = list(self.model.embed([texts[number] for number in said]))
        return of_length_one(made)


def _import(name: str) -> Any:
    # onnxruntime tells its maker how it is used unless this is set before it is loaded; fastembed
    # brings onnxruntime too.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        return importlib.import_module(name)
    except ImportError:
        raise EmbedderError(
            f"{name} is not installed: `pip install 'claudemem[semantic]'`, or "
            "`claude-mem settings CLAUDE_MEM_EMBEDDER static`"
        ) from None
