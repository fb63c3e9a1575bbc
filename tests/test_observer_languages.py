"""Sessions in languages that the local observer was not trained on: judged by structure alone."""

import pytest

from claude_mem.types import Turn
from tests.turns import edited, ran, session, stopped, turn

GERMAN = (
    turn(edited("src/anmeldung.py"), stopped(
        "Die Anmeldung schlug fehl, weil `token_gueltig()` die Zeitzone nicht berücksichtigt hat."
        " Die Prüfung rechnet jetzt überall mit UTC."), prompt="Die Anmeldung geht nicht mehr"),
    turn(stopped("Gern geschehen!"), prompt="danke"),
    turn(stopped(
        "Die Sitzungen liegen in Redis unter `sess:<id>` und verfallen nach 30 Minuten. Bei jedem"
        " Aufruf von `touch()` wird die Frist verlängert."),
        prompt="Wo werden Sitzungen gespeichert?"),
)  # fmt: skip
SPANISH = (
    turn(edited("src/carrito.py"), stopped(
        "El total salía mal porque `aplicar_descuento()` guardaba un valor antiguo. Ahora se"
        " recalcula después de cada descuento."),
        prompt="El total del carrito sale mal con dos descuentos"),
    turn(stopped("¡De nada!"), prompt="gracias"),
    turn(stopped(
        "La cola se vacía en `vaciar_cola()` antes de cerrar el servidor; el límite son 20 segundos"
        " porque el sistema mata el proceso a los 30."), prompt="¿Cuándo se vacía la cola?"),
)  # fmt: skip
RUSSIAN = (
    turn(edited("src/cache.go"), stopped(
        "Сервер падал, потому что `Get()` читал карту без блокировки. Теперь чтение идёт под"
        " `RWMutex`."), prompt="Сервер падает при одновременных запросах"),
    turn(stopped("Пожалуйста!"), prompt="спасибо"),
    turn(stopped(
        "Срок жизни сессии хранится в `config/redis.yaml` и равен тридцати минутам; функция"
        " `Touch()` продлевает его при каждом запросе."), prompt="Где хранится срок сессии?"),
)  # fmt: skip
JAPANESE = (
    turn(edited("src/session.ts"), stopped(
        "ログインできない原因は、`session.ts`でCookieの期限がミリ秒で比較されていたことでした。"
        "秒に統一しました。"), prompt="ログインできない問題を修正してください"),
    turn(stopped("どういたしまして。"), prompt="ありがとう"),
    turn(stopped(
        "セッションはRedisの`sess:<id>`に保存され、三十分で失効します。`touch()`が呼ばれるたびに"
        "期限が延長されます。"), prompt="セッションはどこに保存されますか"),
)  # fmt: skip
SESSIONS = pytest.mark.parametrize(
    "turns", [GERMAN, SPANISH, RUSSIAN, JAPANESE], ids=["German", "Spanish", "Russian", "Japanese"]
)


@SESSIONS
def test_work_and_answers_are_observed_and_thanks_are_not(turns: tuple[Turn, ...]) -> None:
    work, thanks, answer = session(*turns)
    assert (len(work.observations), len(thanks.observations), len(answer.observations)) == (1, 0, 1)


@SESSIONS
def test_a_memory_is_in_the_words_of_its_session(turns: tuple[Turn, ...]) -> None:
    for of, result in zip(turns, session(*turns), strict=True):
        said = f"{of.prompt}\n{of.events[-1].text}".lower()
        for observation in result.observations:
            for sentence in (observation.title, observation.narrative):
                assert sentence and sentence.rstrip(".").lower() in said


@SESSIONS
def test_a_commit_alone_is_not_observed(turns: tuple[Turn, ...]) -> None:
    commit = turn(ran("git commit -m 'x'", "[main 1a2b3c4] x"), stopped("OK"), prompt="commit")
    *_, result = session(*turns, commit)
    assert result.observations == ()
