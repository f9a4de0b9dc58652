#!/usr/bin/env python3
"""Debian's clients of Ganeti, unmodified, against a lab: the commands of ganeti-commands.txt with their exit codes and the lines that matter,
nodes emptied by them again and again, and htools with mirrored instances. Run as: test_ganeti.py commands | moves | long | tools."""
import concurrent.futures
import itertools
import json
import os
import re
import shlex
import socket
import sys

import e2e
import ganeti_clients
from e2e import title, wait_until

lab = None
clients = None
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'luxi', 'ganeti-commands.txt')
AT_ONCE = 4
HANGS_S = 300  # a client that is not at its end by then never is
TRIES = 3
LOST = re.compile(r'its replica is lost|the replica of instance "\w+" on node\d is stale')


# --- fettle ganeti-root ---

def refused(message, *words):
    e2e.expect_cli_error(lab, 2, f'fettle: {message}', 'ganeti-root', *words)


@title('/ganeti/root-is-laid-out#LUX-02')
def test_root():
    root = os.path.join(lab.directory, 'laid-out')
    said = lab.cli('ganeti-root', root)
    assert f'export GANETI_ROOTDIR={root} GANETI_HOSTNAME=laid-out\n' in said, said
    beside = ['init', 'destroy', 'upgrade', 'renew-crypto', 'master-failover', 'copyfile', 'command']
    assert [word for word in beside if f'    gnt-cluster {word}' not in said] == [], said
    found = {os.path.join(folder, name)[len(root) + 1:] for folder, _, names in os.walk(root) for name in names}
    links = {name for name in found if os.path.islink(os.path.join(root, name))}
    assert found - links == {'README.fettle'}, found
    assert 'var/run/ganeti/socket/ganeti-query' in links and 'var/lib/ganeti/ssconf_master_node' in links, links
    with open(os.path.join(root, 'var/lib/ganeti/hmac.key'), 'rb') as key, open(os.path.join(lab.root('node1'), 'var/confd.key'), 'rb') as ours:
        assert key.read() == ours.read()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.connect(os.path.join(root, 'var/run/ganeti/socket/ganeti-query'))
    modes = [os.stat(os.path.join(lab.root('node1'), 'run', name)).st_mode for name in ('ganeti-query', 'luxid.sock')]
    assert modes[0] == modes[1] == 0o140600, modes
    # Again: what a client has put in the place of a link gives way.
    os.unlink(os.path.join(root, 'var/lib/ganeti/hmac.key'))
    with open(os.path.join(root, 'var/lib/ganeti/hmac.key'), 'w', encoding='utf-8') as file:
        file.write('another')
    told = lab.json('ganeti-root', root)
    assert told['beside_luxi'] == beside and told['GANETI_ROOTDIR'] == root, told
    assert os.readlink(os.path.join(root, 'var/lib/ganeti/hmac.key')) == os.path.join(lab.root('node1'), 'var/confd.key')


@title('/ganeti/root-is-no-folder-of-others')
def test_root_refused():
    other = os.path.join(lab.directory, 'other')
    os.makedirs(other)
    lab.cli('ganeti-root', other)  # empty: it may be
    os.unlink(os.path.join(other, 'README.fettle'))
    refused(f'{other} is not empty, and was not laid out by `fettle ganeti-root`; name one that is empty, or not there yet', other)
    plain = os.path.join(lab.directory, 'plain')
    with open(plain, 'w', encoding='utf-8'):
        pass
    refused(f'{plain} is no folder', plain)
    refused("/ is the host's own folder; name another, as /var/lib/fettle/ganeti", '/')
    foreign = os.path.join(lab.directory, 'foreign')
    os.makedirs(foreign)
    os.chown(foreign, 65534, 65534)
    refused(f'{foreign} belongs to another user', foreign)
    long = '/tmp/' + 'x' * 80
    refused(f'{long} is too long by 13 characters for the name of a socket below it', long)
    refused('an argument is missing; usage: fettle ganeti-root DIR')
    assert not os.path.exists(long)


# --- the commands ---

def table():
    """(exit code, command, line, whether it disturbs nothing) of each row; see the head of the file."""
    with open(TABLE, encoding='utf-8') as file:
        for line in file.read().splitlines():
            if line and not line.startswith('#'):
                code, command, expected = line.split(' | ', 2)
                yield int(code.lstrip('&')), command, expected, code.startswith('&')


def is_met(expected, output):
    lines = [line.strip() for line in output.splitlines()]
    if expected.startswith('~'):
        return any(re.search(expected[1:].strip(), line) for line in lines)
    return expected == '-' and not lines or expected in lines


def ask(row):
    code, command, expected, _ = row
    words = shlex.split(command)
    found, output = clients.run(*words, seconds=HANGS_S) if words[0].startswith('gnt-') else clients.htool(*words)
    return None if found == code and is_met(expected, output) else f'{command}: exit code {found}, not {code}, or no line: {expected}\n{output[-1500:]}'


@title('/ganeti/commands-of-the-clients#LUX-02,LUX-03')
def test_commands():
    rows, problems = list(table()), []
    assert len(rows) >= 150, len(rows)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for quiet, group in itertools.groupby(rows, lambda row: row[3]):
            problems += [problem for problem in (pool.map(ask, group) if quiet else map(ask, list(group))) if problem]
    assert not problems, '\n'.join(problems)


# --- emptied nodes ---

