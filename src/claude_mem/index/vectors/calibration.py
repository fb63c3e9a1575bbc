"""Calibration of a model: which cosines it gives to texts that are unrelated.

Models differ in that: a cosine of 0.4 is noise for one and a strong match for another. So
thresholds are in deviations from the mean cosine of these questions with the answers to the other
questions.
"""

from dataclasses import dataclass

import numpy as np

from claude_mem.index.embedders.embedder import Embedder

MIN_DEVIATION = 0.05  # for a model that knows none of these words


@dataclass(frozen=True, slots=True)
class Calibration:
    mean: float
    deviation: float

    @classmethod
    def of(cls, embedder: Embedder) -> "Calibration":
        vectors = embedder.encode([*QUESTIONS, *MEMORIES])
        cosines = vectors[: len(QUESTIONS)] @ vectors[len(QUESTIONS) :].T
        unrelated = cosines[~np.eye(len(QUESTIONS), dtype=bool)]
        # Rounded, so that the last digit of another machine decides nothing.
        deviation = round(float(unrelated.std()), 4)
        return cls(round(float(unrelated.mean()), 4), max(MIN_DEVIATION, deviation))

    def cosine(self, deviations: float) -> float:
        return min(1.0, self.mean + deviations * self.deviation)


QUESTIONS = """\
why does the build fail on the second machine
where is the port of the proxy configured
how do I run only the slow tests
who decided to drop support for the old client
what broke the nightly export
which library draws the charts
how are passwords stored
why was the cache turned off
when did we move to the new cluster
what does the retry policy look like
how to add a translation
why is the image upload so slow
where do the fonts come from
what happens when the disk is full
how are users told about an outage
which branch is released
why are there two config files
how is the schema migrated
what is the naming rule for components
how do we mock the payment service
why did the scheduler skip a run
what limits the size of a message
how are permissions checked
why does the menu overlap on phones
""".splitlines()
MEMORIES = """\
The compiler on the runner was older than on the laptops; the toolchain file pins it now.
Nginx listens on 8443 because 443 belongs to the mail gateway; see deploy/site.conf.
Marked long cases with @slow and excluded them by default; make test-all runs everything.
Version 1 of the mobile app has eleven users left, so its endpoints were removed after a vote.
A column renamed in the warehouse made the CSV job stop at midnight with KeyError.
Replaced the hand-written SVG code by a plotting package with tree shaking.
Hashes are argon2id with a per-row salt; rehashing happens at sign-in.
Stale entries confused the support team, so memoisation of the pricing call was removed.
The Kubernetes nodes were replaced over the weekend of 12 May, one zone at a time.
Failed calls wait one, two, four seconds and then land in the dead letter topic.
Strings live in locales/*.json; the extractor complains about keys that no file has.
Photos were resized on the main thread; a worker with a smaller canvas does it now.
Typefaces are self-hosted in woff2 since the privacy review forbade the CDN.
Log rotation keeps three files of 10 MB so that a volume cannot run out of space.
The status page is updated by the alert manager through a webhook.
Tags on main are what customers get; everything else is a preview.
One settings file is for the person, the other is written by the installer and never merged.
Alembic runs as an init container and takes an advisory lock first.
Files are named in kebab case, exported classes in PascalCase; the linter checks both.
A recorded cassette replays the card processor's answers in the integration suite.
Daylight saving time repeated an hour and the job thought that it had been done.
Bodies above 256 KB are refused by the broker, so attachments travel as links.
Roles are resolved in one middleware; handlers only ask can(user, action).
The dropdown got position fixed and a z-index above the header on narrow screens.
""".splitlines()
