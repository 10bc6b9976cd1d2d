"""A stream of uniform numbers for every completion: number t of completion i is a function of (seed, i, t) alone.

So a completion does not depend on what is drawn beside it, in which order, or on which machine. Counter-based
(SplitMix64, Steele, Lea and Flood 2014, started where BLAKE2b says): there is no state to keep or to save.

Shapes: B sequences.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["stream_keys", "uniforms"]

_GOLDEN_GAMMA = 0x9E3779B97F4A7C15
_WORD = 0xFFFFFFFFFFFFFFFF


def stream_keys(members: Iterable[tuple[int, int]]) -> NDArray[np.uint64]:
    """[B] The key of each (request seed, member index)."""
    digests = (blake2b(f"{seed}/{index}".encode(), digest_size=8).digest() for seed, index in members)
    return np.array([int.from_bytes(digest, "little") for digest in digests], dtype=np.uint64)


def uniforms(keys_B: NDArray[np.uint64], position: int) -> NDArray[np.float64]:
    """[B] Number `position`, from 0, of each stream: multiples of 2**-53 in [0, 1)."""
    step = np.uint64((position + 1) * _GOLDEN_GAMMA & _WORD)
    z_B = keys_B + step  # wraps around, as meant
    z_B = (z_B ^ (z_B >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z_B = (z_B ^ (z_B >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z_B ^= z_B >> np.uint64(31)
    return (z_B >> np.uint64(11)).astype(np.float64) * 2.0**-53
