"""What a measurement found: figures of each variant, and how they stand to the goals. As a table and as JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Goal:
    """One line of what is to be reached. value: what was measured; bound: at least or at most so much."""

    text: str
    value: float
    bound: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound


@dataclass(slots=True)
class Report:
    """rows: the figures of each variant. remarks: what a reader must know, such as what could not be measured."""

    name: str
    rows: dict[str, Figures] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def table(self) -> str:
        heads = ["", *dict.fromkeys(name for figures in self.rows.values() for name in figures)]
        lines = [heads]
        for variant, figures in self.rows.items():
            lines.append([variant, *(plain(figures.get(name, math.nan)) for name in heads[1:])])
        widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
        drawn = [f"== {self.name}"]
        for line in lines:
            cells = [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
            drawn.append("  ".join(cells).rstrip())
        for goal in self.goals:
            sign = "≥" if goal.at_least else "≤"
            drawn.append(
                f"{'met   ' if goal.met else 'MISSED'}  {goal.text}: {plain(goal.value)} ({sign} {plain(goal.bound)})"
            )
        return "\n".join([*drawn, *(f"note    {remark}" for remark in self.remarks)])

    def json_lines(self) -> Iterable[str]:
        for variant, figures in self.rows.items():
            kept = {name: None if math.isnan(value) else value for name, value in figures.items()}
            yield json.dumps({"bench": self.name, "variant": variant, **kept}, ensure_ascii=False)
        for goal in self.goals:
            judged = {"bench": self.name, "goal": goal.text, "value": goal.value, "bound": goal.bound, "met": goal.met}
            yield json.dumps(judged, ensure_ascii=False)
        for remark in self.remarks:
            yield json.dumps({"bench": self.name, "remark": remark}, ensure_ascii=False)


class Rounds:
    """Variants measured in turn, so that whatever else the machine does falls on all of them alike."""

    def __init__(self, variants: Mapping[str, Callable[[], Figures]], rounds: int) -> None:
        self._found: dict[str, list[Figures]] = {name: [] for name in variants}
        for _ in range(rounds):
            for name, measure in variants.items():
                self._found[name].append(measure())

    def medians(self, variant: str) -> Figures:
        rounds = self._found[variant]
        return {name: median(figures[name] for figures in rounds) for name in rounds[0]}

    def ratio(self, variant: str, other: str, figure: str) -> float:
        """The median, over the rounds, of this variant's figure to the other's in the same round."""
        pairs = zip(self._found[variant], self._found[other], strict=True)
        return median(mine[figure] / its[figure] for mine, its in pairs)

    def into(self, report: Report) -> None:
        report.rows |= {name: self.medians(name) for name in self._found}


def plain(value: float) -> str:
    """A number for people: three digits that matter, thousands apart, and - for what is not known."""
    if math.isnan(value):
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
