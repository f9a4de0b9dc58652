#!/usr/bin/env python3
"""What the README's first screen shows: the demos run, lose nothing, leave nothing behind."""
import os

import e2e
from e2e import fettlelib, title


def run(ending, says, *words):
    with e2e.lab_folder() as folder:
        done = fettlelib.run_command([os.path.join(e2e.ROOT, 'scripts', 'demo'), '--build', e2e.build(), '--dir', folder, *words], 170)
    if done.returncode != 0:
        raise AssertionError(f'exit code {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}')
    last = done.stdout.strip().splitlines()[-1]
    if not last.endswith(ending):
        raise AssertionError(last)
    for sentence in says:
        if sentence not in done.stdout:
            raise AssertionError(f'the demo does not say "{sentence}":\n{done.stdout[-4000:]}')


@title('/demo/runs-and-loses-nothing#ARP-01')
def test_demo():
    run('0 acknowledged writes lost.', ('noticed:', 'policy:', 'instance_failover(web1), instance_replace_disks(web1)',
                                        'both copies of its disk hold every count'))


@title('/demo/storage-runs-and-leaves-nothing#CLN-23,CLN-26,CLN-28,CLN-47,CLN-57,CLN-61')
def test_storage():
    run('0 bytes left behind.', ('at its next start', 'asked by a person', 'another one, by itself', 'goes on, is refused, and leaves large alone'),
        '--storage')


@title('/demo/api-runs-and-leaves-nothing#CLN-34')
def test_api():
    run('0 bytes left behind.', ('workers/cleanup: 403', 'queued, then sent again', 'goes on, is refused, and leaves big alone'), '--api')


@title('/demo/rest-runs-and-misses-nothing')
def test_rest():
    run(' 0 missed.', ('curl -u operator', 'first step: failover', 'decision.done:', 'fettle.repair.done: instance/web1, signed',
                       'replicas in sync, on record: 4 -> ', 'deliveries'), '--rest')


if __name__ == '__main__':
    e2e.run(test_demo, test_storage, test_api, test_rest)
