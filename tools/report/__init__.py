"""Report intake: prose, tables and typed figures of a person become facts with verbatim spans. No model."""
