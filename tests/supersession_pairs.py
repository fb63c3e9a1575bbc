"""Pairs of facts, the older first: those of which the newer replaces or repeats the older, and
those that must both stay."""

from typing import NamedTuple

from claude_mem.types import FactKind, ProposedFact


class Pair(NamedTuple):
    older: ProposedFact
    newer: ProposedFact


def rules(older: str, newer: str, kind: FactKind = "rule") -> Pair:
    return Pair(*(ProposedFact(kind, "", text, origin="person") for text in (older, newer)))


def notes(older: str, newer: str) -> Pair:
    return Pair(*(ProposedFact("decision", "", text) for text in (older, newer)))


def answers(question: str, answer: str, later_question: str, later_answer: str) -> Pair:
    return Pair(
        ProposedFact("decision", question, answer, origin="person"),
        ProposedFact("decision", later_question, later_answer, origin="person"),
    )


def places(subject: str, value: str, later_subject: str, later_value: str) -> Pair:
    return Pair(
        ProposedFact("place", subject, value), ProposedFact("place", later_subject, later_value)
    )


CHANGED_VALUES = (
    notes("The API listens on port 8080", "The API now listens on port 9090"),
    notes("Deploys run on Fridays", "We deploy on Tuesday now"),
    notes("CI uses Node 18", "CI uses Node 20"),
    notes("Settings are read from config.yaml", "Settings are read from settings.toml"),
    notes("The cache expires after 30 seconds", "The cache expires after 5 minutes"),
    notes("Logs are written to /var/log/lamp", "Logs are written to /srv/lamp/logs"),
    notes("Install dependencies with npm", "Install dependencies with pnpm"),
    rules("Lines may have at most 100 characters", "Lines may have at most 120 characters"),
    rules("Write commit messages in German", "Write commit messages in English"),
    places("staging host", "stage1.example.com", "staging host", "stage2.example.com"),
    places("dashboard port", "3000", "port of the dashboard", "3100"),
)
WITHDRAWN_RULES = (
    rules("Never push to main", "You may push to main again"),
    rules("Always run the linter before committing",
         "You no longer need to run the linter before committing"),
    rules("Always add a changelog entry", "Stop adding changelog entries"),
    rules("Never touch the vendored code", "It's fine to change the vendored code now"),
    rules("Answer in German from now on", "Forget the rule about answering in German"),
    rules("Don't use em dashes in docs", "Forget what I said, the rule on em dashes is gone"),
    rules("Ask me before every deployment", "You don't have to ask before a deployment any more"),
    rules("No new dependencies without my approval", "New dependencies no longer need my approval"),
    rules("Don't merge pull requests yourself", "You can merge pull requests yourself again"),
)  # fmt: skip
FIXED_PROBLEMS = (
    notes("The login test is flaky", "Fixed the flaky login test"),
    notes("`make lint` fails because ruff is missing", "`make lint` works now"),
    notes("The importer crashes on empty files", "The importer no longer crashes on empty files"),
    notes("Docker builds time out on the arm runner", "Docker builds on the arm runner pass again"),
    notes("The worker leaks file handles", "The file handle leak of the worker is resolved"),
    Pair(ProposedFact("fault", "cargo nextest run", "cargo test", note="no such command"),
         ProposedFact("command", "test", "cargo nextest run", note="passed")),
)  # fmt: skip
REVERSED_DECISIONS = (
    answers("Which database should we use?", "PostgreSQL", "Which database do we use?", "SQLite"),
    answers("How should sessions be stored?", "In Redis", "How should sessions be stored?",
             "Signed cookies"),
    answers("Which license?", "MIT (Recommended)", "Which license?", "Apache-2.0"),
    answers("Should the exporter stream rows?", "Yes", "Should the exporter stream rows?", "No"),
    notes("State is kept in Redux", "We replaced Redux with Zustand for state"),
    notes("Background jobs go through Celery", "Background jobs moved from Celery to Dramatiq"),
    notes("We use Jest for component tests", "We switched to Vitest for component tests"),
)  # fmt: skip
OTHER_WORDS = (
    rules("Always run the tests before committing", "Run the test suite before every commit"),
    rules("Keep answers short", "Be brief in your replies"),
    rules("Never force-push", "Don't use git push --force"),
    rules("No emojis in commit messages", "Please don't put emojis into commit messages"),
    rules("Don't commit without running the tests", "Always run the tests before you commit"),
    rules("Prefer small functions", "Functions should be small"),
    notes("The docs are built with mkdocs", "mkdocs builds the documentation"),
)
MUST_REPLACE = (
    *CHANGED_VALUES, *WITHDRAWN_RULES, *FIXED_PROBLEMS, *REVERSED_DECISIONS, *OTHER_WORDS,
)  # fmt: skip

