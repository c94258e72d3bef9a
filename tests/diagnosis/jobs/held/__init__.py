"""Jobs that are held back: see recordings/README.md."""
