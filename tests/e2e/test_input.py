#!/usr/bin/env python3
"""Bad input, each with its exact error: opcodes, flags, frames, certificates, epochs, files; and how tables are shown."""
import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import termios

import bus
import e2e
from bus import END, frame, hello
from e2e import fettlelib, title, wait_until

STRANGER = '99999999-9999-4999-8999-999999999999'
lab = None
folder = None


# --- opcodes that luxid refuses ---

def refused(message, opcode, code='wrong_input'):
    """The submission of one opcode must be refused with this class, message and code."""
    try:
        job = lab.call('SubmitJob', [opcode])
    except fettlelib.LuxiError as error:
        expected = ['OpPrereqError', [f'ops[0].{message}', code]]
        assert error.result == expected, f'expected\n  {expected}\ngot\n  {error.result}'
        return
    raise AssertionError(f'accepted as job {job}, expected the refusal: {message}')


def create(**fields):
    return {'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'x', 'disk_template': 'diskless', **fields}


NAME_RULE = ("must be a name: 1 to 63 of a-z, 0-9, '.' and '-' (no upper case), the first a letter or digit")


@title('/input/opcodes/refused-with-the-path')
def test_opcodes():
    jobs = len(lab.query('job', ['id']))
    refused('OP_ID: unknown opcode "OP_NO_SUCH"', {'OP_ID': 'OP_NO_SUCH'})
    refused('OP_ID: is missing', {})
    refused('OP_ID: must be a text', {'OP_ID': 5})
    refused('opcode: must be an object', 'OP_TEST_DELAY')
    refused('OP_ID: OP_CLUSTER_INIT does not run as a job',
            {'OP_ID': 'OP_CLUSTER_INIT', 'cluster_name': 'a', 'node_name': 'b', 'primary_ip': '10.0.0.1'})
    refused('instance_name: is missing', {'OP_ID': 'OP_INSTANCE_CREATE'})
    refused('disk_template: is missing', {'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'x'})
    refused('memory: must be a number', create(memory='x'))
    refused('memory: must be a whole number', create(memory=1.5))
    refused('memory: must be at least 1 (MiB)', create(memory=0))
    refused('memory: must be at most 16777216 (MiB)', create(memory=16777217))
    refused('vcpus: must be at most 256', create(vcpus=257))
    refused('start: must be true or false', create(start='yes'))
    refused('bogus: is not known', create(bogus=1))
    refused('disk_template: must be one of diskless, mirror, file, sharedfile', create(disk_template='drbd'))
    refused('disks: must be a list of objects', create(disks=5))
    refused('disks: must have at most 16 elements, has 17', create(disks=[{'size': 1}] * 17))
    refused('disks[1].size: must be at least 1 (MiB)', create(disks=[{'size': 8}, {'size': 0}]))
    refused('disks[0].size: is missing', create(disks=[{}]))
    refused('disks[0].x: is not known', create(disks=[{'size': 1, 'x': 1}]))
    refused(f'instance_name: {NAME_RULE}', create(instance_name='A b'))
    refused(f'instance_name: {NAME_RULE}', create(instance_name=''))
    refused(f'instance_name: {NAME_RULE}', create(instance_name='x' * 64))
    refused('tags[1]: must be a text', create(tags=['a', 1]))
    refused('comment: must have at most 512 characters, has 513', create(comment='x' * 513))
    refused('priority: must be at most 19', create(priority=99))
    refused('depends[0]: must be [job id, [states]]', create(depends=[[1]]))
    refused('reason[0]: must be [source, text, nanoseconds]', create(reason=[1]))
    refused(r'comment: must have no control characters, has \x1b', create(comment='a\x1b[2J'))
    refused(r'kernel_args: must have no control characters, has \n', create(kernel_args='quiet\nroot=x'))
    refused(r'tags[1]: must have no control characters, has \x7f', create(tags=['a', 'b\x7f']))
    refused(r'reason[0]: must have no control characters, has \u202e', create(reason=[['me', 'b\u202ea', 1]]))
    refused(r'statement: must have no control characters, has \x85', {'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': 'node1', 'offline': 'yes',
                                                                      'statement': 'it is off\x85'})
    refused('duration: must be at least 0', {'OP_ID': 'OP_TEST_DELAY', 'duration': -1})
    assert len(lab.query('job', ['id'])) == jobs, 'a refused opcode became a job'


# --- opcodes whose job fails ---

def fails(message, code, opcode, **params):
    """The job must end in error with this message and code; nothing may have changed."""
    job = lab.submit({'OP_ID': opcode, **params})
    status, results = lab.wait_job(job)
    found = results[0]
    assert status == 'error' and found == ['OpPrereqError', [message, code]], \
        f'expected\n  {[message, code]}\ngot {status}\n  {found}'


def room(what):
    """What every node says that it has left, as the messages say it."""
    found = {}
    job = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'big', **what})
    text = lab.wait_job(job)[1][0][1][0]
    for node, left in re.findall(r'(node\d) has (\d+) MiB', text):
        found[node] = left
    return text, found


MIRROR = {'disk_template': 'mirror', 'disks': [{'size': 8}], 'memory': 8}
CREATE = 'OP_INSTANCE_CREATE'


@title('/input/objects/unknown-and-taken')
def test_objects():
    for opcode in ('OP_INSTANCE_STARTUP', 'OP_INSTANCE_SHUTDOWN', 'OP_INSTANCE_REBOOT', 'OP_INSTANCE_REMOVE',
                   'OP_INSTANCE_FAILOVER', 'OP_INSTANCE_REPLACE_DISKS'):
        fails('instance "nope" does not exist', 'unknown_entity', opcode, instance_name='nope')
    fails('node "node9" does not exist', 'unknown_entity', 'OP_NODE_REMOVE', node_name='node9')
    fails('node "node9" does not exist', 'unknown_entity', 'OP_NODE_SET_PARAMS', node_name='node9', offline='yes')
    fails('node "node9" does not exist', 'unknown_entity', CREATE, instance_name='y', disk_template='diskless',
          pnode='node9')
    fails('node "node9" does not exist', 'unknown_entity', 'OP_INSTANCE_REPLACE_DISKS', instance_name='web',
          remote_node='node9')
    fails('instance "web" exists already', 'already_exists', CREATE, instance_name='web', disk_template='diskless')
    fails('node "node2" exists already', 'already_exists', 'OP_NODE_ADD', node_name='node2', primary_ip=fettlelib.address(9),
          node_uuid=STRANGER)
    fails('instance "web" has no tag "nope"', 'unknown_entity', 'OP_TAGS_DEL', kind='instance', name='web',
          tags=['nope'])
    fails('tags: "a b" has characters other than letters, digits and _ . + * / : @ -', 'wrong_input', 'OP_TAGS_SET',
          kind='instance', name='web', tags=['a b'])
    fails(f'tags: "{"x" * 32}…" is longer than 128 characters', 'wrong_input', 'OP_TAGS_SET', kind='cluster',
          tags=['x' * 129])


@title('/input/create/image-disks-and-nodes')
def test_create():
    fails('os_type: image "nope" does not exist on node "node2"; put it into var/images there', 'unknown_entity',
          CREATE, instance_name='y', pnode='node2', os_type='nope', **MIRROR)
    fails('os_type: node2: image "../x": a name without slashes that begins with no dot is needed', 'wrong_input',
          CREATE, instance_name='y', pnode='node2', os_type='../x', **MIRROR)
    fails('disks[0].size: image "tick" has 2 MiB, the disk only 1 MiB', 'wrong_input', CREATE, instance_name='y',
          os_type='tick', **{**MIRROR, 'disks': [{'size': 1}]})
    fails('disks: a mirrored instance needs at least one', 'wrong_input', CREATE, instance_name='y',
          disk_template='mirror')
    fails('disks: a diskless instance has none', 'wrong_input', CREATE, instance_name='y', disk_template='diskless',
          disks=[{'size': 1}])
    fails('snode: "node2" is the primary node; the replica needs another', 'wrong_input', CREATE, instance_name='y',
          pnode='node2', snode='node2', **MIRROR)
    assert lab.instance('y', 'name') is None


@title('/input/create/no-room-names-each-node')
def test_room():
    text, left = room({'disk_template': 'diskless', 'memory': 16000000})
    assert sorted(left) == ['node1', 'node2', 'node3'], text
    assert text == 'no node can be the primary node: ' + '; '.join(
        f'{node} has {left[node]} MiB of memory left, 16000000 MiB are needed' for node in sorted(left)), text
    text, left = room({**MIRROR, 'disks': [{'size': 60000000}]})
    assert text == 'no node can be the primary node: ' + '; '.join(
        f'{node} has {left[node]} MiB of disk left, 60000000 MiB are needed' for node in sorted(left)), text
    text, _ = room({**MIRROR, 'disks': [{'size': 60000000}], 'pnode': 'node3', 'snode': 'node2'})
    assert re.fullmatch(r'pnode: node "node3" has \d+ MiB of disk left, 60000000 MiB are needed; make room there, or take another node: fettle node list', text), text
    code, _, err = lab.run('instance', 'create', 'big', '--disk-template', 'diskless', '--memory', '16000000',
                           check=False)
    assert code == 6 and err.startswith('fettle: no node can be the primary node: node1 has '), (code, err)


@title('/input/nodes/not-dead-not-empty-not-the-master')
def test_nodes():
    fails('node "node2" still answers, so it is not dead, and its guests may run; power it off first, or use --force '
          'if you know better', 'unsafe', 'OP_NODE_SET_PARAMS', node_name='node2', offline='yes')
    fails('offline: must be yes or no, not "maybe"', 'wrong_input', 'OP_NODE_SET_PARAMS', node_name='node2',
          offline='maybe')
    fails('nothing to change: set offline, drained, master_candidate or master_capable', 'wrong_input', 'OP_NODE_SET_PARAMS', node_name='node2')
    fails('node "node1" is the master, which carries out this very job; it cannot be offline', 'wrong_state',
          'OP_NODE_SET_PARAMS', node_name='node1', offline='yes')
    fails('node "node1" is the master and cannot be removed', 'wrong_state', 'OP_NODE_REMOVE', node_name='node1')
    fails('node "node2" is the primary node of instance "web"; fail it over or remove it first', 'wrong_state',
          'OP_NODE_REMOVE', node_name='node2')
    fails('node "node3" is the secondary node of instance "web"; replace its disks or remove it first', 'wrong_state',
          'OP_NODE_REMOVE', node_name='node3')
    assert not any(row['offline'] for row in lab.query('node', ['offline']))


@title('/input/failover/stale-replica-is-refused#SAF-16')
def test_stale_failover():
    uuid = e2e.uuid_of(lab, 'web')
    lab.lab('link', 'node3', 'down')
    wait_until('the replica is recorded stale',
               lambda: lab.instance('web', 'replica.state')['replica.state'] == 'stale')
    lab.lab('link', 'node3', 'up')
    wait_until('node3 answers', lambda: lab.query('node', ['mfree'], ['=', 'name', 'node3'])[0]['mfree'] is not None)
    why = lab.instance('web', 'replica.why')['replica.why']
    before = lab.qemu_processes(uuid)
    status, results = lab.wait_job(lab.submit({'OP_ID': 'OP_INSTANCE_FAILOVER', 'instance_name': 'web'}))
    kind, (message, code) = results[0]
    pattern = re.escape('the replica of instance "web" on node3 is stale since ') + r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC' + \
        re.escape(f' ({why}): acknowledged writes would be lost')
    assert (status, kind, code) == ('error', 'OpPrereqError', 'unsafe') and re.fullmatch(pattern, message), results
    assert why, 'the replica is stale without a reason'
    assert lab.instance('web', 'pnode')['pnode'] == 'node2' and lab.qemu_processes(uuid) == before
    lab.do('OP_INSTANCE_REPLACE_DISKS', instance_name='web')
    e2e.wait_healthy(lab, 'web')


# --- the command line ---

def cli_error(code, message, *args, quiet=False):
    found, out, err = lab.run(*args, check=False)
    if quiet:  # of what it was about to do it tells before
        err = err.splitlines(True)[-1]
    assert (found, out, err) == (code, '', f'fettle: {message}\n'), \
        f'{args}: expected {code} and\n  {message}\ngot {found} and\n  {out}{err}'


@title('/input/command-line/wrong-words-and-flags')
def test_command_line():
    see = 'see "fettle instance create --help"'
    size = 'must be a size in whole MiB, such as 512, 512M, 10G or 1T'
    for code, message, *args in (
            (2, f'--memory: {size}, not "abc"', 'instance', 'create', 'x', '--memory', 'abc'),
            (2, '--memory: must be at least 1 (MiB)', 'instance', 'create', 'x', '--memory', '0'),
            (2, '--memory: needs a value', 'instance', 'create', 'x', '--memory'),
            (2, '--memory: is given twice', 'instance', 'create', 'x', '--memory', '1', '--memory=2'),
            (2, '--no-start: takes no value', 'instance', 'create', 'x', '--no-start=1'),
            (2, '--disk-template: must be one of diskless, mirror, file, sharedfile; drbd is mirror here', 'instance', 'create', 'x', '--disk-template', 'drbd'),
            (2, f'--disks.size: {size}, not "abc"; as in --disks size=10G', 'instance', 'create', 'x', '--disks', 'size=abc'),
            (2, '--disks.bogus: is not known; as in --disks size=10G', 'instance', 'create', 'x', '--disks', 'bogus=1'),
            (2, f'--disk.size: {size}, not "1.5M"; as in --disk size=10G', 'instance', 'create', 'x', '--disk', 'size=1.5M'),
            (2, '--offline: must be yes or no, not "maybe"', 'node', 'modify', 'node2', '--offline', 'maybe'),
            (2, f'--memry: unknown flag; did you mean --memory? {see}', 'instance', 'create', 'x', '--memry', '1'),
            (2, f'--bogus: unknown flag; {see}', 'instance', 'create', 'x', '--bogus'),
            (2, f'INSTANCE-NAME: is missing; {see}', 'instance', 'create'),
            (2, f'--disk-template: is missing; {see}', 'instance', 'create', 'x'),
            (2, f'"y": one word too many; {see}', 'instance', 'create', 'x', 'y'),
            (2, 'TAGS: is missing; see "fettle tag add --help"', 'tag', 'add', 'cluster'),
            (2, 'DURATION: must be a number of seconds, or a time such as 90s, 10m, 2h or 3d, not "x"', 'test', 'delay', 'x'),
            (2, 'unknown option --bogus; usage: fettle instance list [--filter FILTER] [--sort FIELD,…] [--limit N] [NAME…]', 'instance', 'list', '--bogus'),
            (2, 'an argument is missing; usage: fettle instance info NAME', 'instance', 'info'),
            (2, '"x" is no job id', 'job', 'list', 'x'),
            (2, 'too many arguments; usage: fettle brake list [--filter FILTER] [--sort FIELD,…] [--limit N]', 'brake', 'list', 'x'),
            (3, 'job 99999 does not exist', 'job', 'list', '99999'),
            (2, 'an argument is missing; usage: fettle why INSTANCE|NODE|JOB|cluster|volume VOLUME|snapshot SNAPSHOT|backup BACKUP|image IMAGE|storage-service HOST', 'why'),
            (2, '-o needs a value', 'instance', 'list', '-o'),
            (2, '--separator needs a value', 'instance', 'list', '--separator'),
            (2, '--units needs a value', 'instance', 'list', '--units'),
            (2, '--units: "k" is none of m, g, t, h', 'instance', 'list', '--units', 'k'),
            (2, '--units: "mm" is none of m, g, t, h', 'instance', 'list', '--units=mm'),
            (2, '--units: "" is none of m, g, t, h', 'instance', 'list', '--units='),
            (2, '"x" is no job id', 'job', 'info', 'x'),
            (2, 'there is no command "bogus"; see fettle --help', 'bogus'),
            (2, 'there is no command "instance bogus"; see fettle instance --help', 'instance', 'bogus'),
            (2, 'there is no command "instnce list"; did you mean "fettle instance list"? see fettle --help', 'instnce',
             'list'),
            (2, 'there is no command "instnce"; did you mean "fettle instance"? see fettle --help', 'instnce'),
            (2, 'there is no command "instance stop"; did you mean "fettle instance shutdown"? see fettle instance --help',
             'instance', 'stop', 'web'),
            (2, 'there is no command "vm delete"; did you mean "fettle instance remove"? see fettle --help', 'vm', 'delete'),
            (2, 'there is no command "network create"; did you mean "fettle network add"? see fettle network --help',
             'network', 'create'),
            (2, 'plan needs a word more: fail, drain; see fettle plan --help', 'plan'),
            (2, 'there is no command "instance bogus"; see fettle instance --help', 'help', 'instance', 'bogus'),
            (2, '"web": must be cluster, nodegroup, node or instance; usage: fettle tag list '
                'cluster|nodegroup|node|instance [NAME]', 'tag', 'list', 'web'),
            (2, '-o: instance has no field "statsu"; did you mean status? see fettle query-fields instance',
             'instance', 'list', '-o', 'name,statsu'),
            (2, '-o: waiter has no field "xyzzy"; see fettle query-fields waiter', 'lock', 'waiters', '-o', 'xyzzy'),
            (2, 'there is no command "instance lsit"; did you mean "fettle instance list"? see fettle instance --help',
             'instance', 'lsit'),
            (2, 'there is no noun "bogus"; see fettle help', 'help', 'bogus'),
            (3, 'instance "nope" does not exist', 'instance', 'info', 'nope'),
            (3, 'instance "nope" does not exist', 'instance', 'list', 'web', 'nope'),
            (3, 'node "nope" does not exist', 'node', 'list', 'nope'),
            (3, 'there is no instance, node or cluster "nowhere"', 'why', 'nowhere'),
            (3, 'instance "nope" does not exist', 'tag', 'list', 'instance', 'nope'),
            (3, 'job 99999 does not exist', 'job', 'info', '99999'),
            (3, 'job 99999 does not exist', 'job', 'cancel', '99999'),
            (3, 'job 99999 does not exist', 'job', 'change-priority', '99999', 'low'),
            (3, 'job 99999 does not exist', 'job', 'wait', '99999'),
            (3, 'job 99999 does not exist', 'job', 'watch', '99999'),
            (3, 'instance "nope" does not exist', 'instance', 'console', 'nope'),
            (3, 'instance "nope" does not exist', 'instance', 'console', '--vnc', 'nope'),
            (2, '--vnc: takes no value', 'instance', 'console', '--vnc=yes', 'nope'),
            (5, 'instance "web" has no display; give it one while it is stopped: fettle instance modify '
                '--vnc-bind-address 127.0.0.1 web', 'instance', 'console', '--vnc', 'web')):
        cli_error(code, message, *args)


@title('/input/command-line/exit-codes-of-failed-jobs')
def test_exit_codes():
    for code, message, *args in (
            (3, 'instance "nope" does not exist', 'instance', 'startup', 'nope'),
            (4, 'instance "web" exists already', 'instance', 'create', 'web', '--disk-template', 'diskless'),
            (5, 'node "node1" is the master and cannot be removed', 'node', 'remove', 'node1'),
            (11, 'node "node2" still answers, so it is not dead, and its guests may run; power it off first, or use '
                 '--force if you know better', 'node', 'modify', 'node2', '--offline', 'yes')):
        found, out, err = lab.run(*args, check=False)
        line = re.sub(r' \(job \d+\)$', '', err.strip().splitlines()[-1])
        assert (found, line) == (code, f'fettle: {message}'), (args, found, out, err)
    root = lab.root('node2')
    found = subprocess.run([lab.fettle, '--root', root, 'node', 'list'], capture_output=True, text=True, check=False)
    assert found.returncode not in (0, 70) and root in found.stderr, found


@title('/input/lab/occupied-folder-and-unknown-names')
def test_lab():
    own = lab.directory
    for code, message, *args in (
            (4, f'there is a lab in {own} already; `fettle lab down --dir {own}` removes it', 'up', '--dir', own),
            (2, 'the folder /usr/share is not empty and no lab: a lab needs a folder of its own', 'up', '--dir',
             '/usr/share'),
            (2, 'a lab has at most 32 nodes, not 99', 'up', '--nodes', '99', '--dir', '/var/tmp/fettle-none'),
            (2, '--nodes: "x" is no number', 'up', '--nodes', 'x'),
            (2, '--nodes: must be at least 1', 'up', '--nodes', '0', '--dir', '/var/tmp/fettle-none'),
            (3, 'there is no lab in /var/tmp/fettle-none; `fettle lab up --dir /var/tmp/fettle-none` makes one',
             'status', '--dir', '/var/tmp/fettle-none'),
            (3, 'no node node9 in this lab; it has node1 to node3', 'power', 'node9', 'on', '--dir', own),
            (2, '"sideways": must be on or off; usage: fettle lab power NODE|ceph off|on [--dir DIR]', 'power', 'node2',
             'sideways', '--dir', own),
            (3, 'no node node9 in this lab; it has node1 to node3', 'state-readonly', 'node9', '--dir', own),
            (2, 'an argument is missing; usage: fettle lab state-readonly NODE [--dir DIR]', 'state-readonly', '--dir', own),
            (3, 'no daemon nope@node1 in this lab; it is written like noded@node2', 'kill', 'nope@node1', '--dir', own)):
        cli_error(code, message, 'lab', *args)
    assert lab.cli('lab', 'down', '--dir', '/var/tmp/fettle-none') == \
        "There is no folder /var/tmp/fettle-none, so nothing was removed; another lab's is named with --dir.\n"
    assert not os.path.exists('/var/tmp/fettle-none')
    code, _, err = lab.run('cluster', 'init', 'again', '--node-name', 'node1', '--primary-ip', fettlelib.address(1), check=False)
    assert code == 5 and err == f'fettle: fettle-wconfd: {lab.root("node1")}/var/store.db exists: this node has a ' \
        'cluster; it is not overwritten\n', (code, err)


# --- tables and help ---

LISTS = {
    'instance': ['name', 'status', 'pnode', 'snodes', 'replica.state', 'disk_template', 'be/memory', 'replica.at', 'be/vcpus', 'nic.ips'],
    'node': ['name', 'pip', 'role', 'pinst_cnt', 'sinst_cnt', 'mtotal', 'mfree', 'dtotal', 'dfree', 'health'],
    'job': ['id', 'status', 'summary', 'received_ts', 'end_ts'],
    'repair': ['instance', 'type', 'state', 'started', 'ended', 'jobs', 'id'],
    'lock': ['name', 'mode', 'owner', 'pending'],
    'decision': ['at', 'subject_name', 'state', 'verdict', 'summary'],
}


@title('/input/tables/fields-headers-separator-json')
def test_tables():
    for noun, fields in LISTS.items():
        rows = lab.json(noun, 'list')
        assert all(list(row) == fields for row in rows), (noun, rows)
        heads = lab.cli(noun, 'list', '--separator', '|').splitlines()[0].split('|')
        assert len(heads) == len(fields) and all(head[0].isupper() for head in heads), (noun, heads)
        lines = lab.cli(noun, 'list', '--no-headers', '--separator', '|').splitlines()
        assert all(len(line.split('|')) == len(fields) for line in lines), (noun, lines)
        chosen = lab.json(noun, 'list', '-o', fields[1])
        assert len(chosen) >= len(rows) and all(list(row) == [fields[1]] for row in chosen), (noun, chosen)
        more = lab.json(noun, 'list', '-o', '+' + fields[0])
        assert all(list(row) == fields for row in more), (noun, more)
    assert lab.cli('node', 'list', '-o', 'name').split() == ['Name', 'node1', 'node2', 'node3']
    assert lab.cli('node', 'list', '-o', 'name,role', '--no-headers', '--separator', '|', 'node2') == 'node2|C\n' or \
        lab.cli('node', 'list', '-o', 'name,role', '--no-headers', '--separator', '|', 'node2') == 'node2|R\n'
    uuid = e2e.uuid_of(lab, 'web')
    assert lab.cli('instance', 'list', '-o', '+uuid', '--no-headers').split()[-1] == uuid
    assert lab.json('instance', 'info', 'web', '-o', 'uuid') == [{'uuid': uuid}]
    sizes = ('instance', 'list', '-o', 'be/memory', '--no-headers', 'web')
    mib = lab.json('instance', 'list', '-o', 'be/memory', 'web')[0]['be/memory']
    assert lab.cli(*sizes) == f'{mib}M\n' and lab.cli(*sizes, '--separator', '|') == f'{mib}\n'
    assert lab.cli(*sizes, '--units', 'g') == f'{mib / 1024:.1f}\n'
    aligned = lab.cli('node', 'list', '-o', 'name,pip').splitlines()
    assert len({re.search(r' \S', line).start() for line in aligned}) == 1, aligned


@title('/input/folder-of-another-node-or-of-the-lab')
def test_other_root():
    hints = {lab.root('node2'): 'This is node2, and the master it last heard of is node1: run this there',
             lab.directory: f"This is the folder of a lab: choose a node's, --root {lab.directory}/node1"}
    for root, hint in hints.items():
        done = subprocess.run([lab.fettle, '--root', root, 'instance', 'list'], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (
            19, f'fettle: luxid does not answer at {root}/run/luxid.sock (No such file or directory). {hint}.\n'), done


@title('/input/help/every-command')
def test_help():
    text = lab.cli('help')
    assert lab.cli('--help') == text and len(text.splitlines()) <= 30, text
    nouns = {noun['noun']: noun for noun in lab.json('help')['nouns']}
    assert all(re.search(rf'^(  |Also: .*|      .*)\b{noun}\b', text, re.M) for noun in nouns), text
    for noun, verbs in re.findall(r'^  ([a-z]+) {3,}((?:[a-z].*|\n {13})+)$', text.split('\nAlso:')[0], re.M):
        known = {one['verb'] for one in nouns[noun]['commands']}
        assert noun == 'why' or set(verbs.replace('\n', ' ').split(', ')[:2]) <= known, (noun, verbs, known)
    for noun in nouns:
        out = lab.cli(noun, '--help')
        assert out == lab.cli('help', noun), noun
        for one in nouns[noun]['commands']:
            verb = one['verb']
            assert verb is None or re.search(rf'^  {verb}( |$)', out, re.M), (noun, verb, out)
            own = lab.cli(noun, *(verb or '').split(), '--help')
            assert own.startswith(f'Usage: fettle {noun}' + (f' {verb}' if verb else '')), own
            wide = [line for line in (out + own).splitlines() if len(line) > 80]
            assert not wide, (noun, verb, wide)
    assert lab.run('--help')[1] == text and lab.run(check=False)[:2] == (2, text)
    assert '\n  create ' in lab.cli('instance', '--help') and '  add ' not in lab.cli('instance', '--help')


@title('/input/help/and-tables-at-every-width')
def test_widths():
    """On terminals of 60, 80 and 120 columns no line of help or of a list is wider, and none is broken within a word; into a pipe a row is a line."""
    for columns in (60, 80, 120):
        for words in (('--help',), ('instance', '--help'), ('instance', 'create', '--help'), ('job', 'list', '--help'), ('instance', 'list', '--help'),
                      ('cluster', 'modify', '--help'), ('instance', 'list'), ('node', 'list'), ('job', 'list'), ('network', 'list'), ('why', 'web')):
            code, out = on_terminal(columns, *words)
            wide = [line for line in out.splitlines() if len(line) > columns and ' ' in line.strip()]
            assert code == 0 and (not wide or words[0] == 'why'), (columns, words, wide)
    assert len(lab.cli('instance', 'list').splitlines()) == 1 + len(lab.json('instance', 'list'))
    assert lab.cli('instance', 'list').splitlines()[0].split() == ['Name', 'State', 'Node', 'Replica', 'Memory', 'CPUs', 'Address']
    assert all(len(line) <= 80 for line in lab.cli('instance', 'list').splitlines() + lab.cli('node', 'list').splitlines())


def on_terminal(columns, *words):
    """The exit code of a command whose standard output is a terminal of so many columns, and what it has printed there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    with subprocess.Popen([lab.fettle, '--root', lab.root('node1'), *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE,
                          env=lab.environment({'TERM': 'dumb'})) as process:
        os.close(theirs)
        out = b''
        with contextlib.suppress(OSError):  # the end of a terminal
            while piece := os.read(ours, 65536):
                out += piece
        os.close(ours)
        process.wait()
    return process.returncode, out.decode().replace('\r\n', '\n')


@title('/input/lists/sort-limit-and-patterns')
def test_order():
    nodes = ['node1', 'node2', 'node3']
    name = ('-o', 'name', '--no-headers')
    assert lab.cli('node', 'list', *name, '--sort', '-name').split() == nodes[::-1]
    assert lab.cli('node', 'list', *name, '--sort', 'name', '--limit', '2') == 'node1\nnode2\n1 more is not shown (--limit).\n'
    assert [row['name'] for row in lab.json('node', 'list', '--sort', 'name', '--limit', '2')] == nodes[:2]
    assert lab.cli('node', 'list', *name, 'node[13]', '--sort', 'name').split() == ['node1', 'node3']
    ids = [row['id'] for row in lab.json('job', 'list', '--sort', '-id', '--limit', '3')]
    assert len(ids) == 3 and ids == sorted(ids, reverse=True), ids
    assert lab.json('instance', 'list', 'web', '-o', 'state,node,memory') == \
        lab.json('instance', 'list', 'web', '-o', 'status,pnode,be/memory')
    for code, message, *args in (
            (2, '--sort: instance has no field "nix"; see fettle query-fields instance', 'instance', 'list', '--sort', 'nix'),
            (2, '--sort: instance has no field "statsu"; did you mean status? see fettle query-fields instance', 'instance', 'list', '--sort', 'name,statsu'),
            (2, '--sort: job has no field "nix"; see fettle query-fields job', 'job', 'list', '--sort', 'nix'),
            (2, '--sort needs a value', 'instance', 'list', '--sort'),
            (2, '--limit: must be a number from 1 on, not "0"', 'instance', 'list', '--limit', '0'),
            (3, 'no instance matches "nix*"; see fettle instance list', 'instance', 'list', 'nix*'),
            (3, 'no instance matches "nix*"; see fettle instance list', 'instance', 'startup', 'web', 'nix*'),
            (3, 'no node matches "nix?"; see fettle node list', 'node', 'modify', 'nix?', '--drained', 'yes'),
            (3, 'instance "wbe" does not exist; did you mean "web"?', 'instance', 'info', 'wbe'),
            (3, 'node "noed2" does not exist; did you mean "node2"?', 'node', 'list', 'noed2'),
            (2, '--offline is a word about one node: say it of each by itself', 'node', 'modify', 'node2', 'node3', '--offline', 'yes')):
        cli_error(code, message, *args)


@title('/input/verbs/several-names')
def test_several():
    names = ['many1', 'many2', 'many10']
    for name in names:
        lab.cli('instance', 'create', name, '--disk-template', 'diskless', '--memory', '8', '--no-start')
    done = lab.json('instance', 'startup', 'many[12]', 'many10', '--dry-run')
    assert done['message'] == 'startup of many1, many2, many10: all 3 jobs have succeeded.', done
    assert [one['status'] for one in done['jobs']] == ['success'] * 3 and all(one['code'] == '' for one in done['jobs']), done
    code, out, err = lab.run('instance', 'modify', 'many*', '--memory', '16M')
    assert code == 0 and 'instance modify: many1, many2, many10\n' in err and out.endswith('all 3 jobs have succeeded.\n'), (out, err)
    assert {row['be/memory'] for row in lab.json('instance', 'list', 'many*')} == {16}
    code, out, err = lab.run('instance', 'modify', 'many1', 'manyx', '--memory', '8', check=False)
    assert code == 3 and 'manyx' in out and err.endswith('fettle: 1 of 2 jobs did not succeed; see what each did with: fettle job info ID\n'), (code, out, err)
    cli_error(2, 'Each of many1, many2, many10 and all its disks will be removed, for good. Nobody can be asked here: say --yes',
              'instance', 'remove', 'many*', quiet=True)
    assert len(lab.json('instance', 'list', 'many*')) == 3
    lab.cli('instance', 'remove', 'many*', '--yes')
    cli_error(3, 'no instance matches "many*"; see fettle instance list', 'instance', 'remove', 'many*', '--yes')


@title('/input/help/documents-name-commands-that-exist')
def test_documents():
    nouns = {noun['noun']: {one['verb'] for one in noun['commands']} for noun in lab.json('help')['nouns']}
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    guide = os.path.join(top, 'docs', 'guide')
    named = 0
    for path in [os.path.join(top, 'README.md')] + [os.path.join(guide, name) for name in os.listdir(guide)]:
        with open(path, encoding='utf-8') as file:
            found = re.findall(r'\bfettle ([a-z][a-z-]*) ([a-z][a-z-]*)(?: ([a-z-]+))?', file.read())
        for noun, verb, more in found:
            verbs = nouns.get(noun, {None})
            assert verbs & {None, verb, f'{verb} {more}'}, f'{path}: there is no command fettle {noun} {verb}'
            named += noun in nouns
    assert named > 100, named


# --- frames ---

def pid_of(daemon):
    return bus.pid_of(lab, daemon)


def config_of(node):
    return bus.config_of(lab, node)


def talk(connection, data, end=False):
    """Sends bytes and reads until the other side closes; the documents that came. It must close."""
    connection.settimeout(60)
    got = b''
    try:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
    except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
        pass  # it closed before it had read all of it; what it said is still there
    try:
        while chunk := connection.recv(1 << 16):
            got += chunk
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return [json.loads(part) for part in got.split(END) if part]


def tell(name, data, end=False, node='node1'):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.join(lab.root(node), 'run', name + '.sock'))
        return talk(connection, data, end)


def refusal(code, message):
    return [{'welcome': {'error': {'code': code, 'message': message}}}]


BROKEN = "broken JSON at byte 7 (line 1): '[' or '{' expected near 'garbage'"
NO_HELLO = 'frame: must be a hello with versions [min, max] and from'
NO_VERSION = 'no common version: here 1 to 1, peer 7 to 9'


def bad_hellos(uuid):
    """(bytes, what is answered before the end) for the first frame of the internal protocol."""
    return (
        (b'garbage' + END, refusal('protocol_error', BROKEN)),
        (b'[1]' + END, refusal('protocol_error', NO_HELLO)),
        (b'{}' + END, refusal('protocol_error', NO_HELLO)),
        (hello(uuid, versions=(7, 9)), refusal('protocol_error', NO_VERSION)),
        (b'{"hello":{"versions":[1,1],"from":"x"}}' + END,
         refusal('protocol_error', 'frame: from: "x" is no NODE/role[/job]')),
    )


def expect_answer(found, expected, data):
    assert found == expected, f'{data[:80]}: expected\n  {expected}\ngot\n  {found}'


def said(node, daemon, text):
    with open(os.path.join(lab.root(node), 'log', daemon + '.log'), encoding='utf-8', errors='replace') as file:
        return text in file.read()


@title('/input/frames/local-sockets-close-and-live#WCF-11')
def test_local_frames():
    own, other = config_of('node1')['node_uuid'], config_of('node2')['node_uuid']
    for name in ('wconfd', 'noded'):
        pid = pid_of(name)
        for data, expected in bad_hellos(own):
            expect_answer(tell(name, data), expected, data)
        expect_answer(tell(name, hello(other)), refusal('permission_denied',
                      f'the peer says it is of node {other}, this host is {own}'), hello(other))
        welcome = {'welcome': {'from': f'{own}/{name}', 'version': 1}}
        expect_answer(tell(name, hello(own) + b'garbage' + END),
                      [welcome, {'v': 1, 'id': 0, 'error': {'code': 'protocol_error', 'message': BROKEN}}], b'garbage')
        wrong = {'v': 7, 'id': 3, 'history': 1, 'epoch': 1, 'from': f'{own}/job/5', 'method': 'x', 'args': {}}
        expect_answer(tell(name, hello(own) + frame(wrong)),
                      [welcome, {'v': 1, 'id': 3, 'error': {'code': 'protocol_error',
                                                            'message': 'frame: v: is 7, settled was 1'}}], b'v')
        expect_answer(tell(name, b'{"hel', end=True), [], b'{"hel')
        tell(name, b'"' + b'x' * 5000)
        wait_until(f'{name} says why it closed', lambda n=name: said('node1', n, 'a frame is larger than 4096 bytes'), 30)
        assert pid_of(name) == pid, f'{name} was restarted'


@title('/input/frames/luxi-closes-and-lives')
def test_luxi_frames():
    def unparsed(text):
        return [{'success': False, 'result': 'Failed to parse request: ' + text}]
    pid = pid_of('luxid')
    for data, expected in (
            (b'garbage' + END, unparsed(BROKEN)),
            (b'[1]' + END, unparsed('LUXI request: must be an object')),
            (b'{}' + END, unparsed('LUXI request: method: must be a text')),
            (frame({'method': 'SubmitJob', 'args': {}}), unparsed('LUXI request: args: must be a list')),
            (frame({'method': 'Nope', 'args': []}),
             unparsed('Unable to parse LUXI request method: Invalid string value for type LuxiReq: "Nope"')),
            (b'{"met', [])):
        expect_answer(tell('luxid', data, end=not data.endswith(END)), expected, data)
    tell('luxid', b'"' + b'x' * (9 << 20))
    wait_until('luxid says why it closed', lambda: said('node1', 'luxid', 'a frame is larger than 8388608 bytes'), 30)
    for method, args, message in (
            ('SubmitJob', [], 'SubmitJob: ops: is missing'),
            ('SubmitJob', [[], 1], 'SubmitJob: takes at most 1 arguments, got 2'),
            ('QueryJobs', [['x'], ['status']], 'QueryJobs: ids[0]: must be a job id'),
            ('QueryJobs', [None, ['nope']], 'Unknown output fields selected: nope'),
            ('Query', ['nope', ['name'], None], 'Query: what: unknown resource "nope"; known are instance, node, group, '
                                                'job, repair, policy, brake, advice, network, reservation, invitation, decision, event, fault, stuck, task, '
                                                'filter, lock, waiter, export, service, backend, volume_type, volume, snapshot, backup, image, worker, storage_service'),
            ('Query', ['node', ['name'], ['=', 'nope', 'x']], 'Query: filter[1]: unknown field "nope"')):
        try:
            raise AssertionError(f'{method} {args} gave {lab.call(method, *args)}')
        except fettlelib.LuxiError as error:
            assert error.result == ['OpPrereqError', [message, 'wrong_input']], error.result
    assert pid_of('luxid') == pid, 'luxid was restarted'


# --- requests of another epoch, role or form ---

def ask(node, request, role='job/5', name='noded'):
    """One request on a local socket; its answer without version and id."""
    uuid = config_of(node)['node_uuid']
    document = {'v': 1, 'id': 3, 'history': 1, 'from': f'{uuid}/{role}', **request}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(os.path.join(lab.root(node), 'run', name + '.sock'))
        connection.sendall(hello(uuid, role) + frame(document))
        got = b''
        while got.count(END) < 2:
            chunk = connection.recv(1 << 16)
            assert chunk, 'the connection was closed'
            got += chunk
    answer = json.loads(got.split(END)[1])
    assert answer.pop('v') == 1 and answer.pop('id') == 3, answer
    return answer


def expect_refused(code, message, *args, **more):
    found = ask(*args, **more)
    assert found == {'error': {'code': code, 'message': message}}, found


@title('/input/epoch/lower-is-refused#SAF-05')
def test_epoch():
    epoch = lab.call('QueryClusterInfo')['epoch']
    second = config_of('node2')['node_uuid']
    image = {'method': 'image_info', 'args': {'os_type': 'tick'}}
    stop = {'method': 'guest_stop', 'args': {'instance': e2e.uuid_of(lab, 'web'), 'generation': 1}}
    old = f'the request is of history 1 epoch {epoch - 1}, this node has seen history 1 epoch {epoch}'
    expect_refused('stale_epoch', old, 'node1', {**image, 'epoch': epoch - 1})
    expect_refused('stale_epoch', old, 'node2', {**image, 'epoch': epoch - 1})
    expect_refused('stale_epoch', old, 'node1', {**image, 'epoch': epoch - 1, 'to': f'{second}/noded'})
    expect_refused('stale_epoch', old, 'node1', {**stop, 'epoch': epoch - 1, 'to': f'{second}/noded'})
    expect_refused('stale_epoch', f'the request is of history 0 epoch {epoch}, this node has seen history 1 epoch {epoch}',
                   'node1', {**image, 'epoch': epoch, 'history': 0})
    expect_refused('resource_not_available', f'history 1 epoch {epoch + 1} was not announced to this node yet; try again',
                   'node1', {**image, 'epoch': epoch + 1})
    assert 'result' in ask('node1', {**image, 'epoch': epoch})
    expect_refused('permission_denied', 'noded/guest_stop: role "watcher" may not call it', 'node1',
                   {**stop, 'epoch': epoch}, role='watcher')
    expect_refused('protocol_error', 'noded has no method "nope"', 'node1', {**image, 'epoch': epoch, 'method': 'nope'})
    expect_refused('wrong_input', 'noded/image_info: os_type: must be a text', 'node1',
                   {**image, 'epoch': epoch, 'args': {'os_type': 5}})
    expect_refused('wrong_input', 'wconfd/commit: owner: must be an object', 'node1',
                   {'method': 'commit', 'args': {'owner': 5}, 'epoch': epoch}, name='wconfd')
    assert lab.instance('web', 'status')['status'] == 'running'


# --- the bus between nodes ---

def tell_from(data, certificate, node='node2'):
    """Speaks to noded of node1 from another node with a certificate (path of .crt, of .key), or none."""
    target = config_of('node1')
    with bus.network_socket(lab, node) as plain:
        plain.settimeout(60)
        plain.connect((target['address'], target['port']))
        try:
            with bus.tls(certificate).wrap_socket(plain) as connection:
                return talk(connection, data)
        except (ssl.SSLError, ConnectionResetError):
            return []


def openssl(*args):
    subprocess.run(['openssl', *args], check=True, capture_output=True)


def certificate_of(name, subject, authority):
    """A new certificate with this subject, signed by the authority (path of .crt, of .key)."""
    key, request, made = (os.path.join(folder, f'{name}.{end}') for end in ('key', 'req', 'crt'))
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', key)
    openssl('req', '-new', '-key', key, '-subj', subject, '-out', request)
    openssl('x509', '-req', '-in', request, '-CA', authority[0], '-CAkey', authority[1], '-set_serial', '77', '-days',
            '2', '-out', made)
    return made, key


def other_authority(name, subject):
    made, key = os.path.join(folder, f'{name}-ca.crt'), os.path.join(folder, f'{name}-ca.key')
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', made,
            '-subj', subject, '-days', '2')
    return made, key


def etc(node, name):
    return os.path.join(lab.root(node), 'etc', name)


@title('/input/bus/strangers-are-refused')
def test_certificates():
    cluster, second = config_of('node1')['cluster_uuid'], config_of('node2')['node_uuid']
    authority = (etc('node1', 'ca.crt'), etc('node1', 'ca.key'))
    foreign, namesake = other_authority('foreign', '/CN=foreign'), other_authority('namesake', f'/O={cluster}/CN=ca')
    pid = pid_of('noded')
    # Of who shows no certificate of the authority's one line an address and minute is written.
    for node, certificate, reason in (
            ('node2', certificate_of('foreign', f'/O={cluster}/CN={second}', foreign),
             f'its certificate (O={cluster},CN={second}): it is signed by another CA'),
            ('node3', certificate_of('false', f'/O={cluster}/CN={second}', namesake),
             f'its certificate (O={cluster},CN={second}): it cannot be verified'),
            ('node2', certificate_of('cluster', f'/O={STRANGER}/CN={second}', authority),
             f'its certificate is of the cluster {STRANGER}, this node is of {cluster}'),
            ('node2', certificate_of('plain', '/CN=x', authority),
             'the certificate\'s subject is "CN=x"; it must be O=<cluster uuid>, CN=<node uuid>')):
        expect_answer(tell_from(hello(second, 'noded'), certificate, node), [], reason)
        wait_until(f'noded says: {reason}', lambda text=f' refused: {reason}\n': said('node1', 'noded', text), 30)
    expect_answer(tell_from(hello(second, 'noded'), None),
                  refusal('permission_denied', f'{second}/noded has shown no certificate, without which a host can '
                          'only join'), b'no certificate')
    unknown = certificate_of('unknown', f'/O={cluster}/CN={STRANGER}', authority)
    expect_answer(tell_from(hello(STRANGER, 'noded'), unknown),
                  refusal('permission_denied', f'node {STRANGER} is no member of this cluster: it was never added, or it was '
                          'removed and its certificate is revoked; it joins with a token of `fettle node invite`'),
                  b'unknown node')
    assert pid_of('noded') == pid, 'noded was restarted'


@title('/input/bus/bad-frames-close-the-connection')
def test_bus_frames():
    first, second = config_of('node1')['node_uuid'], config_of('node2')['node_uuid']
    good = (etc('node2', 'node.crt'), etc('node2', 'node.key'))
    pid = pid_of('noded')
    for data, expected in bad_hellos(second):
        expect_answer(tell_from(data, good), expected, data)
    for role, who in (('noded', first), ('job/5', second)):
        expect_answer(tell_from(hello(who, role), good),
                      refusal('permission_denied', f'from: is {who}/{role.split("/")[0]}, but the certificate is of node '
                                                   f'{second}'), hello(who, role))
    tell_from(b'"' + b'x' * 5000, good)
    wait_until('noded says why it closed', lambda: said(
        'node1', 'noded', 'bus: link to node node2 lost: a frame is larger than 4096 bytes'), 30)
    assert pid_of('noded') == pid, 'noded was restarted'
    e2e.verify_clean(lab)


# --- files cut short ---

@title('/input/files/job-file-cut-short-is-set-aside#LUX-36')
def test_job_file():
    """A job dies and half of its file is gone: luxid says so, sets it aside, ends the job, and the queue serves."""
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 600})
    wait_until('the job runs', lambda: lab.job_status(job)[0] == 'running')
    queue = os.path.join(lab.root('node1'), 'run', 'queue')
    lab.lab('pause', 'luxid@node1')
    os.kill(wait_until('it has a process', lambda: e2e.job_pid(lab, job)), signal.SIGKILL)
    with open(os.path.join(queue, f'job-{job}'), 'r+b') as file:
        file.truncate(os.path.getsize(file.name) // 2)
    lab.lab('kill', 'luxid@node1')
    lab.luxi_connection = None
    status, results = lab.wait_job(job)
    assert status == 'error' and results == [f'detected death of job {job}; its job file was damaged'], (status, results)
    with open(os.path.join(lab.root('node1'), 'log', 'luxid.log'), encoding='utf-8', errors='replace') as file:
        found = re.search(rf'job-{job} is of no use \((.+)\): set aside as (\S+)', file.read())
    assert found, 'luxid did not say that it set the file aside'
    os.remove(os.path.join(queue, found.group(2)))
    assert not os.path.exists(os.path.join(queue, f'job-{job}'))
    lab.do('OP_TEST_DELAY', duration=0)


@title('/input/sizes-of-the-next-start#SAF-17')
def test_pending():
    """A guest keeps its memory until its next start, over a migration and a reset; what is pending is shown meanwhile."""
    def sizes():
        row, = lab.json('instance', 'list', 'web', '-o', 'be/memory,oper_ram,pending')
        return row['be/memory'], row['oper_ram'], row['pending']

    e2e.wait_healthy(lab, 'web')
    had = sizes()[0]
    code, out, err = lab.run('instance', 'modify', 'web', '--memory', f'{had + 8}M')
    assert (code, out) == (0, 'Instance web is changed.\n') and f'the guest keeps its {had} MiB of memory' in err, (out, err)
    pending = f'{had + 8} MiB of memory'
    assert sizes() == (had, had, pending), sizes()
    assert lab.cli('instance', 'list').splitlines()[-1] == f'web: {pending} from its next start on'
    assert re.search(rf'^  Pending +{pending}, from its next start on$', lab.cli('instance', 'info', 'web'), re.M)
    lab.cli('instance', 'migrate', 'web')
    lab.cli('instance', 'reboot', 'web')
    assert sizes() == (had, had, pending), sizes()
    e2e.wait_healthy(lab, 'web')
    lab.cli('instance', 'reboot', '--reboot-type', 'full', 'web')
    assert sizes() == (had + 8, had + 8, None), sizes()
    e2e.wait_healthy(lab, 'web')
    cli_error(2, '--memory: must be a size in whole MiB, such as 512, 512M, 10G or 1T, not "0.5M"', 'instance', 'modify', 'web', '--memory', '0.5M')
    code, _, err = lab.run('instance', 'modify', 'web', '--vcpus', '2', '--add-net', 'mac=auto', check=False)
    assert code == 5 and 'is not stopped, and a running guest keeps the devices that it was started with' in err, (code, err)


@title('/input/no-sanitizer-report')
def test_logs():
    lab.do('OP_INSTANCE_REMOVE', instance_name='web', shutdown_timeout=0)
    e2e.verify_clean(lab)
    e2e.check_logs(lab)


if __name__ == '__main__':
    folder = tempfile.mkdtemp(prefix='fettle-input-', dir='/var/tmp')
    try:
        with e2e.new_lab() as lab:
            lab.leaks = True
            lab.do('OP_INSTANCE_CREATE', instance_name='web', pnode='node2', snode='node3', **e2e.TICK)
            e2e.run(test_opcodes, test_objects, test_create, test_room, test_nodes, test_stale_failover,
                    test_command_line, test_exit_codes, test_lab, test_tables, test_other_root, test_help, test_widths, test_order, test_several, test_documents,
                    test_local_frames, test_luxi_frames, test_epoch, test_certificates, test_bus_frames, test_job_file, test_pending, test_logs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
