#!/usr/bin/env python3
"""What verify and plan say is true, with real daemons: candidates that stand still or do not run, and a failover without a
node for the next replica. All other situations are in tests/sim/test_matrix.c and tests/unit/core/verify."""
import os
import re
import subprocess

import e2e
from e2e import title, wait_until

lab = None
SILENT = ('node node2: its fettle-wconfd does not answer: it takes no change, and cannot become the master. What its log says, '
          'and whether it stands still, shows there')
NO_COPY = ('node node4: its copy of the configuration has not been heard of, and no change waits for it: as master it would lack '
           'what has changed since. See whether its fettle-wconfd runs, and what its log says')


def lines_of(*command):
    code, out, err = lab.run(*command, check=False)
    return code, (out + err).splitlines()


def find(wanted, *command):
    """Waits until the command names it, with exit code 1."""
    last = []

    def there():
        last[:] = [lines_of(*command)]
        return last[0][0] == 1 and any(re.fullmatch(wanted, line) for line in last[0][1])
    try:
        wait_until(f'{command} says {wanted}', there, 30, step=0.3)
    except TimeoutError as error:
        raise AssertionError(f'{command}: {last}') from error


@title('/verify/a-candidate-that-stands-still#ARP-70')
def test_paused():
    """Nothing changes meanwhile, so no copy lags: it is found by asking the candidate itself, and within bounds."""
    lab.lab('pause', 'wconfd@node2')
    try:
        find(re.escape(SILENT), 'cluster', 'verify')
        find(re.escape(SILENT), 'node', 'verify', 'node2')
        assert lines_of('node', 'verify', 'node3') == (0, ['Node node3 is as it should be.'])
    finally:
        lab.lab('resume', 'wconfd@node2')
    e2e.verify_clean(lab)


@title('/verify/a-candidate-whose-daemons-do-not-run#ARP-70')
def test_stopped():
    """node4 becomes a candidate, and nobody starts what it needs for that. Then it is none again, and does not know the engine."""
    lab.cli('node', 'modify', 'node4', '--master-candidate', 'yes')
    find(r"node node4: fettle-wconfd is down: it has not run since the node's boot", 'cluster', 'verify')
    find(re.escape(NO_COPY), 'node', 'verify', 'node4')
    down = lab.run('service', 'list', 'wconfd', '-o', 'node,state', '--no-headers', check=False)[1]
    assert ['node4', 'down'] in [line.split() for line in down.splitlines()], down
    lab.cli('node', 'modify', 'node4', '--master-candidate', 'no')
    e2e.verify_clean(lab)

    def says_so():
        lab.master = 'node4'  # whose command it is
        try:
            code, out, err = lab.run('cluster', 'engine', 'status', check=False)
        finally:
            lab.master = 'node1'
        return code != 0 and out == '' and ('this node is no master candidate, and does not know where changes become final: '
                                            'ask on one of node1, node2, node3') in err
    wait_until('engine status refuses', says_so, 30)


def told(event):
    """What is on record of things without a record, in the order in which it was told."""
    rows = lab.query('event', ['host', 'state', 'subject_name', 'level'], ['&', ['=', 'subject_kind', 'thing'], ['=', 'event', event]])
    return [tuple(row.values()) for row in rows]


def look_again():
    """A new watcher looks at each node soon, and once more."""
    lab.lab('kill', 'watcher@node1')


@title('/things/told-once-and-once-when-they-are-gone#RCV-26')
def test_things():
    """A process of QEMU, a file and a bridge that are nobody's: they are told, by their node alone, and left alone."""
    lab.cli('cluster', 'modify', '--recovery-interval-period', '1s')
    path = os.path.join(lab.root('node2'), 'var', 'disks', 'notes.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('mine')
    lab.exec('node2', 'ip', 'link', 'add', 'br7', 'type', 'bridge')
    lab.exec('node2', 'ip', 'link', 'add', 'docker7', 'type', 'bridge')
    words = ('qemu-system-x86_64', '-S', '-machine', 'none', '-nodefaults', '-display', 'none', '-name', 'guest=foreign')
    with subprocess.Popen(lab.exec_words('node2', *words), stdin=subprocess.DEVNULL) as process:
        try:
            all_there = {('node2', 'process', 'foreign', 'warning'), ('node2', 'file', 'notes.txt', 'warning'),
                         ('node2', 'bridge', 'br7', 'info')}
            look_again()
            wait_until('all are told', lambda: set(told('finding')) == all_there, 30)
            found = lab.json('recovery', 'findings')
            assert {(row['host'], row['kind'], row['name']) for row in found} == {row[:3] for row in all_there}, found
            assert 'br7' in lab.cli('recovery', 'findings') and 'br7' in lab.cli('event', 'list'), found
            lab.cli('cluster', 'modify', '--recovery-ignore', 'docker*,br?')
            wait_until('the bridge is ignored', lambda: len(lab.json('recovery', 'findings')) == 2, 30)
            assert told('gone') == [] and process.poll() is None and os.path.exists(path), told('gone')
        finally:
            process.kill()
    os.unlink(path)
    look_again()
    wait_until('they are gone', lambda: set(told('gone')) == {('node2', 'process', 'foreign', 'info'), ('node2', 'file', 'notes.txt', 'info')}, 30)
    assert lab.json('recovery', 'findings') == [], told('finding')
    assert len(told('finding')) == 2 and len(told('gone')) == 2, (told('finding'), told('gone'))
    code, _, err = lab.run('cluster', 'modify', '--recovery-ignore', ',', check=False)
    assert code != 0 and '--recovery-ignore: 0 patterns; 1 to 64 are allowed, as docker*,virbr*, or none' in err, err
    for bridge in ('br7', 'docker7'):
        lab.exec('node2', 'ip', 'link', 'delete', bridge)


@title('/plan/a-failover-without-a-node-for-the-next-replica#ARP-70')
def test_plan():
    """What plan says of it, and then the power is cut."""
    lab.cli('repair', 'policy', 'cluster', 'failover')
    lab.do('OP_INSTANCE_CREATE', instance_name='web', disk_template='mirror', memory=8, disks=[{'size': 8}], os_type='tick',
           pnode='node3', snode='node2')
    for node in ('node1', 'node4'):
        lab.cli('node', 'modify', node, '--drained', 'yes')
    plan = lab.json('plan', 'fail', 'node3')
    left = ('no node can be a new secondary node: node1 is drained; node2 is its primary node; node3 is offline; '
            'node4 is drained')
    assert [(move['to'], move['operations'], move['left']) for move in plan['moves']] == [(['node2'], ['failover'], left)], plan
    assert plan['blocked'] == [] and plan['held'] is False, plan
    text = lab.cli('plan', 'fail', 'node3').splitlines()
    assert f'web goes no further for now: {left}' in text, text
    assert 'If node3 failed, 1 instance would be repaired (1 of them not to the end), 0 would stay as they are.' in text, text
    lab.lab('power', 'node3', 'off')
    lab.cli('node', 'modify', 'node3', '--offline', 'yes', '--statement', 'its power is cut')
    wait_until('it runs on node2', lambda: lab.instance('web', 'pnode', 'status') == {'pnode': 'node2', 'status': 'running'}, 60)
    find(r'instance web: has no replica', 'cluster', 'verify')


@title('/verify/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=4, options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '3')) as lab:
        e2e.run(test_paused, test_stopped, test_things, test_plan, test_logs)
