"""Transcripts whose turns wait for their memories: an import without a worker distils them itself.
Otherwise the worker does (`worker/background_distilling.py`)."""

import logging
import sqlite3
from pathlib import Path

from claude_mem.errors import BadInput
from claude_mem.intake.transcripts.import_options import ImportOptions
from claude_mem.intake.transcripts.import_report import ReadFile, Report
from claude_mem.intake.transcripts.importer import OnFile, read_all, reason_of
from claude_mem.observer.local.observer import distil
from claude_mem.store import Store
from claude_mem.store.waiting_turns import WaitingTranscript
from claude_mem.types import PastSession, Verbosity

log = logging.getLogger("claude_mem.import")


def distil_waiting(
    store: Store,
    options: ImportOptions,
    report: Report | None = None,
    *,
    processes: int = 1,
    progress: OnFile = lambda path, size: None,
) -> None:
    """Distils imported turns that have no memories yet. The worker may do the same at the same
    time."""
    report = report or Report()
    waiting: dict[Path, list[WaitingTranscript]] = {}
    store.add_missing_transcripts().result()
    for transcript in store.waiting_transcripts():
        waiting.setdefault(Path(transcript.path), []).append(transcript)
    sizes = {path: size for path in waiting if (size := _size(path)) is not None}
    options_of = {path: options.of_memories(waiting[path][0].keep_raw_since) for path in sizes}
    for item in read_all(sizes, options_of, processes):
        sessions = (item,) if isinstance(item, PastSession) else item.sessions
        for session in sessions:
            for transcript in waiting[Path(session.transcript_path)]:
                if transcript.session_id == session.session_id:
                    try:
                        counts = store.replace_outdated_memories(session).result()
                    except sqlite3.OperationalError:
                        raise  # the disk or the file, not the session
                    except Exception as error:
                        report.troubles.append((Path(transcript.path), reason_of(error)))
                    else:
                        report.distilled(transcript.project, session, counts)
        if isinstance(item, ReadFile):
            for transcript in waiting.pop(item.path):
                finish_transcript(store, transcript, options.verbosity)
            progress(item.path, item.size)
    for transcripts in waiting.values():  # those that do not exist any more
        for transcript in transcripts:
            finish_transcript(store, transcript, options.verbosity)
    report.waiting, _ = store.count_undistilled()


def finish_transcript(store: Store, transcript: WaitingTranscript, verbosity: Verbosity) -> int:
    """Distils turns that were not in the transcript, or whose transcript is gone, from their
    events, as far as these are stored; returns how many."""
    count = 0
    for turn_id in store.finish_transcript(transcript).result():
        turn = store.load_turn(turn_id)
        try:
            if turn is not None:
                count += store.save_again(turn, distil(turn, verbosity)).result()
        except (ValueError, KeyError, TypeError, RecursionError, BadInput):
            log.exception("turn %d has no memories: it could not be distilled", turn_id)
        store.give_up_distilling(turn_id).result()
    return count


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
