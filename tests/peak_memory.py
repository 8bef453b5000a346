"""The peak memory of this process, for tests that measure one in a process of its own.

`getrusage` is no help there: a process that was just started reports the peak of the process that
started it, if that was larger.
"""

from pathlib import Path


def peak_bytes() -> int:
    """Bytes this process had in memory at most, since it was started."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
