"""Every figure beside its floor: what the same work costs with no product round it. See docs/performance.md."""
