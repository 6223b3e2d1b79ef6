"""Plays one run: start node, model node, end node, and whatever its plan says goes wrong. Of apps that the workflow
engine does not run, only the message is seen.

It runs as a task of its own and writes events on the run; callers that listen read them there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid

from integrations.demo.answers import ANSWERS, written
from integrations.demo.faults import STOPPED
from integrations.demo.judges.words import is_chinese
from integrations.demo.runs import Run
from integrations.demo.wire import JsonObject

PIECES = 6  # text chunks of one answer: enough to see it grow
FORM_DAYS = 3


async def play(run: Run, pace: float) -> None:
    """Run it from the queue to its end. pace: seconds of work where the plan names none."""
    plan = run.plan
    if plan.queue_seconds:
        await asyncio.sleep(plan.queue_seconds)
    run.created_at = time.time()
    run.status = "running"
    _started(run, "initial")
    if not plan.nodes:
        _finish(run, plan.status, plan.error)
        return
    _node(run, "start", "Start", run.inputs)
    if plan.status == "paused":
        await _ask_person(run, pace)
        return
    await _work(run, pace if plan.seconds is None else plan.seconds)


async def resume(run: Run, pace: float) -> None:
    """Go on after a person answered the form."""
    assert run.form is not None
    assert run.form_answer is not None
    run.closed_forms.append(run.form["form_token"])
    run.status = "running"
    _started(run, "resumption")
    filled = {
        "node_id": "person",
        "node_title": run.form["node_title"],
        "rendered_content": run.form["form_content"],
        "action_id": run.form_answer["action"],
        "action_text": run.form_answer["action"].capitalize(),
        "submitted_data": run.form_answer["inputs"],
    }
    run.emit("human_input_form_filled", filled)
    if len(run.closed_forms) < run.plan.pauses:
        run.form_answer = None
        await _ask_person(run, pace)
        return
    await _work(run, pace)


async def _ask_person(run: Run, pace: float) -> None:
    """Pause with a form; where it expires the run goes on by its time-out branch."""
    _pause(run)
    form = run.form
    if run.plan.form_seconds is None or form is None:
        return
    await asyncio.sleep(run.plan.form_seconds)
    if run.form is form and run.status == "paused":
        run.closed_forms.append(form["form_token"])
        run.status = "running"
        _started(run, "resumption")
        run.emit("human_input_form_timeout", {"node_id": "person", "node_title": form["node_title"]})
        await _work(run, pace)


def stop(run: Run) -> None:
    """The stop call: a working run ends at its next step, one that waits for a person at once."""
    run.stopping.set()
    if run.status == "paused" and run.plan.stoppable:
        _finish(run, "stopped", STOPPED)


async def _work(run: Run, seconds: float) -> None:
    plan = run.plan
    said = {"text": run.query} if run.query else {}
    outputs = plan.outputs if plan.outputs is not None else run.app.judge(run.inputs | said)
    outputs = {name: value for name, value in outputs.items() if name != plan.drop_field}
    if run.app.mode == "workflow":
        outputs = written(plan.answer, outputs) if plan.answer else outputs
        text = _spoken(outputs)
    else:
        spoken = plan.outputs is not None and set(plan.outputs) == {"text"}
        text = (
            str(outputs["text"])
            if spoken
            else ANSWERS[plan.answer or "fenced"](json.dumps(outputs, ensure_ascii=False))
        )
        outputs = {"answer": text}
    run.emit("node_started", _node_data("llm", "Judge") | {"inputs": run.inputs})
    for piece in _pieces(text):
        if await _stopped(run, seconds / (PIECES + 1)):
            break
        run.speak(piece)
    if await _stopped(run, seconds / (PIECES + 1)):
        _finish(run, "stopped", STOPPED)
        return
    run.tokens = 200 + len(str(run.inputs)) // 2 + len(text) // 2
    status = {"partial-succeeded": "exception", "failed": "failed"}.get(plan.status, "succeeded")
    _node_finished(run, "llm", "Judge", {} if status == "failed" else {"text": text}, status=status)
    if run.app.mode == "agent":
        run.say("message", answer=text)  # the new Agent apps end with the whole answer once more
        run.answer = text
    if plan.status in ("failed", "stopped"):
        _finish(run, plan.status, plan.error)
        return
    _node(run, "end", "End", outputs)
    run.outputs = outputs
    run.exceptions = int(status == "exception")
    status = "succeeded" if plan.status == "paused" else plan.status
    _finish(run, status, None)


async def _stopped(run: Run, seconds: float) -> bool:
    """Work for that long; True when somebody stopped the run meanwhile."""
    if not run.plan.stoppable:
        await asyncio.sleep(seconds)
        return False
    if not run.stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(run.stopping.wait(), seconds)
    return run.stopping.is_set()


def _started(run: Run, reason: str) -> None:
    run.emit(
        "workflow_started",
        {
            "id": run.id,
            "workflow_id": run.app.workflow_id,
            "inputs": run.all_inputs(),
            "created_at": int(run.created_at or 0),
            "reason": reason,
        },
    )


def _finish(run: Run, status: str, error: str | None) -> None:
    run.status, run.error, run.finished_at = status, error, time.time()
    if run.app.mode != "workflow" and status in ("succeeded", "partial-succeeded", "stopped"):
        run.say("message_end", metadata=run.usage(), files=[])
    elif not run.by_engine:
        run.say("error", code="completion_request_error", message=error, status=400)
    extra = {"created_by": {"id": run.end_user_id, "user": run.user}, "exceptions_count": run.exceptions, "files": []}
    run.emit("workflow_finished", run.result() | extra)


def _pause(run: Run) -> None:
    chinese = is_chinese(run.query or run.inputs["text"])
    run.form = {
        "form_id": str(uuid.uuid4()),
        "node_id": "person",
        "node_title": "人工确认" if chinese else "Ask a person",
        "form_content": "演示：可以发出吗？" if chinese else "Demo stand-in: may this go out?",
        "inputs": [{"type": "paragraph", "output_variable_name": "remark"}],
        "actions": [
            {"id": "approve", "title": "同意" if chinese else "Approve", "button_style": "primary"},
            {"id": "reject", "title": "拒绝" if chinese else "Reject", "button_style": "default"},
        ],
        "display_in_ui": True,
        "form_token": uuid.uuid4().hex if run.plan.web_form else None,
        "resolved_default_values": {},
        "expiration_time": int(time.time()) + FORM_DAYS * 86400,
    }
    run.status = "paused"
    run.emit("human_input_required", run.form)
    run.emit("workflow_paused", paused(run))


def paused(run: Run) -> JsonObject:
    """`data` of workflow_paused, and what a blocking answer adds."""
    assert run.form is not None
    return {
        "workflow_run_id": run.id,
        "paused_nodes": ["person"],
        "outputs": {},
        "reasons": [{"TYPE": "human_input_required", **run.form}],
        "status": "paused",
        "created_at": int(run.created_at or 0),
        "elapsed_time": run.elapsed,
        "total_tokens": run.tokens,
        "total_steps": run.steps,
    }


def _node(run: Run, kind: str, title: str, outputs: JsonObject) -> None:
    run.emit("node_started", _node_data(kind, title))
    _node_finished(run, kind, title, outputs)


def _node_finished(run: Run, kind: str, title: str, outputs: JsonObject, *, status: str = "succeeded") -> None:
    run.steps += 1
    error = None if status == "succeeded" else run.plan.error
    metadata = {"total_tokens": run.tokens if kind == "llm" else 0, "total_price": "0", "currency": "USD"}
    ends = {"status": status, "error": error, "outputs": outputs, "outputs_truncated": False, "process_data": {}}
    times = {"elapsed_time": run.elapsed, "finished_at": int(time.time()), "files": []}
    run.emit("node_finished", _node_data(kind, title) | ends | times | {"execution_metadata": metadata})


def _node_data(kind: str, title: str) -> JsonObject:
    return {
        "id": str(uuid.uuid4()),
        "node_id": kind,
        "node_type": kind,
        "title": title,
        "index": ("start", "llm", "end").index(kind) + 1,
        "predecessor_node_id": {"llm": "start", "end": "llm"}.get(kind),
        "inputs": {},
        "inputs_truncated": False,
        "created_at": int(time.time()),
        "extras": {},
        "iteration_id": None,
        "loop_id": None,
        "agent_strategy": None,
    }


def _spoken(outputs: JsonObject) -> str:
    """What streams as the model's text: its one text, or the parts that are meant for reading."""
    parts = [outputs.get(name) for name in ("text", "summary", "advice", "reply")]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]
