"""CPU of the serving host: who runs where, who is pushed aside."""
