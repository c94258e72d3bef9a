"""Blocks of two lengths in turn; the shorter-lived ones leave holes, each too small for what comes then."""
# expect: Cause: fragmentation
# expect: Change: .*expandable_segments

import job

job.start(limit_gib=1)
kept, passing = [], []
for step in range(98):
    kept.append(job.tensor(6))  # held
    passing.append(job.tensor(4))
del passing
following = job.tensor(256)  # asked
