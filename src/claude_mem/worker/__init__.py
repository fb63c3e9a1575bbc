"""Work: events to turns to leased jobs. The one long-lived process, without HTTP."""
