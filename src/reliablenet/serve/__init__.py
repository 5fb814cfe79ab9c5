"""HTTP: decisions, audit, outcomes, and the page of the monitor. Needs the extra ``serve``."""
