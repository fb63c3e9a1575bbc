"""What the user asks for again and again, in their own words."""

from collections.abc import Iterator, Sequence

from claude_mem.recall.handover.lines import Line, flat, stems_in
from claude_mem.store.short_prompts import ShortPrompt

MIN_SESSIONS = 4
FEWEST_WORDS, MAX_HABITS = 2, 2
# Consent and courtesy, which say nothing about the work.
_REPLIES = stems_in(
    "yeah okay please thanks thank continue proceed ahead looks good great nice again next right"
    " sure same that this with just then also here those these what when does have should could"
    " would will want like make sense your them done more from"
)
# Every project is worked on like this; with another word it may be a habit of the user.
_ROUTINE = stems_in("commit push pull merge rebase branch changes change everything work local")


def habits(prompts: Sequence[ShortPrompt]) -> Iterator[Line]:
    """Each with the number of sessions; those that say most first."""
    words = {prompt: stems_in(prompt.text.lower()) - _REPLIES for prompt in prompts}
    asked: dict[frozenset[str], list[ShortPrompt]] = {}
    for prompt, stems in words.items():
        if len(stems) >= FEWEST_WORDS and not stems <= _ROUTINE and "?" not in prompt.text:
            asked.setdefault(stems, []).append(prompt)
    sessions = {
        stems: len({prompt.session for prompt, other in words.items() if stems <= other})
        for stems in asked
    }
    often = [stems for stems in asked if sessions[stems] >= MIN_SESSIONS]
    shown: list[frozenset[str]] = []
    for stems in sorted(often, key=lambda stems: (-len(stems), -sessions[stems], sorted(stems))):
        if any(stems <= other for other in shown) or len(shown) == MAX_HABITS:
            continue
        shown.append(stems)
        text = flat(asked[stems][0].text)
        line = f'- The user asked this in {sessions[stems]} sessions: "{text}"'
        yield Line(line, is_quote=True)
