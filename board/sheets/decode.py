"""Text from bytes whose encoding nobody has told."""

from __future__ import annotations

import codecs

# Names that may be asked for, as Python knows them. The first two need not be asked for: they are found.
ENCODINGS = ("utf-8", "gb18030", "utf-16", "big5", "shift_jis", "euc_kr", "windows-1252", "iso-8859-15")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

_SAMPLE = 100_000  # characters that are looked at


class BadText(Exception):
    """It cannot be read as text; one plain sentence."""


def decode(data: bytes, encoding: str | None = None) -> tuple[str, str]:
    """The text, without a byte-order mark, and the name of the encoding it was read in ("utf-8-sig": with a mark).

    encoding: one of ENCODINGS; without it a mark decides, then UTF-8, then GB18030 (what Excel writes in China), and
    nothing else is guessed: western one-byte encodings fit any bytes, and garbage would pass for text. Raises BadText.
    """
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is not None:
        name = marked if marked and marked.startswith(encoding) else encoding
        try:
            return data.decode(name), name
        except UnicodeDecodeError as error:
            raise BadText(f"It is not written in {encoding}: byte {error.start + 1} does not fit.") from error
    if marked is None and b"\0" in data[:65536]:
        raise BadText("It is no text: there are zero bytes in it.")
    for name in (marked,) if marked else ("utf-8", "gb18030"):
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            continue
        if name != "gb18030" or _is_chinese(text):
            return text, name
    raise BadText(
        "Its encoding cannot be told: it is neither UTF-8 nor GB18030. Say which it is with the option encoding, "
        "such as windows-1252."
    )


def _is_chinese(text: str) -> bool:
    """Whether most of its wide characters are among those that GB 2312 had: both of their bytes are high.

    Western one-byte texts may be valid GB18030 too, but there a letter with an accent stands before an ASCII letter.
    """
    pairs = [it for it in (char.encode("gb18030") for char in text[:_SAMPLE] if char > "\x7f") if len(it) == 2]
    return 2 * sum(it[1] < 0x80 for it in pairs) <= len(pairs)
