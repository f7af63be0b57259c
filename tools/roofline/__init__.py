"""How fast a model could run on given hardware, what binds it, and what a change would buy."""
