"""LiveCodeBench's packed private tests: base64 of zlib of a pickle of one text, read without running the pickle.

A pickle is a program for a small machine that can call anything. Here its instructions are only looked at: a stream
that does more than put one text on the stack is refused.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

from grpo_rewards_code.problem.types import TestsError

__all__ = ["unpack"]

_MAX_BYTES = 512 * 2**20
_TEXTS = ("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
_HARMLESS = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")


def unpack(packed: str) -> str:
    """The text inside. Raises `TestsError` for anything else than one packed text."""
    try:
        data = _inflated(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError, zlib.error) as error:
        raise TestsError(f"its packed tests are not base64 of zlib: {error}") from error
    texts: list[str] = []
    try:
        for operation, argument, _position in pickletools.genops(data):
            if operation.name in _TEXTS and isinstance(argument, str):
                texts.append(argument)
            elif operation.name not in _HARMLESS:
                raise TestsError(f"its packed tests are a pickle that does more than hold a text ({operation.name})")
    except TestsError:
        raise
    except (ValueError, IndexError, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise TestsError(f"its packed tests are not a pickle: {error}") from error
    if len(texts) != 1:
        raise TestsError(f"its packed tests are a pickle of {len(texts)} texts, not of one")
    return texts[0]


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    text = stream.decompress(data, _MAX_BYTES)
    if stream.unconsumed_tail:
        raise TestsError(f"its packed tests are larger than {_MAX_BYTES // 2**20} MiB")
    if not stream.eof:
        raise zlib.error("it is cut off")
    return text
