"""The errors of claude-mem. Callers match them by type and read their fields, never their message.

ClaudeMemError
├── SettingsError           a setting or settings file that cannot be used; carries the remedy
├── StoreError              the database cannot be used
│   ├── ForeignDatabase     not created by claude-mem: never written to
│   ├── OtherVersion        created by a claude-mem of another version: not changed
│   │   ├── NewerDatabase   a newer one: never downgraded
│   │   └── OlderDatabase   one that this version does not convert
│   ├── DamagedDatabase     not readable as a database
│   ├── DatabaseInUse       a reader still uses the journal: the scrub is to be repeated
│   ├── BackupCancelled     the store was closed meanwhile
│   └── NoSpaceToRestore    the database is damaged, and its backup does not fit on the disk
├── EmbedderError           an embedding model cannot be loaded or does not respond
├── RequestFailed           a request to a configured server without a usable response
│   └── InvalidCertificate  its certificate is not trusted
├── BadInput                an invalid payload or parameter; carries the field
├── NotFound                no row has this id or name
├── AmbiguousProject        several projects have this name; carries the choices
├── ObserverError           a model failed; observer/models/failures.py has the kinds
└── WorkerError             the worker process failed
    ├── NotRunning          no worker responds
    └── NewerWorker         a newer version is running and is not replaced
"""


class ClaudeMemError(Exception):
    """The message says what happened and, where possible, the command to run next."""


class SettingsError(ClaudeMemError):
    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy  # a command to type


class StoreError(ClaudeMemError):
    pass


class ForeignDatabase(StoreError):
    pass


class OtherVersion(StoreError):
    pass


class NewerDatabase(OtherVersion):
    pass


class OlderDatabase(OtherVersion):
    pass


class DamagedDatabase(StoreError):
    pass


class DatabaseInUse(StoreError):
    pass


class BackupCancelled(StoreError):
    pass


class NoSpaceToRestore(StoreError):
    pass


class EmbedderError(ClaudeMemError):
    pass


class RequestFailed(ClaudeMemError):
    pass


class InvalidCertificate(RequestFailed):
    pass


class BadInput(ClaudeMemError):
    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotFound(ClaudeMemError):
    pass


class AmbiguousProject(ClaudeMemError):
    def __init__(self, name: str, choices: list[str]) -> None:
        listed = ", ".join(choices)
        super().__init__(f"{len(choices)} projects have the name {name!r}; use one of: {listed}")
        self.name, self.choices = name, choices


class WorkerError(ClaudeMemError):
    pass


class NotRunning(WorkerError):
    pass


class NewerWorker(WorkerError):
    pass
