"""Watches one answer of a chat or completion app over its event stream, and reads one that comes in one piece."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from board.ports import JsonObject
from integrations.dify.client import PAUSED, Run, mapping_of, text_of, tokens_of
from integrations.dify.jsontext import MAX_RAW_TEXT, one_line
from integrations.dify.live import CutShort, LiveRun, reasons_of


@dataclass(slots=True)
class LiveTalk(LiveRun):
    """As LiveRun, for messages. A chatflow is a run of the workflow engine too, and ends as one."""

    ids: dict[str, str] = field(default_factory=dict)  # conversation_id and message_id, as far as they were seen
    tokens: int | None = None
    agent_spoke: bool = False
    by_engine: bool = False

    def _ended(self, status: str, error: str | None = None) -> Run:
        """The answer as a run of its own: its id is the message's, its output the text."""
        run_id = self.run_id or self.ids.get("message_id", "")
        return Run(run_id, status, {"answer": self.text}, error, self.tokens)

    async def _whole_of(self, said: JsonObject) -> Run:
        await self._see(said)
        if said.get("event") == "workflow_paused":
            self.forms = list(reasons_of(mapping_of(said, "data")))
            return self._ended(PAUSED)
        if said.get("event") != "message":
            raise CutShort("the answer came before the run ended")
        await self._text(text_of(said, "answer"))
        self._usage(mapping_of(said, "metadata"))
        return self._ended("succeeded")

    async def _hear(self, message: JsonObject) -> Run | None:
        await self._see(message)
        data = mapping_of(message, "data")
        match message.get("event"):
            case "message" if self.agent_spoke:  # the whole answer once more
                self._replace(text_of(message, "answer"))
            case "agent_message":
                self.agent_spoke = True
                await self._text(text_of(message, "answer"))
            case "message":
                await self._text(text_of(message, "answer"))
            case "message_replace":
                self._replace(text_of(message, "answer"))
            case "agent_thought":
                if tool := text_of(message, "tool"):
                    await self.job.progress(message=one_line(tool, 200))
            case "message_end":
                self._usage(mapping_of(message, "metadata"))
                if not self.by_engine:
                    return self._ended("succeeded")
            case "workflow_started":
                self.by_engine = True
                self._check_files(data)
            case "workflow_finished":
                run = Run.read(data, self.run_id or "")
                if not run.settled:
                    raise CutShort("the closing event does not say how the run ended")
                if self.text:  # the answer is what was said; other outputs of a chatflow are not shown to anybody
                    run = replace(run, outputs={"answer": self.text})
                return replace(run, total_tokens=self.tokens or run.total_tokens)
            case _:
                return await LiveRun._hear(self, message)
        return None

    async def _see(self, message: JsonObject) -> None:
        for name in ("conversation_id", "message_id"):
            if (found := text_of(message, name)) and len(found) <= 200 and found.isprintable():
                self.ids[name] = found
        if self.run_id is None and not self.by_engine and "message_id" in self.ids:
            await self._keep(text_of(message, "workflow_run_id") or self.ids["message_id"])

    def _replace(self, text: str) -> None:
        self.texts = [text[: MAX_RAW_TEXT + 1]]
        self.length = len(self.texts[0])

    def _usage(self, metadata: JsonObject) -> None:
        usage = mapping_of(metadata, "usage")
        found = tokens_of(usage)
        self.tokens = self.tokens if found is None else found
        self.prices.clear()  # of the whole answer: what single nodes have cost is in it
        self._price(usage)
