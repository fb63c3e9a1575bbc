"""The contract of all embedders, and the errors of each."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from claude_mem.config import EmbedderSettings, Layout, load_settings, record_consent
from claude_mem.errors import EmbedderError
from claude_mem.index.embedders import embedder
from claude_mem.index.vectors.lazy_index import SemanticIndex
from tests.embedders import Concepts, embedding_server, onnx_directory

TEXTS = ("login loop", "a slow database", "", "lamp", "   \n", "login loop")
WORDS = sorted({word for text in TEXTS for word in text.split()})


def load(directory: Path, settings: EmbedderSettings) -> embedder.Embedder:
    """Loads an embedder with the user's consent to its address."""
    layout = Layout(directory)
    record_consent(layout, embedder.CONSENT, settings.url)
    return embedder.load(settings, layout)


def settings_for(directory: Path, kind: str, **more: str) -> EmbedderSettings:
    named = {f"CLAUDE_MEM_EMBEDDER{name}": value for name, value in more.items()}
    return load_settings(
        {"CLAUDE_MEM_DATA_DIR": str(directory), "CLAUDE_MEM_EMBEDDER": kind, **named}
    ).embedder


@contextmanager
def static(directory: Path, _: pytest.MonkeyPatch) -> Iterator[EmbedderSettings]:
    yield settings_for(directory, "static")


@contextmanager
def onnx(directory: Path, _: pytest.MonkeyPatch) -> Iterator[EmbedderSettings]:
    model = onnx_directory(directory / "model", WORDS)
    yield settings_for(directory, "onnx", _MODEL=str(model))


@contextmanager
def fastembed(directory: Path, patch: pytest.MonkeyPatch) -> Iterator[EmbedderSettings]:
    """A stand-in with the name of the library, whose own models would be downloaded."""

    class TextEmbedding:
        def __init__(self, name: str) -> None:
            if name != "concepts":
                raise ValueError(f"Model {name} is not supported")

        def embed(self, texts: list[str]) -> Iterator[object]:
            yield from Concepts().encode(texts)

    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "fastembed", module)
    yield settings_for(directory, "fastembed", _MODEL="concepts")


def endpoint(way: str) -> Callable[..., object]:
    @contextmanager
    def opened(directory: Path, _: pytest.MonkeyPatch) -> Iterator[EmbedderSettings]:
        with embedding_server(way) as server:
            yield settings_for(directory, "endpoint", _MODEL="concepts", _URL=server.url)

    return opened


OPENERS = {
    "static": static, "onnx": onnx, "fastembed": fastembed,
    "openai": endpoint("openai"), "ollama": endpoint("ollama"),
}  # fmt: skip


@pytest.fixture(params=OPENERS)
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EmbedderSettings]:
    with OPENERS[request.param](tmp_path, monkeypatch) as opened:  # type: ignore[attr-defined]
        yield opened


@pytest.fixture
def model(tmp_path: Path, settings: EmbedderSettings) -> embedder.Embedder:
    return load(tmp_path, settings)


# The contract


def test_its_id_is_known_before_it_is_loaded(
    settings: EmbedderSettings, model: embedder.Embedder
) -> None:
    assert model.id == embedder.identify(settings)


def test_every_text_has_a_row_of_the_dimension(model: embedder.Embedder) -> None:
    vectors = model.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), model.dimension)
    assert vectors.dtype == np.float32


def test_a_row_has_length_one_and_one_that_says_nothing_is_zero(model: embedder.Embedder) -> None:
    lengths = np.linalg.norm(model.encode(TEXTS), axis=1)
    assert [round(float(length), 5) for length in lengths] == [1, 1, 0, 1, 0, 1]


def test_the_same_text_has_the_same_row_alone_and_among_others(model: embedder.Embedder) -> None:
    batch = model.encode(TEXTS)
    for text, row in zip(TEXTS, batch, strict=True):
        assert np.allclose(model.encode([text])[0], row, atol=1e-6)
    assert np.array_equal(batch[0], batch[5])


def test_texts_that_share_a_word_are_nearer_than_those_that_share_none(
    model: embedder.Embedder,
) -> None:
    login, database, _, lamp, _, again = model.encode(TEXTS)
    assert login @ again > login @ database
    assert login @ again > login @ lamp


def test_no_text_is_no_row(model: embedder.Embedder) -> None:
    assert model.encode([]).shape == (0, model.dimension)


def test_a_text_of_a_hundred_kilobytes_is_read(model: embedder.Embedder) -> None:
    (row,) = model.encode(["login loop " * 9_000])
    assert round(float(np.linalg.norm(row)), 5) == 1


# Errors


def test_none_has_no_id(tmp_path: Path) -> None:
    assert embedder.identify(settings_for(tmp_path, "none")) is None


@pytest.mark.parametrize("kind", ["onnx", "fastembed"])
def test_a_missing_library_is_named_with_the_command_that_brings_it(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("onnxruntime", "fastembed"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(EmbedderError, match=r"pip install .*\[semantic\]'"):
        load(tmp_path, settings_for(tmp_path, kind, _MODEL=str(tmp_path)))


def test_a_directory_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="contains no usable model"):
        load(tmp_path, settings_for(tmp_path, "onnx", _MODEL=str(tmp_path / "nowhere")))


def test_another_model_in_the_same_directory_has_another_id(tmp_path: Path) -> None:
    directory = onnx_directory(tmp_path / "model", WORDS)
    settings = settings_for(tmp_path, "onnx", _MODEL=str(directory))
    before = embedder.identify(settings)
    onnx_directory(tmp_path / "other", WORDS, dimension=16)
    (tmp_path / "other" / "model.onnx").replace(directory / "model.onnx")
    assert embedder.identify(settings) != before


def test_a_name_that_fastembed_does_not_know_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        fastembed(tmp_path, monkeypatch),
        pytest.raises(EmbedderError, match="cannot load 'unheard'"),
    ):
        load(tmp_path, settings_for(tmp_path, "fastembed", _MODEL="unheard"))


