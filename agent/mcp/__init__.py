"""The MCP door: the doctor as tools and resources for other agents. Read-only, confined to roots and listed addresses."""
