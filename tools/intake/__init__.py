"""Whatever a person brings → parts of known kinds → readings."""
