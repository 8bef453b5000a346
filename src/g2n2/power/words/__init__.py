"""What separation is made of: exact words modulo a prime, closed or mixed, and sentences."""
