"""How this copy of the package was installed, and the commands that install it again.

A copy in a cache (`uvx`, `uv run --with`, `pipx run`) or in a temporary directory works only until
that is emptied, so nothing that stays may name its paths.
"""

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from claude_mem import __version__
from claude_mem.errors import ClaudeMemError

NAME = "claudemem"
COMMAND = "claude-mem"
PACKAGE = Path(__file__).parent
# https://bford.info/cachedir: at the root of the caches of uv and pipx.
_CACHE_TAG, _CACHE_SIGNATURE = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"
_OLD_PIPX_CACHES = (".cache", "Caches")  # of versions that do not write the tag
_PIPX_VENV, _UV_TOOL = "pipx_metadata.json", "uv-receipt.toml"
_TEMPORARY = ("/tmp", "/var/tmp")


# Where it came from


def requirement(extra: str = "") -> str:
    """What pip, uv and pipx install: the checkout, file or repository that this copy came from, or
    its name and version on the index."""
    extras = f"[{extra}]" if extra else ""
    source = _direct_url()
    url = str(source.get("url", ""))
    if url.startswith("file:") and "vcs_info" not in source:
        return f"{unquote(urlsplit(url).path)}{extras}"
    if url:
        vcs = source.get("vcs_info")
        if isinstance(vcs, dict):
            url = f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', '')}"
        return f"{NAME}{extras} @ {url}"
    return f"{NAME}{extras}=={__version__}"


def install_command(extra: str = "") -> str:
    """The command that installs this copy again in the same way, with the optional packages of
    `extra`."""
    prefix, source = Path(sys.prefix), _direct_url()
    target = shlex.quote(requirement(extra))
    if (prefix / _UV_TOOL).exists():
        return f"uv tool install {target}"
    if (prefix / _PIPX_VENV).exists():
        return f"pipx install --force {target}"
    directory = source.get("dir_info")
    if isinstance(directory, dict) and directory.get("editable"):
        target = f"--editable {target}"
    python = shlex.quote(sys.executable)
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python} {target}"
    return f"{python} -m pip install {target}"


def _direct_url() -> dict[str, object]:
    """PEP 610; empty for a package that came from an index. Without `importlib.metadata`, whose
    import takes long for the start of a worker."""
    for directory in filter(None, sys.path):
        for file in Path(directory).glob(f"{NAME}-*.dist-info/direct_url.json"):
            with suppress(OSError, ValueError):
                value = json.loads(file.read_bytes())
                return value if isinstance(value, dict) else {}
    return {}


# Where it is


def is_complete() -> bool:
    """Whether the package is still where this process loaded it from."""
    return (PACKAGE / "__init__.py").exists()


def passing_place(python: Path, script: Path, data_dir: Path) -> Path | None:
    """The cache or temporary directory that the interpreter or the script is in, if it is one and
    the memory is somewhere else."""
    prefix = python.parent.parent
    places = [prefix] if script.is_relative_to(prefix) else [prefix, script]
    for place in places:
        directory = _cache_of(place) or _temporary_of(place, data_dir)
        if directory is not None:
            return directory
    return None


def own_passing_place(data_dir: Path) -> Path | None:
    return passing_place(Path(sys.executable), PACKAGE, data_dir)


def is_cache(directory: Path) -> bool:
    return _is_tagged(directory) or directory.name in _OLD_PIPX_CACHES


def _cache_of(place: Path) -> Path | None:
    """Finds the cache that holds the place, and not the place itself: `uv venv` writes the tag into
    every environment."""
    is_pipx = (place / _PIPX_VENV).exists()
    for directory in place.parents:
        if _is_tagged(directory) or (is_pipx and directory.name in _OLD_PIPX_CACHES):
            return directory
    return None


def _is_tagged(directory: Path) -> bool:
    try:
        with (directory / _CACHE_TAG).open("rb") as file:
            return file.read(len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE
    except OSError:
        return False


def _temporary_of(place: Path, data_dir: Path) -> Path | None:
    for name in dict.fromkeys((*_TEMPORARY, tempfile.gettempdir())):
        directory = Path(name).resolve()
        if place.resolve().is_relative_to(directory):
            return None if data_dir.resolve().is_relative_to(directory) else directory
    return None


# Installing it for good


@dataclass(frozen=True, slots=True)
class Installer:
    program: str
    arguments: tuple[str, ...]
    bin_arguments: tuple[str, ...]  # prints the directory of the installed commands

    @property
    def command_line(self) -> str:
        return shlex.join((Path(self.program).name, *self.arguments))

    def install(self, environ: Mapping[str, str]) -> Path:
        """Returns the installed command. Its output goes to the terminal."""
        done = subprocess.run([self.program, *self.arguments], env=environ, timeout=1800)
        listed = subprocess.run(
            [self.program, *self.bin_arguments],
            env=environ,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        command = Path(listed.stdout.strip()) / COMMAND
        if done.returncode or not command.is_file():
            raise ClaudeMemError(f"`{self.command_line}` failed")
        return command


def installer_for_good(environ: Mapping[str, str]) -> Installer | None:
    """The tool whose cache this copy runs from, else one that is on the PATH."""
    search_path = environ.get("PATH", "")
    uv = environ.get("UV") or shutil.which("uv", path=search_path)
    pipx = shutil.which("pipx", path=search_path)
    source = requirement()
    if pipx and (not uv or (Path(sys.prefix) / _PIPX_VENV).exists()):
        return Installer(pipx, ("install", source), ("environment", "--value", "PIPX_BIN_DIR"))
    if uv:
        return Installer(uv, ("tool", "install", source), ("tool", "dir", "--bin"))
    return None


def lasting_command(environ: Mapping[str, str]) -> str:
    """What the user types to install this copy where it stays."""
    installer = installer_for_good(environ)
    if installer is not None:
        return installer.command_line
    directory = "~/.local/share/claudemem"
    return (
        f"python3 -m venv {directory} && {directory}/bin/pip install {shlex.quote(requirement())}"
    )


def environment_without(place: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment without what `uvx` and `pipx run` put on the PATH for this
    process."""
    entries = [e for e in environ.get("PATH", "").split(":") if not Path(e).is_relative_to(place)]
    return {**environ, "PATH": ":".join(entries)}
