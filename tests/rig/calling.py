"""A handler that announces a call, and is done when it is called back."""

import threading

from board.ports import Cause, ErrorClass, Failure, Job, JsonObject, NeedsInput, NotStarted, Outcome, SentOperation
from tests.rig.working import Gate, Probe

FORM: JsonObject = {
    "id": "f-1",
    "title": "May it?",
    "content": "",
    "fields": [],
    "actions": [{"id": "yes", "title": "Yes"}],
    "expires_at": None,
}
URL = "http://127.0.0.1:8000/api/v1/callbacks/"


class Caller(Probe):
    """Announces a call and waits so many seconds for its callback.

    asks: it does not wait, and says that a person is to fill in a form. begin: passed before it waits. then: passed
    when it has waited in vain, which `gave_up` tells. stays_open: it says then that the call may still be going on.
    """

    waits = ("callback",)

    def __init__(
        self,
        *,
        within: float = 20.0,
        begin: Gate | None = None,
        then: Gate | None = None,
        asks: bool = False,
        stays_open: bool = True,
        side_effects: bool = True,
    ) -> None:
        super().__init__(self._call, self._look, name="caller", side_effects=side_effects)
        self.asks, self.stays_open = asks, stays_open
        self.within, self.begin, self.then, self.gave_up = within, begin, then, Gate()
        self.urls: list[str] = []
        self.told = threading.Condition()

    async def _call(self, job: Job) -> Outcome:
        await job.send(kind="test.call", target="a flow", request=b"{}")
        assert job.answer_url is not None
        with self.told:
            self.urls.append(job.answer_url)
            self.told.notify_all()
        if self.asks:
            return NeedsInput("The flow asks.", FORM)
        if self.begin is not None:
            await self.begin.passed()
        called = await job.called_back(self.within)
        if called is not None:
            return called.outcome()
        self.gave_up.open()
        if self.then is not None:
            await self.then.passed()
        return Failure(ErrorClass.TRANSIENT, Cause.TIMEOUT, "No word yet.", open_operation=self.stays_open)

    async def _look(self, job: Job, operation: SentOperation) -> Outcome | NotStarted:
        called = await job.called_back(0)
        if called is not None:
            return called.outcome()
        return Failure(ErrorClass.TRANSIENT, Cause.TIMEOUT, "No word yet.", open_operation=True)

    def token(self, number: int = 1) -> str:
        with self.told:
            assert self.told.wait_for(lambda: len(self.urls) >= number, 15)
        url = self.urls[number - 1]
        assert url.startswith(URL)
        return url.removeprefix(URL)
