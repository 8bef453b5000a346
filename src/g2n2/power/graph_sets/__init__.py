"""Where suites come from: families made here, small graphs grown here, files."""
