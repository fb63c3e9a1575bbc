"""Pairs of facts, the older first: those of which the newer replaces or repeats the older, and
those that must both stay."""

from typing import NamedTuple

from claude_mem.types import FactKind, ProposedFact


class Pair(NamedTuple):
    older: ProposedFact
    newer: ProposedFact


def said(older: str, newer: str, kind: FactKind = "rule") -> Pair:
    return Pair(*(ProposedFact(kind, "", text, origin="person") for text in (older, newer)))


def noted(older: str, newer: str) -> Pair:
    return Pair(*(ProposedFact("decision", "", text) for text in (older, newer)))


def answered(question: str, answer: str, later_question: str, later_answer: str) -> Pair:
    return Pair(
        ProposedFact("decision", question, answer, origin="person"),
        ProposedFact("decision", later_question, later_answer, origin="person"),
    )


def located(subject: str, value: str, later_subject: str, later_value: str) -> Pair:
    return Pair(
        ProposedFact("place", subject, value), ProposedFact("place", later_subject, later_value)
    )


CHANGED_VALUES = (
    noted("The API listens on port 8080", "The API now listens on port 9090"),
    noted("Deploys run on Fridays", "We deploy on Tuesday now"),
    noted("CI uses Node 18", "CI uses Node 20"),
    noted("Settings are read from config.yaml", "Settings are read from settings.toml"),
    noted("The cache expires after 30 seconds", "The cache expires after 5 minutes"),
    noted("Logs are written to /var/log/lamp", "Logs are written to /srv/lamp/logs"),
    noted("Install dependencies with npm", "Install dependencies with pnpm"),
    said("Lines may have at most 100 characters", "Lines may have at most 120 characters"),
    said("Write commit messages in German", "Write commit messages in English"),
    located("staging host", "stage1.example.com", "staging host", "stage2.example.com"),
    located("dashboard port", "3000", "port of the dashboard", "3100"),
)
WITHDRAWN_RULES = (
    said("Never push to main", "You may push to main again"),
    said("Always run the linter before committing",
         "You no longer need to run the linter before committing"),
    said("Always add a changelog entry", "Stop adding changelog entries"),
    said("Never touch the vendored code", "It's fine to change the vendored code now"),
    said("Answer in German from now on", "Forget the rule about answering in German"),
    said("Don't use em dashes in docs", "Forget what I said, the rule on em dashes is gone"),
    said("Ask me before every deployment", "You don't have to ask before a deployment any more"),
    said("No new dependencies without my approval", "New dependencies no longer need my approval"),
    said("Don't merge pull requests yourself", "You can merge pull requests yourself again"),
)  # fmt: skip
FIXED_PROBLEMS = (
    noted("The login test is flaky", "Fixed the flaky login test"),
    noted("`make lint` fails because ruff is missing", "`make lint` works now"),
    noted("The importer crashes on empty files", "The importer no longer crashes on empty files"),
    noted("Docker builds time out on the arm runner", "Docker builds on the arm runner pass again"),
    noted("The worker leaks file handles", "The file handle leak of the worker is resolved"),
    Pair(ProposedFact("fault", "cargo nextest run", "cargo test", note="no such command"),
         ProposedFact("command", "test", "cargo nextest run", note="passed")),
)  # fmt: skip
REVERSED_DECISIONS = (
    answered("Which database should we use?", "PostgreSQL", "Which database do we use?", "SQLite"),
    answered("How should sessions be stored?", "In Redis", "How should sessions be stored?",
             "Signed cookies"),
    answered("Which license?", "MIT (Recommended)", "Which license?", "Apache-2.0"),
    answered("Should the exporter stream rows?", "Yes", "Should the exporter stream rows?", "No"),
    noted("State is kept in Redux", "We replaced Redux with Zustand for state"),
    noted("Background jobs go through Celery", "Background jobs moved from Celery to Dramatiq"),
    noted("We use Jest for component tests", "We switched to Vitest for component tests"),
)  # fmt: skip
OTHER_WORDS = (
    said("Always run the tests before committing", "Run the test suite before every commit"),
    said("Keep answers short", "Be brief in your replies"),
    said("Never force-push", "Don't use git push --force"),
    said("No emojis in commit messages", "Please don't put emojis into commit messages"),
    said("Don't commit without running the tests", "Always run the tests before you commit"),
    said("Prefer small functions", "Functions should be small"),
    noted("The docs are built with mkdocs", "mkdocs builds the documentation"),
)
MUST_REPLACE = (
    *CHANGED_VALUES, *WITHDRAWN_RULES, *FIXED_PROBLEMS, *REVERSED_DECISIONS, *OTHER_WORDS,
)  # fmt: skip

