"""Computations for the tests of the workbench, in a module that another process can import."""

import os
import time

from g2n2.errors import GrammarError
from g2n2.language.operations import OPERATIONS


def counting(number, report):
    for step in range(number):
        report(step / number, f"step {step}")
    return os.getpid()


def endless(report):
    report(0.5, "for ever")
    while True:
        time.sleep(0.01)


def refusing(report):
    raise GrammarError("no such grammar\nwith more lines")


def broken(report):
    return 1 // 0


def dying(report):
    os._exit(3)


def known_operations(report):
    return set(OPERATIONS)
