#!/usr/bin/env python3
"""What the README's first screen shows: the demo runs, loses nothing, leaves nothing behind."""
import os

import e2e
from e2e import fettlelib, title


@title('/demo/runs-and-loses-nothing#ARP-01')
def test_demo():
    with e2e.lab_folder() as folder:
        done = fettlelib.run_command([os.path.join(e2e.ROOT, 'scripts', 'demo'), '--build', e2e.build(), '--dir', folder], 170)
    if done.returncode != 0:
        raise AssertionError(f'exit code {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}')
    last = done.stdout.strip().splitlines()[-1]
    if not last.endswith('0 acknowledged writes lost.'):
        raise AssertionError(last)
    for words in ('noticed:', 'policy:', 'instance_failover(web1), instance_replace_disks(web1)',
                  'both copies of its disk hold every count'):
        if words not in done.stdout:
            raise AssertionError(f'the demo does not say "{words}":\n{done.stdout[-4000:]}')


if __name__ == '__main__':
    e2e.run(test_demo)
