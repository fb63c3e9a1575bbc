"""The long-lived process without its HTTP server: drains the spool and runs leased jobs."""
