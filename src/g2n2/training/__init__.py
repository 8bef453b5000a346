"""From a GraphSet to a trained model: recipes, the loop, checkpoints, run folders, predictions."""
