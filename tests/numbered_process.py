"""`g2n2 WORDS` in a process that torchrun started, after it has said which one it is.

torchrun --nproc_per_node 2 numbered_process.py FOLDER WORDS
"""

import os
import sys
from pathlib import Path

from g2n2.cli import main

if __name__ == "__main__":
    folder = Path(sys.argv.pop(1))
    (folder / f"{os.environ['RANK']}.pid").write_text(str(os.getpid()))
    main()
