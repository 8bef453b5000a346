"""The paper's questions, asked of our code: cells that run, records that are kept."""
