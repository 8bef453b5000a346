"""Sets that measure networks: counting, filtering, expressiveness, ZINC."""
