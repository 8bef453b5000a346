"""Tables, figures and one page, generated from the records of experiments."""
