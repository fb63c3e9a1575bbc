"""The viewer: pages for a browser, rendered here; nothing is imported until a page is requested."""
