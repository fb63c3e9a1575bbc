"""The client's state, in which the user accepted its trust dialog for directories."""

import json
from pathlib import Path


def accept_trust_dialog(home: Path, *directories: Path) -> None:
    projects = {str(directory): {"hasTrustDialogAccepted": True} for directory in directories}
    (home / ".claude.json").write_text(json.dumps({"projects": projects}))
