"""What people see of callbacks that came in."""

import pytest

from board.effects.incoming import Late
from tests.rig.calling import Caller
from tests.rig.working import OpenWorking
from tests.web.conftest import Site


def test_who_must_decide_sees_what_a_late_callback_said(working_sqlite: OpenWorking) -> None:
    """Nobody called back in time; the result that came too late stands in the history, made harmless."""
    caller = Caller(within=0.02)
    board = working_sqlite(caller)
    board.type("flow", use="caller", handler={"timeout": "50ms"}, retry={"max": 0})
    board.submit(type="flow")
    board.wait("T-1", "needs_review")
    body = {"status": "succeeded", "result": {"invoice": "R-17", "text": "<b>x</b>\u202eabc"}, "message": "Ready."}
    with pytest.raises(Late):
        board.board.incoming.take(caller.token(), body)
    site = Site(board)
    for lang, words in (("en", "A callback came that does not count any more"), ("zh-CN", "收到一个已不再有效的回调")):
        visitor = site.visitor("owner", lang=lang)
        for path in ("/tasks/T-1", f"/reviews/{board.reviews()[-1]['id']}"):
            page = visitor.get(path).text
            assert words in page
            assert "Ready." in page
            assert "R-17" in page
            assert "&lt;b&gt;x&lt;/b&gt;abc" in page, "no markup and no hidden characters"
