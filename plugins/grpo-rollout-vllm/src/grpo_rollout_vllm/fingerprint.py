"""A fingerprint of named tensors: the same for the same bytes on any device, in any order, in any process.

Of each tensor two sums over its 8-byte words, plain and weighted by position, modulo 2^64; a changed, moved or missing
word changes them. It finds what got lost or mixed up on the way, and is no defence against somebody who means it: it
must cost little beside the transfer, on a GPU as well.

Place in the flow: trainer's stream → **fingerprint** → spool → server's worker → **fingerprint**, compared.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

__all__ = ["Fingerprint", "tensor_sums"]

_CHUNK_WORDS = 2**22
_MODULUS = 2**64


class Fingerprint:
    """Collects tensors; `text` is what they amount to."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, tensor: Tensor) -> None:
        """Take one tensor in."""
        plain, weighted = tensor_sums(tensor)
        self._lines.append(f"{name} {tensor.dtype} {list(tensor.shape)} {plain:x} {weighted:x}")

    @property
    def tensors(self) -> int:
        """How many have been added."""
        return len(self._lines)

    @property
    def text(self) -> str:
        """16 hexadecimal digits."""
        return hashlib.blake2b("\n".join(sorted(self._lines)).encode(), digest_size=8).hexdigest()


@torch.no_grad()
def tensor_sums(tensor: Tensor) -> tuple[int, int]:
    """The sum of a tensor's 8-byte words, and that of each times its position from 1, modulo 2^64."""
    words_W = _words(tensor)
    plain = weighted = 0
    for start in range(0, len(words_W), _CHUNK_WORDS):
        chunk_W = words_W[start : start + _CHUNK_WORDS]
        places_W = torch.arange(1, len(chunk_W) + 1, dtype=torch.int64, device=chunk_W.device)
        chunk_sum = int(chunk_W.sum())  # torch's integers wrap around, as the modulus wants
        plain += chunk_sum
        weighted += int((chunk_W * places_W).sum()) + start * chunk_sum
    return plain % _MODULUS, weighted % _MODULUS


def _words(tensor: Tensor) -> Tensor:
    """The bytes of a tensor as int64, zeros added at the end where they do not fill a word."""
    bytes_N = tensor.detach().contiguous().flatten().view(torch.uint8)
    missing = -len(bytes_N) % 8
    if missing:
        bytes_N = torch.cat([bytes_N, bytes_N.new_zeros(missing)])
    elif bytes_N.storage_offset() % 8:
        bytes_N = bytes_N.clone()  # a view as int64 must begin at a word
    return bytes_N.view(torch.int64)
