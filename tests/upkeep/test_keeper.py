"""Some chores are done in every process, the others in the one that leads alone, also after it has left."""

from __future__ import annotations

from board.upkeep.keeper import Chore, Keeper
from tests.rig.working import OpenWorking

ALONE = {
    "fire schedules",
    "age waiting tasks",
    "look at deadlines",
    "archive old tasks",
    "forget workers",
    "forget firings",
}


def keeper_of(working: OpenWorking) -> Keeper:
    return working(start=False).board.make_consumer()._keeper


def seek(keeper: Keeper) -> None:
    [seeking] = [chore for chore in keeper.chores if chore.what == "find out who leads"]
    assert not keeper.do(seeking), "to lead makes nothing ready: nobody looks for work because of it"


def test_what_only_the_leader_does_nobody_else_does(working: OpenWorking) -> None:
    first_board = working(start=False).board
    first, second = first_board.make_consumer()._keeper, keeper_of(working)
    assert {chore.what for chore in first.chores if chore.alone} >= ALONE
    done: list[str] = []

    def both() -> list[str]:
        for name, keeper in (("first", first), ("second", second)):
            for alone in (True, False):
                keeper.do(Chore("x", lambda name=name, alone=alone: done.append(f"{name} {alone}"), 1.0, alone))
        told = list(done)
        done.clear()
        return told

    assert both() == ["first False", "second False"], "nobody leads yet"
    seek(first)
    seek(second)
    assert both() == ["first True", "first False", "second False"]
    with first_board.db.write() as tx:
        first.leave(tx)
    seek(second)
    assert both() == ["first False", "second True", "second False"]
