"""What network tests are made of: inputs, statistics, training."""
