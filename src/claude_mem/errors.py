"""What can go wrong, as values that callers match by type.

ClaudeMemError
├── SettingsError         a setting that cannot be read or has a wrong value
├── StoreError            the database
│   ├── ForeignDatabase   a file that claude-mem did not create: never written to
│   ├── NewerDatabase     made by a newer claude-mem: never downgraded
│   └── DamagedDatabase   not readable as a database
├── EmbedderError         a model for meaning that cannot be loaded or does not answer
├── RequestFailed         a request to a configured server without a usable response
│   └── InvalidCertificate
├── BadInput              a payload or request that makes no sense; carries the field
├── NotFound              an id that is not there
├── AmbiguousProject      a project name that means several; carries the choices
└── WorkerError           the worker process
    ├── NotRunning        nobody answers
    └── NewerWorker       a newer version runs; this one does not replace it
"""


class ClaudeMemError(Exception):
    """The root. A message says what happened and, where there is one, the next thing to do."""


class SettingsError(ClaudeMemError):
    pass


class StoreError(ClaudeMemError):
    pass


class ForeignDatabase(StoreError):
    pass


class NewerDatabase(StoreError):
    pass


class DamagedDatabase(StoreError):
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
        super().__init__(f"{name!r} is the name of {len(choices)} projects; say which: {listed}")
        self.name, self.choices = name, choices


class WorkerError(ClaudeMemError):
    pass


class NotRunning(WorkerError):
    pass


class NewerWorker(WorkerError):
    pass
