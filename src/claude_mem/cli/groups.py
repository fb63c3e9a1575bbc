"""Groups of commands, which name the command that was probably meant."""

import click


class Group(click.Group):
    """Names the commands that are spelled like an unknown one."""

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        is_option = name.startswith("-")
        if is_option or context.resilient_parsing or self.get_command(context, name) is not None:
            return super().resolve_command(context, arguments)
        from difflib import get_close_matches

        path = context.command_path
        similar = get_close_matches(name, self.list_commands(context), n=2)
        if similar:
            advice = f"Did you mean {' or '.join(f'{path} {match}' for match in similar)}?"
        else:
            advice = f"{path} --help lists the commands."
        raise click.UsageError(f"No such command {name!r}. {advice}", context)
