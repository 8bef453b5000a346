"""Tables, figures and pages, made from the records and from published numbers."""
