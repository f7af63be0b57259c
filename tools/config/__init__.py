"""Reads how a server was launched, and works out what is really in effect for its version."""
