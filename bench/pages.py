"""How long the inbox and the page of a review take, with 10,000 reviews waiting and a million finished tasks."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from statistics import median

import httpx2
from sqlalchemy import Connection, func, insert, select, text, update

from bench.boards import MeasuredBoard, measured
from bench.crowd import vacuum
from bench.report import Goal, Report
from bench.stand import Stand
from board.access import keys, sessions, users
from board.db.clock import now
from board.review.models import reviews
from board.tasks.models import task_data, tasks

NAME = "pages"
LIMIT = 50.0  # milliseconds of the server, 95 of 100 looks
FIRST_SIGHT = 100.0  # kB: page, styles and scripts
RESULT = {"summary": "A complaint about a late parcel, in two lines as they come.", "reply": "Thank you. " * 40}
JUDGED = {"summary": RESULT["summary"], "confidence": 0.92, "reasons": ["Keywords: late"], "risks": []}


def run(stand: Stand, *, waiting: int = 10_000, finished: int = 1_000_000, looks: int = 200) -> Report:
    report = Report(NAME)
    with measured(stand, stand.postgres(), {"review": {"when": "always"}}) as board:
        shown = _fill(board, waiting, finished)
        api = board.start("api")
        key = {"Authorization": f"Bearer {_key(board)}"}
        with httpx2.Client(base_url=api.url, cookies={"board_session": _sign_in(board)}) as client:
            for path in ("/", f"/reviews/{shown}", "/decided", "/?risk=high&type=echo", "/api/v1/reviews"):
                name = re.sub(r"/\d+", "/N", path)
                report.rows[name] = _timed(lambda path=path: client.get(path, headers=key), looks)  # type: ignore[misc]
                if path != "/decided":
                    report.goals.append(Goal(f"ms of {name}, 95 of 100", report.rows[name]["p95 ms"], LIMIT, False))
            weight = _first_sight(client)
        report.rows["first sight"] = {"kB": weight}
        report.goals.append(Goal("kB of the inbox at first sight", weight, FIRST_SIGHT, False))
    return report


def _timed(look: Callable[[], httpx2.Response], looks: int) -> dict[str, float]:
    spans = []
    for _ in range(looks + 5):
        begun = time.perf_counter()
        answer = look()
        spans.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, answer.status_code
    spans = sorted(spans[5:])  # the first ones make statements and templates
    return {"ms": median(spans), "p95 ms": spans[math.ceil(len(spans) * 0.95) - 1]}


def _first_sight(client: httpx2.Client) -> float:
    """kB over the line of the page with all that it loads; its modules name each other."""
    page = client.get("/")
    sizes, seen = [len(page.content)], set[str]()
    todo = re.findall(r'(?:href|src)="(/static/[^"]+\.(?:css|js))"', page.text)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        file = client.get(path, headers={"Accept-Encoding": "gzip"})
        sizes.append(int(file.headers["content-length"]))
        todo += [f"{path.rsplit('/', 1)[0]}/{name}" for name in re.findall(r'from "\./([\w.]+)"', file.text)]
    return sum(sizes) / 1000


def _sign_in(board: MeasuredBoard) -> str:
    with board.board.db.write() as tx:
        person = users.add(tx, "bench@example.org", "reviewer")
        return sessions.start(tx, person.id)[0]


def _key(board: MeasuredBoard) -> str:
    with board.board.db.write() as tx:
        return keys.create(tx, "bench-reader", ["read"])


def _fill(board: MeasuredBoard, waiting: int, finished: int) -> int:
    """Copies of one task that was put in as any other; the id of a review in the middle."""
    board.fill(1)
    with board.board.db.write() as tx:
        model = tx.execute(select(func.max(tasks.c.id))).scalar_one()
        tx.execute(update(task_data).where(task_data.c.task == model).values(result=RESULT, judgement=JUDGED))
        _copies(tx, model, finished, "done", "finished")
        first = _copies(tx, model, waiting, "needs_review", "waiting")
        asked = select(
            tasks.c.id,
            text("'policy'"),
            text("'open'"),
            text("'low'"),
            text("1"),
            text("1"),
            text("md5(task_id)"),
            now(),
        ).where(tasks.c.id >= first)
        names = ["task", "reason", "status", "risk", "round", "version", "content_hash", "opened_at"]
        tx.execute(insert(reviews).from_select(names, asked))
        tx.execute(text("UPDATE reviews SET due_at = opened_at + id % 1000 * interval '1 minute' WHERE id % 3 = 0"))
        tx.execute(text("UPDATE reviews SET risk = 'high' WHERE id % 5 = 0"))
        tx.execute(text("UPDATE reviews SET lane = tasks.lane FROM tasks WHERE tasks.id = reviews.task"))
        shown = tx.execute(select(func.min(reviews.c.id))).scalar_one() + waiting // 2
    vacuum(board)
    return int(shown)


def _copies(tx: Connection, model: int, count: int, status: str, name: str) -> int:
    """The id of the first copy."""
    last = tx.execute(select(func.max(tasks.c.id))).scalar_one()
    value = {it.name: it.name for it in tasks.c if it.name != "id"}
    value |= {"status": ":status", "task_id": f"'{name}-' || n", "lane": "n % 4"}
    tx.execute(
        text(
            f"INSERT INTO tasks ({', '.join(value)}) SELECT {', '.join(value.values())}"
            " FROM tasks, generate_series(1, :count) AS numbers (n) WHERE id = :model"
        ),
        {"model": model, "count": count, "status": status},
    )
    data = {it.name: it.name for it in task_data.c} | {"task": "tasks.id"}
    tx.execute(
        text(
            f"INSERT INTO task_data ({', '.join(data)}) SELECT {', '.join(data.values())}"
            " FROM task_data, tasks WHERE task_data.task = :model AND tasks.id > :last"
        ),
        {"model": model, "last": last},
    )
    return int(last) + 1
