"""/healthz says the process lives; /readyz says whether it can work, and what is wrong when it cannot."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from board.access.errors import WrongKey
from board.access.installation import check_key
from board.api.deps import TheBoard
from board.db.migrate import SchemaError, check

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> JSONResponse:
    """Alive."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
def readyz(board: TheBoard) -> JSONResponse:
    """Whether database, schema and key are as they must be."""
    checks: dict[str, str] = {}
    try:
        with board.db.read() as connection:
            checks["database"] = "ok"
            check(connection)
            checks["migrations"] = "ok"
            check_key(connection, board.vault)
            checks["key"] = "ok"
    except SchemaError as error:
        checks["migrations"] = str(error)
    except WrongKey as error:
        checks["key"] = str(error)
    except Exception:
        checks["database"] = "The database does not answer. See BOARD_DATABASE_URL and the log."
    good = all(value == "ok" for value in checks.values())
    return JSONResponse({"status": "ready" if good else "not ready", "checks": checks}, 200 if good else 503)
