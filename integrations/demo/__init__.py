"""The demo: a stand-in for Dify, a webhook receiver, sample types and tasks. `board up --demo` loads it."""

from __future__ import annotations

from board.ports import Demo
from integrations.demo import samples
from integrations.demo.dify_app import create_app
from integrations.demo.streams import Pace

RUN_SECONDS = 2.0  # long enough that a person sees a task run and its text grow


def demo() -> Demo:
    """A fresh stand-in with its samples, for the entry-point group `board.demo`."""
    return Demo("/demo", create_app(Pace(run=RUN_SECONDS)), samples.catalogue(), samples.tasks())
