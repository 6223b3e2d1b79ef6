"""What the pages call a review: its risk, its reasons, what can be answered and was."""

from __future__ import annotations

from board.web.wording.marks import N_

RISK = {"high": N_("High risk"), "medium": N_("Medium risk"), "low": N_("Low risk")}
REASON = {
    "policy": N_("This type is always reviewed."),
    "sample": N_("Picked at random as a sample."),
    "low_confidence": N_("The AI is not sure enough."),
    "risk": N_("The AI names a risk."),
    "output_rule": N_("The output fits a rule of this type."),
    "partial_result": N_("Only a part of the result came back."),
    "empty_output": N_("The output is empty."),
    "invalid_output": N_("The output does not have the expected shape."),
    "permanent_failure": N_("The work failed, and trying the same again would not help."),
    "unknown_outcome": N_("Something was sent, and nobody can tell whether it happened."),
    "direct": N_("This type goes straight to a person."),
    "input_needed": N_("The workflow asks a person."),
}
# The same in a word or two, for what a list is narrowed to.
REASON_SHORT = {
    "policy": N_("Always reviewed"),
    "sample": N_("Sample"),
    "low_confidence": N_("Low confidence"),
    "risk": N_("The AI names a risk"),
    "output_rule": N_("A rule on the output"),
    "partial_result": N_("Partial result"),
    "empty_output": N_("Empty output"),
    "invalid_output": N_("Output of another shape"),
    "permanent_failure": N_("The work failed"),
    "unknown_outcome": N_("Unknown outcome"),
    "direct": N_("Straight to a person"),
    "input_needed": N_("The workflow asks"),
}
DUE = {"overdue": N_("Overdue"), "today": N_("Due today"), "none": N_("Without a due time")}
# Reasons whose message, written in English by the board or by the outside system, says more than our own sentence.
DETAILED = {"output_rule", "partial_result", "invalid_output", "permanent_failure", "unknown_outcome", "input_needed"}
VERDICT = {
    "approve": N_("Approve"),
    "revise": N_("Revise"),
    "reject": N_("Reject"),
    "happened": N_("It happened"),
    "not_happened": N_("It did not happen: send again"),
    "drop": N_("Drop it"),
    "answer": N_("Answer"),
}
DECIDED = {
    "approve": N_("Approved"),
    "revise": N_("Sent back"),
    "reject": N_("Rejected"),
    "happened": N_("Confirmed as done"),
    "not_happened": N_("Sent again"),
    "drop": N_("Dropped"),
    "answer": N_("Answered"),
}
DECIDED_BY = {
    "approve": N_("{who} approved this."),
    "revise": N_("{who} sent this back for another round."),
    "reject": N_("{who} rejected this."),
    "happened": N_("{who} said that it happened."),
    "not_happened": N_("{who} said that it did not happen, and it is sent again."),
    "drop": N_("{who} dropped this."),
}
REASON_CLASS = {
    "wrong": N_("Wrong"),
    "incomplete": N_("Incomplete"),
    "policy": N_("Against our rules"),
    "duplicate": N_("A duplicate"),
    "other": N_("Something else"),
}
GROUP = {"overdue": N_("Overdue"), "today": N_("Due today"), "rest": N_("Later")}
CAUTION = {
    "reviewer": N_("It speaks to the reviewer"),
    "button": N_("It looks like one of our buttons"),
    "target": N_("It stands neither in the input nor in what follows"),
}
# Why a review is not approved together with others.
APART = {
    "not_open": N_("It is no longer open."),
    "not_offered": N_("It asks something else than an approval."),
    "risk": N_("Its risk is not low."),
    "other_type": N_("It is of another type than the first one."),
    "other_shape": N_("Its input has other fields than the first one."),
    "not_eligible": N_("Others may decide this."),
    "several": N_("It takes more than one approval."),
    "too_many": N_("It is one too many."),
}
REFUSED = {
    "review_changed": N_("It changed meanwhile."),
    "already_decided": N_("It was decided meanwhile."),
    "not_eligible": N_("Others may decide this."),
    "not_together": N_("It cannot be approved together with the others."),
    "claimed": N_("A colleague has taken it."),
    "not_found": N_("It is no longer there."),
    "cannot_undo": N_("It can no longer be undone."),
}
VIEW = {
    "before": N_("Since round {n}"),
    "first": N_("Since round {n}"),
    "input": N_("Against the input"),
}
GIVEN = {"to": N_("To"), "subject": N_("Subject"), "text": N_("Text")}
# Quick texts for "revise"; they only fill the field, which stays open to every other wish.
CHIPS = (N_("Make it shorter."), N_("Make it friendlier."), N_("Check the facts again."), N_("Answer in Chinese."))
