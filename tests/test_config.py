"""Settings: environment, then settings.json, then the table; and errors that say what to do."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import claude_mem
from claude_mem import paths
from claude_mem.config import (
    DATA_DIR,
    SETTINGS,
    Layout,
    Setting,
    change_setting,
    find_layout,
    find_setting,
    load_settings,
    load_usable_settings,
    read_settings_file,
    retired_settings,
    write_private,
)
from claude_mem.config.settings import RETIRED
from claude_mem.errors import SettingsError

NUMBERS = [setting for setting in SETTINGS if type(setting.default) is int]
CHOICES = [setting for setting in SETTINGS if setting.choices]
DAYS = "CLAUDE_MEM_RAW_DAYS"
RAW_DAYS = find_setting(DAYS)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".claude-mem").mkdir()
    return {"HOME": str(tmp_path)}


@pytest.fixture
def file(tmp_path: Path, environ: dict[str, str]) -> Path:
    return tmp_path / ".claude-mem" / "settings.json"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def name_of(setting: Setting) -> str:
    return setting.name


# The table


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_every_setting_has_a_help_and_a_default_that_is_right(
    setting: Setting, environ: dict[str, str]
) -> None:
    assert setting.help.strip() == setting.help != ""
    assert load_settings(environ).source_of(setting) == "default"
    assert setting.parse(setting.default_text) == setting.default


def test_names_of_settings_are_unique_and_ours() -> None:
    names = [setting.name for setting in SETTINGS]
    assert len(set(names)) == len(names)
    assert all(name.startswith("CLAUDE_") for name in names)


def test_nobodys_quota_is_spent_unasked(environ: dict[str, str]) -> None:
    assert load_settings(environ).observer.kind == "local"


# Where a value comes from


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(
    environ: dict[str, str], file: Path
) -> None:
    settings = load_settings(environ)
    assert (settings.retention.raw_days, settings.source_of(RAW_DAYS)) == (30, "default")
    file.write_text(json.dumps({DAYS: "7"}))
    settings = load_settings(environ)
    assert (settings.retention.raw_days, settings.source_of(RAW_DAYS)) == (7, "settings.json")
    settings = load_settings(environ | {DAYS: "3"})
    assert (settings.retention.raw_days, settings.source_of(RAW_DAYS)) == (3, "environment")


def test_an_empty_variable_is_as_good_as_none(environ: dict[str, str], file: Path) -> None:
    file.write_text(json.dumps({DAYS: "7"}))
    assert load_settings(environ | {DAYS: ""}).source_of(RAW_DAYS) == "settings.json"


def test_a_number_may_be_written_as_a_number(environ: dict[str, str], file: Path) -> None:
    file.write_text(json.dumps({DAYS: 7}))
    assert load_settings(environ).retention.raw_days == 7


def test_an_empty_file_holds_no_settings(environ: dict[str, str], file: Path) -> None:
    file.write_text("")
    assert load_settings(environ).source_of(RAW_DAYS) == "default"


def test_keys_of_others_in_the_file_are_passed_over(environ: dict[str, str], file: Path) -> None:
    file.write_text(json.dumps({"theme": "dark", DAYS: 7, "CLAUDE_MEM_OF_NEXT_YEAR": [1]}))
    assert read_settings_file(file) == {DAYS: "7"}
    assert set(load_settings(environ).sources) == {DAYS}


def test_a_list_is_read_by_comma(environ: dict[str, str]) -> None:
    settings = load_settings(environ | {"CLAUDE_MEM_SKIP_TOOLS": " Bash, ,Read,"})
    assert settings.capture.skip_tools == ("Bash", "Read")
    assert settings.text_of(find_setting("skip_tools")) == "Bash,Read"


@pytest.mark.parametrize(("text", "upgrades"), [("yes", True), ("no", False)])
def test_yes_and_no_are_a_truth_value(environ: dict[str, str], text: str, upgrades: bool) -> None:
    settings = load_settings(environ | {"CLAUDE_MEM_UPGRADE_DRAFTS": text})
    assert settings.observer.upgrade_drafts is upgrades
    assert settings.text_of(find_setting("upgrade_drafts")) == text


@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_a_value_of_the_environment_reaches_its_attribute(
    environ: dict[str, str], setting: Setting, tmp_path: Path
) -> None:
    text = setting.choices[-1] if setting.choices else str(setting.minimum + 1)
    if setting is DATA_DIR:
        text = str(tmp_path)
    settings = load_settings(environ | {setting.name: text})
    assert (settings.text_of(setting), settings.source_of(setting)) == (text, "environment")


@pytest.mark.parametrize("name", RETIRED)
def test_a_setting_of_an_earlier_version_is_ignored(
    environ: dict[str, str], file: Path, name: str
) -> None:
    file.write_text(json.dumps({name: "no number"}))
    settings, problems = load_usable_settings(environ | {name: "no number"})
    assert (settings.sources, problems) == ({}, [])
    assert retired_settings(environ) == retired_settings({**environ, name: "1"}) == [name]
    with pytest.raises(SettingsError, match=f"{name} is no longer a setting"):
        find_setting(name)


# Wrong values


@pytest.mark.parametrize("setting", NUMBERS, ids=name_of)
@pytest.mark.parametrize("wrong", ["many", "1.5", "0x10", "9" * 5000, "-1"])
def test_a_wrong_number_is_an_error_that_names_the_setting_and_where_it_stands(
    environ: dict[str, str], setting: Setting, wrong: str
) -> None:
    with pytest.raises(SettingsError, match=rf"^{setting.name}=.*environment"):
        load_settings(environ | {setting.name: wrong})


@pytest.mark.parametrize("setting", [s for s in NUMBERS if s.minimum], ids=name_of)
def test_a_number_that_is_too_small_is_an_error(environ: dict[str, str], setting: Setting) -> None:
    too_small = str(setting.minimum - 1)
    with pytest.raises(SettingsError, match=f"from {setting.minimum} to "):
        load_settings(environ | {setting.name: too_small})
    assert load_settings(environ | {setting.name: str(setting.minimum)})


def accepts(environ: dict[str, str], setting: Setting, value: str) -> bool:
    try:
        load_settings(environ | {setting.name: value})
    except SettingsError as error:
        assert str(error).startswith(setting.name)
        return False
    return True


def test_a_number_that_no_clock_or_disk_can_hold_is_an_error(environ: dict[str, str]) -> None:
    too_large = str(2**63)
    assert [s.name for s in NUMBERS if accepts(environ, s, too_large)] == []


def test_a_port_that_does_not_exist_is_an_error(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="CLAUDE_MEM_WORKER_PORT"):
        load_settings(environ | {"CLAUDE_MEM_WORKER_PORT": "65536"})


@pytest.mark.parametrize("setting", CHOICES, ids=name_of)
def test_a_wrong_choice_is_an_error_that_lists_the_right_ones(
    environ: dict[str, str], setting: Setting
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ | {setting.name: "nonsense"})
    assert ", ".join(setting.choices) in str(caught.value)


def test_a_wrong_value_in_the_file_is_said_to_stand_there(
    environ: dict[str, str], file: Path
) -> None:
    file.write_text(json.dumps({DAYS: True}))
    with pytest.raises(SettingsError, match=r"settings\.json.*must be a whole number"):
        load_settings(environ)


# A file that is not what it should be

MALFORMED = {
    "cut off": b'{"CLAUDE_MEM_RAW_DAYS": "7"',
    "not JSON": b"RAW_DAYS=7",
    "not UTF-8": b'{"CLAUDE_MEM_MODEL": "\xff"}',
    "a list": b'["CLAUDE_MEM_RAW_DAYS"]',
    "a text": b'"CLAUDE_MEM_RAW_DAYS"',
    "null": b"null",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a number that is too long": b'{"CLAUDE_MEM_RAW_DAYS": ' + b"9" * 5000 + b"}",
    "NULs": b"\0" * 100,
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_file_is_an_error_that_says_which_and_is_left_alone(
    environ: dict[str, str], file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=str(file)):
        load_settings(environ)
    with pytest.raises(SettingsError, match=str(file)):
        change_setting(file, find_setting("raw_days"), "7")
    assert file.read_bytes() == content


def test_a_directory_in_the_place_of_the_file_is_an_error(
    environ: dict[str, str], file: Path
) -> None:
    file.mkdir()
    with pytest.raises(SettingsError, match=str(file)):
        load_settings(environ)


def test_a_huge_file_of_other_keys_is_read(environ: dict[str, str], file: Path) -> None:
    file.write_text(json.dumps({f"key {n}": "x" * 100 for n in range(20_000)} | {DAYS: 7}))
    assert load_settings(environ).retention.raw_days == 7


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    content=st.dictionaries(
        st.sampled_from([setting.name for setting in SETTINGS]) | st.text(), json_values, max_size=4
    )
)
def test_whatever_object_the_file_holds_it_is_settings_or_a_clear_error(
    environ: dict[str, str], file: Path, content: dict[str, object]
) -> None:
    file.write_text(json.dumps(content))
    try:
        settings = load_settings(environ)
    except SettingsError as error:
        assert "settings.json" in str(error)
    else:
        for setting in NUMBERS:
            value = setting.parse(settings.text_of(setting))
            assert isinstance(value, int) and value >= setting.minimum
        for setting in CHOICES:
            assert settings.text_of(setting) in setting.choices


# Changing a setting


def test_changing_a_setting_keeps_every_other_key(file: Path) -> None:
    other = {"theme": "dark", "deep": {"list": [1, None, 2.5]}, "CLAUDE_MEM_OF_NEXT_YEAR": "é"}
    file.write_text(json.dumps(other))
    change_setting(file, find_setting("raw_days"), "7")
    assert json.loads(file.read_text()) == {**other, DAYS: "7"}
    change_setting(file, find_setting("raw_days"), None)
    assert json.loads(file.read_text()) == other


def test_a_changed_setting_is_the_one_that_is_loaded(environ: dict[str, str], file: Path) -> None:
    change_setting(file, find_setting("raw_days"), "7")
    assert load_settings(environ).retention.raw_days == 7


def test_removing_a_setting_that_is_not_there_changes_nothing(file: Path) -> None:
    change_setting(file, find_setting("raw_days"), None)
    assert json.loads(file.read_text()) == {}


def test_a_wrong_value_is_not_written(file: Path) -> None:
    file.write_text("{}")
    with pytest.raises(SettingsError):
        change_setting(file, find_setting("raw_days"), "never")
    assert file.read_text() == "{}"


def test_the_data_directory_cannot_be_set_in_the_file_that_lies_in_it(
    environ: dict[str, str], file: Path
) -> None:
    with pytest.raises(SettingsError, match="environment"):
        change_setting(file, find_setting("data_dir"), "/elsewhere")
    file.write_text(json.dumps({"CLAUDE_MEM_DATA_DIR": "/elsewhere"}))
    settings = load_settings(environ)
    assert settings.text_of(DATA_DIR) == str(settings.layout.root) == str(file.parent)
    assert settings.source_of(DATA_DIR) == "default"


def test_the_file_is_for_its_owner_alone_even_if_it_was_not_before(file: Path) -> None:
    file.write_text("{}")
    file.chmod(0o644)
    change_setting(file, find_setting("raw_days"), "7")
    assert mode(file) == 0o600


def test_the_directory_of_a_new_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "settings.json"
    change_setting(file, find_setting("raw_days"), "7")
    assert mode(file.parent) == 0o700


@pytest.mark.parametrize(
    "name", ["CLAUDE_MEM_RAW_DAYS", "raw_days", "RAW_DAYS", "raw-days", "claude-mem-raw-days"]
)
def test_a_setting_is_found_by_its_short_name_in_any_case(name: str) -> None:
    assert find_setting(name).name == DAYS


def test_a_setting_of_the_agent_is_found_by_its_own_name() -> None:
    assert find_setting("claude_code_path").name == "CLAUDE_CODE_PATH"


@pytest.mark.parametrize("name", ["", "days", "CLAUDE_MEM_", "raw_days "])
def test_a_setting_that_does_not_exist_is_an_error_with_the_next_command(name: str) -> None:
    with pytest.raises(SettingsError, match="claude-mem settings"):
        find_setting(name)


# The environment

ENTRY_POINTS = (
    "cli/", "daemon.py", "library.py", "observer/models/parent_death.py", "team/server/serve.py",
)  # fmt: skip
SETS_A_VARIABLE = "index/embedders/transformer.py"  # for a library that it loads


def test_the_environment_is_read_at_entry_points_only() -> None:
    root = Path(claude_mem.__file__).parent
    readers = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "os.environ" in path.read_text("utf-8")
    ]
    assert "daemon.py" in readers
    assert [name for name in readers if not name.startswith(ENTRY_POINTS)] == [SETS_A_VARIABLE]


# The data directory


def test_the_data_directory_is_in_the_home_unless_the_environment_says_otherwise() -> None:
    assert find_layout({"HOME": "/home/dev"}).root == Path("/home/dev/.claude-mem")
    chosen = {"HOME": "/home/dev", "CLAUDE_MEM_DATA_DIR": "/data/memory"}
    assert find_layout(chosen).root == Path("/data/memory")
    assert find_layout({"CLAUDE_MEM_DATA_DIR": "/data/memory"}).root == Path("/data/memory")
    assert find_layout({"USERPROFILE": "/home/dev"}).root == Path("/home/dev/.claude-mem")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "", "CLAUDE_MEM_DATA_DIR": ""}])
def test_without_a_home_there_is_a_clear_error(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="HOME"):
        find_layout(environ)


@pytest.mark.parametrize("chosen", ["/data/memory", "~/memory", "/data/mémoire", "/data/caf\udce9"])
def test_hook_and_worker_find_the_same_data_directory(chosen: str) -> None:
    environ = {"HOME": "/home/dev", "CLAUDE_MEM_DATA_DIR": chosen}
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    assert os.fsencode(find_layout(environ).root) == paths.data_dir(encoded)


def test_a_tilde_means_the_home_of_the_environment_that_was_given() -> None:
    environ = {"HOME": "/home/dev", "CLAUDE_MEM_DATA_DIR": "~/memory"}
    assert find_layout(environ).root == Path("/home/dev/memory")


def test_the_directories_are_for_their_owner_alone_even_if_they_were_not_before(
    tmp_path: Path,
) -> None:
    layout = Layout(tmp_path / "data")
    layout.root.mkdir(mode=0o755)
    layout.spool.mkdir(mode=0o755)
    layout.create()
    directories = [layout.root, layout.spool, layout.rejected, layout.contexts, layout.backups]
    assert [mode(directory) for directory in directories] == [0o700] * 5
    layout.create()


# Writing for the owner alone


def test_a_private_file_replaces_another_whole(tmp_path: Path) -> None:
    target = tmp_path / "token"
    target.write_text("old and longer")
    target.chmod(0o644)
    write_private(target, b"new")
    assert (target.read_bytes(), mode(target)) == (b"new", 0o600)
    assert list(tmp_path.iterdir()) == [target]


def test_a_private_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "token"
    target.mkdir()
    with pytest.raises(OSError):
        write_private(target, b"new")
    assert list(tmp_path.iterdir()) == [target]
