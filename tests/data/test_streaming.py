"""Files of graphs in chunks, from any record on."""

from pathlib import Path

import pytest

from g2n2.data.readers import Options
from g2n2.data.reading import GraphStream, open_stream, read_chunk
from small_sets import small_set


@pytest.mark.parametrize("in_memory", [True, False])
def test_chunks_from_a_record_on_are_numbered_as_in_the_file(
    in_memory: bool, tmp_path: Path
) -> None:
    options = Options(target=())
    if in_memory:
        graphs = small_set(graphs=8)
        sizes = graphs.sizes.tolist()
        stream = GraphStream.of_graphs(graphs, "given", options)
    else:
        pytest.importorskip("rdkit", reason="molecules are read with RDKit")
        sizes = [1, 2, 3, 4, 5, 1, 2, 3]
        (tmp_path / "few.smi").write_text("\n".join("C" * size for size in sizes))
        stream = open_stream(tmp_path / "few.smi", options)
    assert stream.total == len(sizes) == 8
    chunks = list(stream.chunks(2, start=3))
    assert [chunk.first for chunk in chunks] == [3, 5, 7]
    assert [n for c in chunks for n in read_chunk(c, options).sizes.tolist()] == sizes[3:]
