"""TensorBoard, Weights & Biases and Trackio as observers that a run names in `run.report_to`."""

__version__ = "0.1.0"
