"""Queue: spool to events to leased jobs. The one long-lived process's own work, without HTTP."""
