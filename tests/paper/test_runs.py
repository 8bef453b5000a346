"""A cell of one training run: its metrics and detail are those of the run it leaves."""

import json

import numpy as np
import pytest

from g2n2.training.run import Run
from g2n2_paper.runner import Job
from g2n2_paper.runs import training_cell
from small_runs import small_config, small_graphs


def test_a_cell_records_its_run_and_the_error_of_the_training_mean(tmp_path):
    job = Job(tmp_path, device="cpu")
    found = training_cell("q2", "x", small_config(epochs=2, grammar="GNNML1")).run(job)
    run, graphs = Run(job.work / "run", "cpu"), small_graphs()
    scores = run.evaluate("test").scores
    split = json.loads((job.work / "run" / "split.json").read_text())
    mean = graphs.targets[split["train"]].mean(0)
    guess = np.abs(graphs.targets[split["test"]] - mean).mean(0)
    assert len(graphs.columns) == 2
    for index, column in enumerate(graphs.columns):
        error = found.metrics[f"test MAE {column.name} ({column.unit})"]
        assert error == pytest.approx(scores[column.name]["mae"])
        assert found.detail["guess"][column.name] == pytest.approx(guess[index])
    assert found.metrics["parameters"] == sum(weight.numel() for weight in run.model.parameters())
    validation = found.detail["validation"]
    assert found.done == len(validation) == 2
    assert found.metrics["best epoch"] == 1 + validation.index(min(validation))
