"""/healthz says the process lives; /readyz says whether it can work, and what is wrong when it cannot."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from board.api.deps import TheBoard
from board.health import is_ready, readiness

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> JSONResponse:
    """Alive."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
def readyz(board: TheBoard) -> JSONResponse:
    """Whether database, schema and key are as they must be, and whether the work in this process goes on."""
    checks = readiness(board)
    good = is_ready(checks)
    return JSONResponse({"status": "ready" if good else "not ready", "checks": checks}, 200 if good else 503)
