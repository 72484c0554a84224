"""Whether a file is one of text."""

from __future__ import annotations

import numpy as np

_TEXT_SHARE = 0.85


def is_text(head: bytes) -> bool:
    r"""Whether the first bytes of a file are mostly text; NULs, which a crash leaves in a log, say nothing.

    >>> is_text(b"step 5 loss 2.5\n\0\0\0"), is_text(bytes(range(256))), is_text(b"\0\n")
    (True, False, False)
    """
    if not head.strip(b"\0\r\n\t "):
        return False
    values = np.frombuffer(head, np.uint8)
    odd = int(np.count_nonzero((values < 32) & (values != 0) & ((values < 7) | ((values > 13) & (values != 27)))))
    if odd > len(values) * (1 - _TEXT_SHARE) / 5:
        return False
    text = head.decode("utf-8", "replace")
    return text.count("\ufffd") <= len(text) * (1 - _TEXT_SHARE)
