"""What the templates of a type see of one task that is at work."""

from __future__ import annotations

from typing import Any

from sqlalchemy import RowMapping


def template_context(row: RowMapping, data: RowMapping, answer_url: str | None = None) -> dict[str, Any]:
    """What a type's templates see. The review's fields are always there and empty in round 1."""
    return {
        "task_id": row["task_id"],
        "type": row["type"],
        "title": row["title"],
        "source": row["source"],
        "payload": data["payload"],
        "tags": row["tags"],
        "priority": f"P{row['priority']}",
        "round": row["round"],
        "attempt": row["lease_token"],
        "callback": {"url": answer_url},
        "review": {"instruction": data["instruction"] or "", "former_output": data["former_output"] or ""},
        "today": row["updated_at"].date().isoformat(),
        "now": row["updated_at"].isoformat(),
        "result": data["result"],
        "judgement": data["judgement"] or {},
        "decision": data["decision"] or {},
    }
