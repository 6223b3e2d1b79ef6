"""What the pages call whoever acts, and the ways by which they come."""

from __future__ import annotations

from board.web.wording.marks import N_

ROLE = {"owner": N_("Owner"), "operator": N_("Operator"), "reviewer": N_("Reviewer"), "viewer": N_("Viewer")}
ACTOR = {"worker": N_("Worker"), "timer": N_("Timer"), "system": N_("The board"), "key": N_("API key")}
CHANNEL = {
    "web": N_("page"),
    "api": N_("API"),
    "link": N_("link"),
    "cli": N_("command line"),
    "worker": N_("worker"),
    "timer": N_("timer"),
    "sweep": N_("rescue"),
    "dify": N_("Dify tool"),
    "mcp": N_("MCP"),
}
