#!/usr/bin/env python3
"""Nodes that cannot do their work, or not well: they are named, and come last in every choice (SAF-92, SAF-93)."""
import re

import e2e
from e2e import title, wait_until

lab = None
FULL = r'cannot write its state: \S+/var: No space left on device'
CLOCK = r'has a clock that is (\d\.\d) s ahead of the others\''


def found(pattern, *command):
    """Waits until a line of the command's output matches as a whole."""
    lines = []

    def there():
        _, out, err = lab.run(*command, check=False)
        lines[:] = (out + err).splitlines()
        return any(re.fullmatch(pattern, line) for line in lines)
    try:
        wait_until(f'{command} says {pattern}', there, 30, step=0.3)
    except TimeoutError as error:
        raise AssertionError(f'{command}: {lines}') from error


def create(name, **params):
    lab.do('OP_INSTANCE_CREATE', instance_name=name, disk_template='diskless', memory=8, start=False, **params)
    return lab.instance(name, 'pnode')['pnode']


@title('/health/a-node-that-cannot-write-its-state#SAF-92')
def test_full():
    lab.lab('state-fill', 'node2')
    found(fr'node node2: {FULL}( \(for \d+ s\))?', 'cluster', 'verify')
    found(fr'node node2: {FULL}( \(for \d+ s\))?', 'node', 'verify', 'node2')
    found(fr'node2 {FULL}( \(for \d+ s\))?', 'why', 'node2')
    found(fr'  Health +error: {FULL}( \(for \d+ s\))?', 'node', 'info', 'node2')
    found(r'node2 +regular +state .*', 'node', 'list')
    assert 'node2' not in {create(f'web{i}') for i in range(4)}
    code, _, err = lab.run('instance', 'create', 'named', '--disk-template', 'diskless', '--memory', '8', '--pnode', 'node2',
                           check=False)
    line = re.sub(r' \(job \d+\)$', '', err.strip().splitlines()[-1])
    assert code != 0 and re.fullmatch(fr'fettle: --pnode: node "node2" {FULL}; look at it there: fettle node verify node2', line), err
    lab.lab('state-unfill', 'node2')
    e2e.verify_clean(lab)
    assert create('web5') == 'node2'  # which has none yet


@title('/health/a-clock-that-is-off#SAF-93')
def test_clock():
    """Beside the median of all; a node that is only chosen last is still chosen if somebody names it."""
    lab.lab('restart', 'noded@node3', '+FETTLE_CLOCK_AHEAD_MS=5000')
    found(fr'node node3: {CLOCK}', 'cluster', 'verify')
    found(fr'node node3: {CLOCK}', 'node', 'verify', 'node3')
    assert 'node3' not in {create(f'clock{i}') for i in range(4)}
    assert create('named', pnode='node3') == 'node3'


@title('/health/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        e2e.run(test_full, test_clock, test_logs)
