// A stand-in for a source file of XLA, of which nothing is needed here: see README.md.
