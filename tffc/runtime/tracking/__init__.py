"""Programs beside tffc in which people watch runs: TensorBoard, MLflow, Weights & Biases."""