MUST_STAY = (
    # Values of two things.
    notes("The web package listens on port 3000", "The api package listens on port 8080"),
    notes("The database runs on port 5432", "The test database runs on port 5433"),
    notes("Staging is deployed from develop", "Production is deployed from main"),
    notes("The API times out after 30 seconds", "The upload times out after 5 minutes"),
    notes("CI uses Node 18", "The Docker image uses Node 20"),
    notes("Python 3.11 is the oldest supported version", "Python 3.13 is the newest we test"),
    notes("Logs are in /var/log/lamp", "Backups are in /srv/backups"),
    notes("The linter reads pyproject.toml", "The bundler reads vite.config.ts"),
    notes("The frontend uses npm", "The backend uses poetry"),
    places("web port", "3000", "api port", "8080"),
    places("staging host", "stage.example.com", "production host", "www.example.com"),
    Pair(ProposedFact("command", "test", "npm test", scope="web"),
         ProposedFact("command", "test", "pnpm test", scope="api")),
    Pair(ProposedFact("command", "test", "make test"),
         ProposedFact("command", "test", "pytest tests/test_lamp.py")),
    Pair(ProposedFact("place", "port", "3000", scope="packages/web"),
         ProposedFact("place", "port", "3001", scope="packages/admin")),
    # Rules about different things.
    rules("Never push to main", "Always push feature branches to origin"),
    rules("Always run the tests before committing", "Always run the formatter before committing"),
    rules("Don't add comments", "Add comments to public functions"),
    rules("Never use mocks in unit tests", "Use mocks in integration tests"),
    rules("Keep answers short", "Keep commits small"),
    rules("Write commit messages in English", "Write user documentation in German"),
    rules("Never edit generated files", "Never commit generated files"),
    rules("Use tabs in Makefiles", "Use spaces in Python files"),
    rules("Ask before deleting files", "Ask before adding dependencies"),
    rules("Never push to main", "You may push to the docs branch again"),
    rules("Always add a changelog entry", "Stop adding debug output"),
    rules("No emojis in commit messages", "No emojis in the user interface"),
    # Only the user takes back what the user said.
    Pair(ProposedFact("rule", "", "Never push to main", origin="person"),
         ProposedFact("rule", "", "You may push to main again", origin="agent")),
    Pair(ProposedFact("decision", "Which database?", "PostgreSQL", origin="person"),
         ProposedFact("decision", "Which database?", "MySQL", origin="agent")),
    # The same word in another sense, or another problem.
    notes("The port of the parser to Rust is done", "The parser service uses port 7000"),
    notes("Cache tokens in Redis", "CI caches wheels between runs"),
    notes("The build key is stored in the vault", "Press any key to rebuild"),
    notes("The login test is flaky", "Fixed the layout of the login page"),
    notes("The importer crashes on empty files", "The exporter no longer crashes on empty tables"),
    notes("`make lint` fails because ruff is missing", "`make test` passes"),
    notes("Branch protection is on for main", "The main menu has a dark theme"),
    notes("Tests live in tests/", "Tests are run with pytest"),
    # Questions about different things.
    answers("Which database in tests?", "SQLite", "Which database for production?", "MySQL"),
    answers("How should I proceed?", "Fix the parser", "How should I proceed?", "Write the docs"),
    answers("Should the exporter stream rows?", "Yes", "Should the importer stream rows?", "No"),
    Pair(ProposedFact("artifact", "branch", "fix-lamp"),
         ProposedFact("artifact", "branch", "fix-fuse")),
)  # fmt: skip
