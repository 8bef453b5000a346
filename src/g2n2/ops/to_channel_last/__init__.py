"""Between the two ways a matrix memory lies: channels side by side, or one plane for each."""
