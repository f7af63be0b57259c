"""What can be observed or computed: deterministic, read-only readers. One typed input, one typed result."""
