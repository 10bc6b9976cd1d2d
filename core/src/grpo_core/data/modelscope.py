"""ModelScope datasets -> rows: ModelScope's own client downloads the files, which are then read like Hugging Face's.

Its loader is not used: it wants an older version of the datasets library.
"""

from __future__ import annotations

from grpo_core.data.hub import read_hub
from grpo_core.data.row import Row
from grpo_core.errors import DataError

__all__ = ["read_modelscope"]


def read_modelscope(name: str, *, subset: str | None, split: str | None, purpose: str) -> list[Row]:
    """Download (or take from the cache) a dataset, `owner/name`, and read one split; see `read_hub`."""
    from modelscope import dataset_snapshot_download

    try:
        folder = dataset_snapshot_download(name)
    except Exception as error:  # whatever the client and its network library raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"ms:{name}: cannot be downloaded: {reason}", hint="Check the name, the network and the login."
        ) from error
    return read_hub(str(folder), subset=subset, split=split, purpose=purpose, title=f"ms:{name}")