# The endpoint


def test_an_endpoint_without_an_address_is_asked_nothing(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="CLAUDE_MEM_EMBEDDER_URL"):
        load(tmp_path, settings_for(tmp_path, "endpoint", _MODEL="m"))
    with pytest.raises(EmbedderError, match="CLAUDE_MEM_EMBEDDER_URL"):
        load(tmp_path, settings_for(tmp_path, "endpoint", _MODEL="m", _URL="file:///etc/passwd"))


def test_an_endpoint_on_another_machine_must_use_https(tmp_path: Path) -> None:
    url = "http://192.168.1.5:11434/api/embed"
    with pytest.raises(EmbedderError, match=r"CLAUDE_MEM_EMBEDDER_URL=.* use https"):
        load(tmp_path, settings_for(tmp_path, "endpoint", _MODEL="m", _URL=url))


def test_an_endpoint_is_told_the_model_and_the_key_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("open sesame\n")
    with embedding_server() as server:
        load(tmp_path,
            settings_for(tmp_path, "endpoint", _MODEL="concepts", _URL=server.url,
                    _KEY_FILE=str(tmp_path / "key"))
        )  # fmt: skip
    assert {body["model"] for body in server.requests} == {"concepts"}
    assert server.keys == ["Bearer open sesame"]


def test_without_a_file_no_key_is_sent_and_a_missing_file_is_told(tmp_path: Path) -> None:
    with embedding_server() as server:
        options = {"_MODEL": "concepts", "_URL": server.url}
        load(tmp_path, settings_for(tmp_path, "endpoint", **options))
        assert server.keys == [None]
        with pytest.raises(EmbedderError, match="KEY_FILE cannot be read"):
            load(tmp_path, settings_for(tmp_path, "endpoint", _KEY_FILE="/nowhere/key", **options))


@pytest.mark.parametrize(
    "reply",
    [
        (500, b"{}"),
        (302, b""),
        (200, b"not json"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"embeddings": []}'),
        (200, b'{"embeddings": [[]]}'),
        (200, b'{"embeddings": [["x"]]}'),
        (200, b'{"embeddings": [[NaN]]}'),
        (200, b'{"data": [{"embedding": null}]}'),
        (200, b'{"data": 7}'),
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error_that_names_the_address(
    tmp_path: Path, reply: tuple[int, bytes]
) -> None:
    with embedding_server() as server:
        server.reply = reply
        with pytest.raises(EmbedderError, match="http://127"):
            load(tmp_path, settings_for(tmp_path, "endpoint", _MODEL="m", _URL=server.url))
    assert len(server.requests) == 1, "no second request, and none to another host"


def test_vectors_that_change_their_length_are_refused(tmp_path: Path) -> None:
    with embedding_server() as server:
        model = load(tmp_path, settings_for(tmp_path, "endpoint", _MODEL="m", _URL=server.url))
        server.reply = (200, b'{"embeddings": [[1, 2]]}')
        with pytest.raises(EmbedderError, match="another dimension"):
            model.encode(["lamp"])


def test_a_search_does_not_wait_for_another_thread_that_loads_the_embedder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedder, "SEARCH_SECONDS", 0.0)
    is_loading, may_end = threading.Event(), threading.Event()

    def load_slowly() -> Concepts:
        is_loading.set()
        may_end.wait()
        return Concepts()

    index = SemanticIndex("endpoint:http://127.0.0.1:9", load_slowly)
    loading = threading.Thread(target=index.load)
    loading.start()
    is_loading.wait()
    try:
        with embedder.time_limit(), pytest.raises(EmbedderError, match="has not answered yet"):
            index.load()
    finally:
        may_end.set()
        loading.join()
    with embedder.time_limit():
        assert index.load().embedder.dimension == 64


def test_nobody_who_listens_is_an_error_too(tmp_path: Path) -> None:
    with embedding_server() as server:
        url = server.url
    with pytest.raises(EmbedderError, match="returned no vectors"):
        load(tmp_path, settings_for(tmp_path, "endpoint", _MODEL="m", _URL=url))


def test_an_endpoint_gets_nothing_before_the_user_agreed_to_exactly_its_address(
    tmp_path: Path,
) -> None:
    layout = Layout(tmp_path / "data")
    with embedding_server() as server:
        settings = settings_for(tmp_path, "endpoint", _MODEL="m", _URL=server.url)
        record_consent(layout, embedder.CONSENT, "https://embeddings.example/v1")
        record_consent(layout, embedder.CONSENT, server.url + "/")
        record_consent(layout, "openai", server.url)
        with pytest.raises(EmbedderError, match=r"not agreed .*claude-mem embedder endpoint"):
            embedder.load(settings, layout)
        assert server.requests == []
        record_consent(layout, embedder.CONSENT, server.url)
        embedder.load(settings, layout)
    assert len(server.requests) == 1


# Imports


def test_neither_the_worker_nor_the_command_loads_a_library_before_it_is_needed() -> None:
    script = (
        "import sys, claude_mem.daemon, claude_mem.cli\n"
        "print([name for name in ('numpy', 'tokenizers', 'onnxruntime', 'fastembed')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
