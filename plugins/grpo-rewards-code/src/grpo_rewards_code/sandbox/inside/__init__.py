"""What runs in a sandbox, or on the way into one.

Nothing here may import anything but the standard library and modules of this folder (and `executor/values.py`): the
sources are sent to a bare interpreter that cannot see this distribution, see `bootstrap.py`.
"""
