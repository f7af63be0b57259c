"""Reads server, system and proxy logs of any size in constant memory."""
