"""Reads the results of load generators: one run or many, with their units and traps."""
