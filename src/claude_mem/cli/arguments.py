"""Values on the command line that make no sense, reported in one line."""

from collections.abc import Callable, Iterable

import click

from claude_mem.errors import BadInput
from claude_mem.text import spellings


class OneLineErrors(click.Command):
    """Reports an invalid value like all other errors: in one line, with exit code 1."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        try:
            return super().parse_args(context, arguments)
        except click.MissingParameter:
            raise
        except click.BadParameter as error:
            raise BadInput(
                error.format_message(), error.param.name if error.param else None
            ) from None


def several_of(choices: Iterable[str]) -> Callable[..., list[str] | None]:
    """A callback for an option that takes several choices, separated by commas."""
    names = tuple(choices)
    known = spellings(names)

    def convert(
        context: click.Context, param: click.Parameter, value: str | None
    ) -> list[str] | None:
        if value is None:
            return None
        values = [name for part in value.split(",") if (name := part.strip())]
        for name in values:
            if name not in known:
                message = f"{name!r} is not one of {', '.join(names)}."
                raise click.BadParameter(message, context, param)
        return [known[name] for name in values]

    return convert
