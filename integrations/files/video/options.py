"""What a type may say to each kind of work on films, checked when the type is applied."""

from __future__ import annotations

from integrations.files.options import Choice, Number, Option

OPTIONS: dict[str, tuple[Option, ...]] = {
    "video.transcode": (
        Choice("format", ("mp4", "webm"), default="mp4"),
        Number("size", 64, 4096),
        Number("crf", 10, 50),
        Choice("audio", ("keep", "none"), default="keep"),
    ),
    "video.thumbnail": (
        Number("at", 0, 86_400, default=1),
        Number("size", 16, 4096, default=512),
        Choice("format", ("jpeg", "png", "webp"), default="jpeg"),
        Number("quality", 1, 100),
    ),
}
