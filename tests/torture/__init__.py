"""The torture run: faults while g2n2 writes, and bad input for all it reads.

`make torture` tries everything and writes docs/reliability.md; `make torture-sample` tries a part.

watch.py      inputs in worker processes, with limits on time and memory
mutations.py  valid content -> damaged content
formats.py    every format with a valid file and what reads it
strings.py    text for every parser
faults.py     kills, torn writes, full disks, read-only folders, several writers, killed workers
commands.py   bad input through the command line
page.py       the counts as docs/reliability.md
"""
