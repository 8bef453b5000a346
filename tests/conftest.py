"""Without a GPU, Triton's kernels run in its interpreter.

Triton reads the variable while kernels are decorated, its own library included, so it has to stand
before anything imports triton: here, before any test module is read. A process that has a GPU runs
the same tests on compiled kernels.
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
