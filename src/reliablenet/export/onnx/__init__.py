"""A model as one ONNX graph, from the columns of a table to decisions."""
