"""Words that a comparison of two statements knows: names that exclude each other, words that mean
the same, and words that say nothing about the subject."""

# Of each class a project usually has one: another name for the same subject is a changed value.
RIVALS: dict[str, str] = {
    "package manager": "npm pnpm yarn bun pip uv poetry pipenv conda mamba pdm hatch",
    "task runner": "make just task rake invoke nox tox gulp grunt bazel gradle maven mvn sbt",
    "database": "postgres postgresql mysql mariadb sqlite mongodb mongo oracle cockroachdb duckdb"
    " dynamodb cassandra firestore supabase redis memcached valkey",
    "queue": "kafka rabbitmq sqs nats celery sidekiq bullmq resque pubsub",
    "test framework": "pytest unittest jest vitest mocha jasmine ava cypress playwright selenium"
    " rspec minitest junit testng",
    "formatter": "black ruff yapf autopep8 prettier biome dprint flake8 pylint eslint tslint"
    " stylelint gofmt gofumpt",
    "type checker": "mypy pyright pyre basedpyright",
    "branch": "main master develop trunk",
    "merging": "squash rebase fast-forward",
    "language": "python typescript javascript rust golang java kotlin ruby php swift elixir",
    "spoken language": "english german french spanish italian dutch portuguese chinese japanese",
    "spelling": "british american",
    "front end": "react vue svelte angular solid preact htmx ember",
    "state library": "redux zustand mobx recoil jotai pinia vuex",
    "styling": "tailwind sass scss css-modules styled-components emotion bootstrap",
    "bundler": "webpack vite rollup esbuild parcel turbopack rspack",
    "http framework": "flask fastapi django starlette express koa hono nestjs rails sinatra gin",
    "object mapper": "prisma drizzle typeorm sequelize sqlalchemy knex peewee",
    "api style": "rest graphql grpc trpc soap",
    "cloud": "aws gcp azure heroku vercel netlify cloudflare digitalocean hetzner linode render"
    " railway",
    "container": "docker podman containerd nerdctl",
    "orchestration": "kubernetes nomad swarm ecs",
    "ci": "jenkins circleci travis buildkite drone teamcity github-actions gitlab-ci",
    "indentation": "tabs spaces",
    "quotes": "single double",
    "case": "camelcase snake_case snakecase kebab-case pascalcase",
    "format": "json yaml toml xml ini csv protobuf msgpack parquet",
    "license": "mit apache-2.0 gpl bsd agpl mpl",
    "auth": "jwt oauth saml basic-auth cookies api-key",
    "day": "monday tuesday wednesday thursday friday saturday sunday",
    "pace": "hourly daily weekly monthly nightly quarterly",
    "log library": "winston pino loguru structlog logback log4j zap zerolog",
    "shell": "bash zsh fish powershell",
    "editor": "vim neovim vscode emacs intellij",
    "theme": "light dark",
    "tracker": "jira linear asana trello youtrack",
    "chat": "slack discord teams mattermost",
    "key": "uuid ulid serial cuid nanoid",
}
CLASS_OF = {name: group for group, names in RIVALS.items() for name in names.split()}

# Words of each line mean the same here.
_SYNONYMS = """\
answer reply response respond
short brief concise terse
test spec suite testsuite
commit checkin committed
delete remove erase
database db
documentation doc docs
repository repo
directory folder dir
configuration config conf cfg setting
environment env
dependency package library dep
function method
message msg
pullrequest pr prs
write author written wrote
comment remark
ask confirm consult check approve approval permission
branch
add introduce insert
deploy deployment ship release publish rollout
build built compile
login signin
fast quick
fail broken break breakage failure crash
server
user customer
endpoint route
credential secret password token
change modify edit alter touch
log logging
format formatting formatter
lint linting linter
type typing
name naming
allow permit
finish done complete
large big huge
emoji emoticon
explain explanation describe
generate produce
mock stub fake
import
variable var
production prod
staging stage
development dev
frontend client ui
backend
reason why
send sent
character char
email mail e-mail
parameter param argument arg
authentication auth
indent indentation
"""
SYNONYM = {word: line.split()[0] for line in _SYNONYMS.splitlines() for word in line.split()}

# Verbs and fillers that name no subject; a change of them alone changes nothing.
LIGHT_WORDS = """\
a an the this that these those it its is are was were be been being am do does did done to of
in on at by for with from into onto as and or but so then than there here we you i they he she
our your my their us me them please just also really very only ever kindly
use using used utilize run running runs ran listen listens live lives living lie lies set sets
go goes went put puts get gets got keep keeps kept make makes made take takes have has had sit
stay stays want wants need needs needed prefer prefers like would will shall should must may
might can could let lets work works start starts started serve serves served sure ensure always
never not no none without every each any all when whenever while if unless once again now still
already currently today anymore longer more since because until till before own new old current
git which what who how where up out over via through per under available bound bind expect stick
reach reachable point points store stored storing locate located default right back turn switch
time times everything anything something nothing instead rather one thing way there's it's
decide decided decision choose chose chosen pick picked go-to standard project rule policy agree
agreed ok okay fine yes well good value called name's requires require required targets target
yourself myself directly below than most long
bit piece appear appears show shows contain number line-up based"""
LIGHT = frozenset(LIGHT_WORDS.split())
# A statement about one of these says nothing about another.
QUALIFIERS_WORDS = """\
dev development test production prod staging stage local remote ci preview demo sandbox qa
web api admin frontend backend client server worker mobile ios android desktop cli docs internal
external public private unit integration e2e smoke nightly legacy v1 v2 primary replica read
write linux windows macos mac first second minor major patch upper lower min max minimum maximum
input output inbound outbound source destination"""
QUALIFIERS = frozenset(QUALIFIERS_WORDS.split())
# Nouns that say which sort of thing, not which one.
WEAK = "file code directory path type location column logic part stuff anything"
