"""Files a little broken: a few edits of sound ones, as disks, editors and tired people make them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

__all__ = ["mutated"]

NASTY: tuple[bytes, ...] = (
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b" ", b"\x0b", b"\x1c", b"\xc2\x85"),
    *(b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b",", b":", b": ", b"- ", b"#", b"|", b">", b"&a ", b"*a", b"<<: "),
    *(
        b"!!python/object:os.system ",
        b"---\n",
        b"...\n",
        b"%YAML 1.1\n",
        b"? ",
        b"~",
        b"null",
        b"true",
        b"on",
        b"1e999",
    ),
    *(b"NaN", b"Infinity", b"-0", b"0x1f", b"1_000", b"9" * 400, b"\\ud800", b"\xe2\x80\xa8", b"[" * 2000, b"{}" * 20),
)


@st.composite
def mutated(draw: st.DrawFn, sound: bytes, *, extra: Sequence[bytes] = ()) -> bytes:
    """`sound` after one to three edits; `extra` is put in besides what breaks any format."""
    data = sound
    for _ in range(draw(st.integers(1, 3))):
        edit = draw(st.sampled_from(["flip", "delete", "insert", "repeat", "cut", "swap"]))
        start = draw(st.integers(0, max(len(data) - 1, 0)))
        end = min(len(data), start + draw(st.integers(1, 40)))
        if edit == "flip" and data:
            data = data[:start] + bytes([data[start] ^ (1 << draw(st.integers(0, 7)))]) + data[start + 1 :]
        elif edit == "delete":
            data = data[:start] + data[end:]
        elif edit == "insert":
            piece = draw(st.sampled_from([*NASTY, *extra]) | st.binary(max_size=8))
            data = data[:start] + piece + data[start:]
        elif edit == "repeat":
            data = data[:end] + data[start:end] + data[end:]
        elif edit == "cut":
            data = data[:start]
        else:
            other = draw(st.integers(end, max(len(data), end)))
            data = data[:start] + data[end:other] + data[start:end] + data[other:]
    return data