def guests(count):
    """Every other one is mirrored."""
    names = [f'g{number}' for number in range(count)]
    jobs = []
    for number, name in enumerate(names):
        more = {'disk_template': 'mirror', 'disks': [{'size': 8}], 'os_type': 'tick', 'snode': 'node3'} if number % 2 else {'disk_template': 'diskless'}
        jobs.append(lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': name, 'pnode': 'node2', 'memory': 8, **more}))
    for job in jobs:
        assert lab.wait_job(job, 300)[0] == 'success', job
    return names


def places():
    return {row['name']: row['pnode'] for row in lab.query('instance', ['name', 'pnode'])}


def empty(source, target, *words):
    for _ in range(TRIES):
        code, output = clients.run('gnt-node', *words, source, seconds=HANGS_S)
        assert code is not None, f'gnt-node {words} hangs:\n{output}'
        if code == 0 or not LOST.search(output):
            break
        e2e.verify_clean(lab, 240)  # a busy machine: the replica comes back, and the command is given again
    assert code == 0, f'gnt-node {words}: {code}\n{output}'
    assert set(places().values()) == {target}, (places(), output)


@title('/ganeti/nodes-are-emptied-and-no-client-hangs#LUX-02')
def test_moves(count=5, rounds=2):
    names = guests(count)
    # What may go to any node goes to the only other one that takes any.
    lab.do('OP_NODE_SET_PARAMS', node_name='node1', drained='yes')
    for _ in range(rounds):
        for source, target, words in (('node2', 'node3', ('migrate', '-f')), ('node3', 'node2', ('evacuate', '-f', '-p'))):
            for name in names[1::2]:
                e2e.wait_healthy(lab, name, 240)
            empty(source, target, *words)


@title('/ganeti/twenty-guests-fifty-times-and-no-client-hangs#LUX-02')
def test_moves_long():
    test_moves(20, 50)


# --- htools ---

def mirrors(count):
    for number in range(count):
        lab.do('OP_INSTANCE_CREATE', instance_name=f'm{number}', disk_template='mirror', disks=[{'size': 8}], os_type='tick', memory=8,
               pnode='node1', snode='node2', wait=120)
    for number in range(count):
        e2e.wait_healthy(lab, f'm{number}', 120)


def tool(*words, code=0):
    found, output = clients.htool(*words)
    assert found == code, f'{words}: {found}\n{output}'
    return output


@title('/ganeti/htools-load-mirrors#LUX-03')
def test_htools():
    mirrors(4)
    # What htools keep for a host is more than a lab's node has.
    common = ('--static-kvm-node-memory=0', '-g0')
    output = tool('hbal', '-C', *common)
    assert re.search(r'Loaded 3 nodes, 4 instances', output), output
    assert 'Solution length=' in output, output
    output = tool('hspace', '--static-kvm-node-memory=0', '--standard-alloc=8,4096,1', '--tiered-alloc=8,4096,1', '--machine-readable')
    assert 'HTS_INI_INST_CNT=4' in output and re.search(r'HTS_ALLOC_INSTANCES=[1-9]', output), output
    # Without a face of its own, none of them loads the cluster.
    code, output = clients.tool('hbal', f'-L{lab.root("node1")}/run/luxid.sock')
    assert code != 0 and 'mirror' in output, (code, output)


@title('/ganeti/hbal-moves-by-jobs#LUX-05')
def test_hbal():
    before = places()
    output = tool('hbal', '-X', '--static-kvm-node-memory=0', '-g0', '-l2')
    moved = [name for name, node in places().items() if node != before[name]]
    jobs = lab.query('job', ['summary', 'status'])
    assert moved or any('REPLACE_DISKS' in row['summary'][0] for row in jobs), output
    assert all(row['status'] == 'success' for row in jobs if 'MIGRATE' in row['summary'][0]), jobs
    e2e.verify_clean(lab, 60)


@title('/ganeti/harep-repairs-a-lost-node#LUX-05')
def test_harep():
    """By its own jobs: ours only says what it would do."""
    lab.do('OP_CLUSTER_SET_PARAMS', repair_shadow='yes')
    for row in lab.query('instance', ['name']):
        e2e.wait_healthy(lab, row['name'], 120)
    lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
    lost = 'node2' if 'node2' in places().values() else 'node3'
    its = [name for name, node in places().items() if node == lost]
    lab.lab('power', lost, 'off')
    lab.cli('node', 'modify', lost, '--offline=yes', '--statement', 'switched off by the test')

    def repaired():
        output = tool('harep', '--job-delay=0')
        return lost not in places().values() and output
    output = wait_until('harep has repaired it', repaired, 240, step=1)
    jobs = lab.query('job', ['summary', 'status', 'ops'])
    trails = [row for row in jobs if any('harep' in json.dumps(op.get('reason')) for op in row['ops'])]
    assert its and all(any(name in ' '.join(row['summary']) for row in trails) for name in its), (its, trails, output)


def main():
    global lab, clients  # pylint: disable=global-statement
    tests = {'commands': (test_root, test_root_refused, test_commands), 'moves': (test_moves,), 'long': (test_moves_long,), 'tools': (test_htools, test_hbal, test_harep)}
    folder, why = ganeti_clients.unpacked()
    if folder is None:
        print(f'1..0 # SKIP {why}')
        return
    # A busy machine loses no replica by that, which would rightly be refused to migrate to.
    with e2e.new_lab(options=('--replica-lost-ms', '20000', '--watcher-interval-ms', '500')) as lab, ganeti_clients.Clients(lab, folder) as clients:
        e2e.run(*itertools.chain(*(tests[word] for word in sys.argv[1:])))


if __name__ == '__main__':
    main()