MUST_STAY = (
    # Values of two things.
    noted("The web package listens on port 3000", "The api package listens on port 8080"),
    noted("The database runs on port 5432", "The test database runs on port 5433"),
    noted("Staging is deployed from develop", "Production is deployed from main"),
    noted("The API times out after 30 seconds", "The upload times out after 5 minutes"),
    noted("CI uses Node 18", "The Docker image uses Node 20"),
    noted("Python 3.11 is the oldest supported version", "Python 3.13 is the newest we test"),
    noted("Logs are in /var/log/lamp", "Backups are in /srv/backups"),
    noted("The linter reads pyproject.toml", "The bundler reads vite.config.ts"),
    noted("The frontend uses npm", "The backend uses poetry"),
    located("web port", "3000", "api port", "8080"),
    located("staging host", "stage.example.com", "production host", "www.example.com"),
    Pair(ProposedFact("command", "test", "npm test", scope="web"),
         ProposedFact("command", "test", "pnpm test", scope="api")),
    Pair(ProposedFact("command", "test", "make test"),
         ProposedFact("command", "test", "pytest tests/test_lamp.py")),
    Pair(ProposedFact("place", "port", "3000", scope="packages/web"),
         ProposedFact("place", "port", "3001", scope="packages/admin")),
    # Rules about different things.
    said("Never push to main", "Always push feature branches to origin"),
    said("Always run the tests before committing", "Always run the formatter before committing"),
    said("Don't add comments", "Add comments to public functions"),
    said("Never use mocks in unit tests", "Use mocks in integration tests"),
    said("Keep answers short", "Keep commits small"),
    said("Write commit messages in English", "Write user documentation in German"),
    said("Never edit generated files", "Never commit generated files"),
    said("Use tabs in Makefiles", "Use spaces in Python files"),
    said("Ask before deleting files", "Ask before adding dependencies"),
    said("Never push to main", "You may push to the docs branch again"),
    said("Always add a changelog entry", "Stop adding debug output"),
    said("No emojis in commit messages", "No emojis in the user interface"),
    # Only the user takes back what the user said.
    Pair(ProposedFact("rule", "", "Never push to main", origin="person"),
         ProposedFact("rule", "", "You may push to main again", origin="agent")),
    Pair(ProposedFact("decision", "Which database?", "PostgreSQL", origin="person"),
         ProposedFact("decision", "Which database?", "MySQL", origin="agent")),
    # The same word in another sense, or another problem.
    noted("The port of the parser to Rust is done", "The parser service uses port 7000"),
    noted("Cache tokens in Redis", "CI caches wheels between runs"),
    noted("The build key is stored in the vault", "Press any key to rebuild"),
    noted("The login test is flaky", "Fixed the layout of the login page"),
    noted("The importer crashes on empty files", "The exporter no longer crashes on empty tables"),
    noted("`make lint` fails because ruff is missing", "`make test` passes"),
    noted("Branch protection is on for main", "The main menu has a dark theme"),
    noted("Tests live in tests/", "Tests are run with pytest"),
    # Questions about different things.
    answered("Which database in tests?", "SQLite", "Which database for production?", "MySQL"),
    answered("How should I proceed?", "Fix the parser", "How should I proceed?", "Write the docs"),
    answered("Should the exporter stream rows?", "Yes", "Should the importer stream rows?", "No"),
    Pair(ProposedFact("artifact", "branch", "fix-lamp"),
         ProposedFact("artifact", "branch", "fix-fuse")),
)  # fmt: skip
