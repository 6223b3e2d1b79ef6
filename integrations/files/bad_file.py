"""What is wrong with a file, as a sentence for people; travels from a child process to the handler."""

from __future__ import annotations


class BadFile(Exception):
    """This file cannot be worked on, now or later. The message is one plain sentence."""


class NeedsPassword(BadFile):
    """It is locked; whoever knows the password can unlock it."""
