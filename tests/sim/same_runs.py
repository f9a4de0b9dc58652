#!/usr/bin/env python3
"""same_runs.py PROGRAM THEME FIRST SEEDS: the same seed is the same run, alone and after others in one process.

A seed that fails is of use only if it fails again. What would break that – an order by address, something that one run
leaves to the next – shows in the digest of the log (FETTLE_SIM_DIGEST). Of the first seeds one came out in two ways when
jobs that were taken up after a death of luxid stood in an order by address.
"""

import os
import re
import subprocess
import sys

EVERY = 3
TOGETHER = 7  # seeds of one process: of so few none has to bring every kind of fault


def digests(program, theme, first, count):
    """{seed: digest} of a process that runs these seeds one after the other."""
    run = subprocess.run([program, theme, str(count), str(first)], env={**os.environ, 'FETTLE_SIM_DIGEST': '1'},
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=600)
    return dict(re.findall(r'^# seed (\d+): digest (.*)$', run.stdout, re.M))


def main():
    program, theme, first_of_all, seeds = *sys.argv[1:3], *map(int, sys.argv[3:])
    company, alone = {}, {}
    for first in range(first_of_all, first_of_all + seeds, TOGETHER):
        company.update(digests(program, theme, first, TOGETHER))
    for seed in range(first_of_all, first_of_all + seeds, EVERY):
        alone.update(digests(program, theme, seed, 1))
    other = sorted(seed for seed, digest in alone.items() if company.get(seed) != digest)
    print('1..1')
    for seed in other:
        print(f'# seed {seed}: alone {alone[seed]}; after others {company.get(seed)}')
    good = len(company) == seeds and len(alone) == len(range(0, seeds, EVERY)) and not other
    print(f'{"ok" if good else "not ok"} 1 /sim/{theme}-same-seed-same-run')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
