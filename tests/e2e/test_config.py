#!/usr/bin/env python3
"""The configuration of a real cluster: who writes it, networks and their addresses, what a long creation holds, old copies."""
import contextlib
import glob
import json
import os
import re

import e2e
from e2e import fettlelib, title, wait_until

lab = None


def create(name, net=None, **more):
    nics = [{'network': 'prod', 'ip': net}] if net else []
    return lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': name, 'disk_template': 'diskless', 'memory': 8,
                       'start': False, 'nics': nics, **more})


def address(name):
    return lab.instance(name, 'nic.ips')['nic.ips'][0]


def network(*fields):
    return lab.query('network', list(fields), ['=', 'name', 'prod'])[0]


def remove(*names):
    for name in names:
        lab.do('OP_INSTANCE_REMOVE', instance_name=name, shutdown_timeout=0)


@title('/config/network#WCF-22')
def test_network():
    lab.cli('network', 'add', 'prod', '--network', '192.0.2.0/28', '--gateway', '192.0.2.1', '--reserve', '192.0.2.2-192.0.2.4')
    lines = lab.cli('network', 'list', '--no-headers', '--separator', '|').split('\n')
    assert lines[0] == 'prod|192.0.2.0/28|192.0.2.1|bridged|br0|0|10', lines
    # Ten creations at once for ten addresses: each gets one of its own. One more gets none.
    jobs = [create(f'n{i}', 'pool') for i in range(10)]
    ended = [lab.wait_job(job) for job in jobs]
    assert all(status == 'success' for status, _ in ended), ended
    given = sorted((address(f'n{i}') for i in range(10)), key=lambda text: int(text.split('.')[3]))
    assert given == [f'192.0.2.{i}' for i in range(5, 15)], given
    status, result = lab.wait_job(create('late', 'pool'))
    assert status == 'error' and result[0][1][0] == ('nics[0].ip: network "prod" (192.0.2.0/28) has no free address left; '
                                                     'see fettle network info prod'), result
    text = lab.cli('network', 'info', 'prod')
    assert f'192.0.2.5        instance "{next(n for n in names(10) if address(n) == "192.0.2.5")}"' in text, text
    assert '  Free           0 of 16\n' in text, text
    page = lab.cli('instance', 'info', 'n3')
    assert f'bridged on br0  {address("n3")}  network prod' in page, page


def names(count):
    return [f'n{i}' for i in range(count)]


@title('/config/network-refusals')
def test_network_refusals():
    taken = address('n3')
    e2e.expect_cli_error(lab, 4, f'fettle: --net: ip: {taken} is taken by instance "n3" (job {next_job()})', 'instance', 'create',
                         'late', '--disk-template', 'diskless', '--net', f'network=prod,ip={taken}')
    e2e.expect_cli_error(lab, 5, f'fettle: instance "n0" has a card in network "prod"; it stays while one has (job {next_job()})',
                         'network', 'remove', 'prod')
    e2e.expect_cli_error(lab, 3, 'fettle: network "dev" does not exist', 'network', 'info', 'dev')
    # An address goes back with its instance.
    remove('n3')
    assert network('free_count')['free_count'] == 1
    assert lab.wait_job(create('late', 'pool'))[0] == 'success'
    assert address('late') == taken
    remove('late', *(n for n in names(10) if n != 'n3'))
    lab.cli('network', 'modify', 'prod', '--release', '192.0.2.2-192.0.2.4', '--gateway', 'none')
    assert network('free_count', 'gateway') == {'free_count': 14, 'gateway': ''}
    lab.cli('network', 'remove', 'prod')
    assert lab.query('network', ['name']) == []


def next_job():
    return max([row['id'] for row in lab.query('job', ['id'])] + [0]) + 1


# --- long creations ---

def locks_of(job):
    """Its locks by name, with how it holds them."""
    rows = lab.query('lock', ['name', 'mode', 'owner'])
    return {row['name']: row['mode'] for row in rows if any(str(job) in str(owner) for owner in row['owner'] or [])}


@title('/config/long-creation-blocks-nobody#FUT-02,FUT-08')
def test_long_creation():
    long = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'long', 'pnode': 'node2', 'snode': 'node3',
                       'wait_for_sync': True, **e2e.TICK, 'disks': [{'size': 64}]})
    # Its room is on record, its disks are made; the other node then says nothing for as long as we like.
    def busy():
        held = locks_of(long)
        assert lab.job_status(long)[0] not in ('success', 'error'), lab.job_status(long)
        return 'instance/long' in held and not any(name.startswith('node-res/') for name in held)
    wait_until('it has reserved and goes on', busy, 30, step=0.005)
    lab.lab('pause', 'noded@node3')
    try:
        held = locks_of(long)
        assert held.pop('instance/long') == 'exclusive'
        assert len(held) == 2 and all(name.startswith('node/') and mode == 'shared' for name, mode in held.items()), held
        other = lab.submit({'OP_ID': 'OP_INSTANCE_CREATE', 'instance_name': 'short', 'disk_template': 'file', 'pnode': 'node2',
                            'disks': [{'size': 8}], 'memory': 8, 'start': False})
        assert lab.wait_job(other)[0] == 'success', lab.job_status(other)
        lab.do('OP_INSTANCE_REMOVE', instance_name='short', shutdown_timeout=0)
        assert lab.job_status(long)[0] == 'running'
    finally:
        lab.lab('resume', 'noded@node3')
    assert lab.wait_job(long, 120)[0] == 'success', lab.job_status(long)
    remove('long')


# --- waiting ---

def delay(*instances, duration=12):
    return lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': duration, 'no_locks': False,
                       'on_instances': list(instances)})


def later(*instances):
    """A job that needs its locks for its second opcode only: what stands first in line is not started before it can run."""
    return lab.call('SubmitJob', [{'OP_ID': 'OP_TEST_DELAY', 'duration': 0.1},
                                  {'OP_ID': 'OP_TEST_DELAY', 'duration': 0.1, 'no_locks': False, 'on_instances': list(instances)}])


@title('/config/why-a-job-waits#FUT-09,LUX-13')
def test_why():
    holder = delay('y')
    wait_until('it holds y', lambda: 'instance/y' in locks_of(holder), 10)
    held = delay('y', duration=0.1)
    row = lab.query('job', ['status', 'held'], ['=', 'id', held])[0]
    because = f'it would wait for locks that job {holder} has or waits for: instance/y (exclusive)'
    assert row == {'status': 'queued', 'held': because}, row
    when = r'since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
    said = lab.cli('why', str(held))
    expected = (rf'Job {held} is queued and\n'
                rf'  waits {when}, because {re.escape(because)}\n'
                rf'  goes on once job {holder} has ended \(TEST_DELAY\([\d.]+\), running\)\n'
                rf'  what that one waits for: fettle why {holder}; to end it: fettle job cancel {holder}\n')
    assert re.fullmatch(expected, said), said
    between = later('x', 'y')
    wait_until('the next one waits', lambda: lab.query('waiter', ['job']) == [{'job': str(between)}], 10)
    last = later('x')
    wait_until('and one more', lambda: len(lab.query('waiter', ['job'])) == 2, 10)
    # As JSON: of that job, and of those behind which it waits.
    told, = lab.json('why', str(held))
    assert told['held_by'] == holder and told['held'] == because and told['dependencies'] == [] and told['waits'] == [], told
    told, = lab.json('why', str(last))
    assert [wait['job'] for wait in told['waits']] == [str(last), str(between)] and told['held'] is None, told
    told, = lab.json('why', str(between))
    assert [wait['job'] for wait in told['waits']] == [str(between)], told
    said = lab.cli('why', str(last))
    expected = (rf'Job {last} is waiting\n'
                rf'  is at TEST_DELAY\(0.1\), step 2 of 2, {when}\n'
                rf'  has waited for locks {when}:\n'
                rf'  waits for instance/x, wanted first by job {between} \(exclusive\) {when}, which\n'
                rf'    waits for instance/y, held by job {holder} \(exclusive\) {when}\n'
                rf'  goes on once job {between} has ended, or has had its locks and wants them no more\n'
                rf'  what that one is at: fettle why {between}; to end it: fettle job cancel {between}\n'
                rf'  to end it: fettle job cancel {last}\n')
    assert re.fullmatch(expected, said), said
    assert all(lab.wait_job(job)[0] == 'success' for job in (holder, held, between, last))
    assert lab.query('waiter', ['job']) == []
    assert lab.cli('why', str(holder)) == f'Job {holder} has succeeded.\n'


# --- who writes ---

def writers():
    """Names of the programs that have a store open for writing."""
    found = set()
    for path in glob.glob('/proc/[0-9]*/fd/*'):
        with contextlib.suppress(OSError):
            target = os.readlink(path)
            if not target.startswith(lab.directory) or not target.endswith('/store.db'):
                continue
            with open(path.replace('/fd/', '/fdinfo/'), encoding='utf-8') as file:
                flags = int(next(line.split()[1] for line in file if line.startswith('flags:')), 8)
            with open(os.path.join(*path.split('/')[:3]).replace('proc', '/proc', 1) + '/comm', encoding='utf-8') as file:
                if flags & os.O_ACCMODE != os.O_RDONLY:
                    found.add(file.read().strip())
    return found


def unanswered(opcode):
    """What luxid says, if anything, to a job that nobody can store."""
    with fettlelib.Luxi(os.path.join(lab.root('node1'), 'run', 'luxid.sock'), timeout=5) as luxi:
        try:
            job = luxi.call('SubmitJob', [opcode])
        except TimeoutError as error:
            return error
        except fettlelib.LuxiError as error:
            assert error.code in fettlelib.PASSING, error
            return error
    raise AssertionError(f'job {job} was taken although nobody could store it')


@title('/config/only-wconfd-writes#WCF-02')
def test_writers():
    wait_until('stores are open', writers, 10)
    assert writers() == {'fettle-wconfd'}, writers()
    opcode = {'OP_ID': 'OP_TAGS_SET', 'kind': 'cluster', 'tags': ['later'], 'request_id': 'while-nobody-writes'}
    lab.lab('pause', 'wconfd@node1')
    try:
        before = e2e.content_of(lab, 'node1')
        assert before[1], 'the store cannot be read'
        said = [unanswered(opcode) for _ in range(2)]
        assert e2e.content_of(lab, 'node1') == before, f'somebody has changed the store while wconfd stood still ({said})'
    finally:
        lab.lab('resume', 'wconfd@node1')
    # What it was asked for meanwhile is still a request to it, and no answer is no word on it: asked again it is one job.
    job = lab.submit(opcode)
    assert lab.wait_job(job)[0] == 'success', lab.job_status(job)
    assert [row['id'] for row in lab.query('job', ['id'], ['=', 'request_id', opcode['request_id']])] == [job]
    assert 'later' in lab.cli('tag', 'list', 'cluster').split()


def processes(name):
    """/proc folders of this lab's daemons of that name."""
    return [f'/proc/{daemon["pid"]}' for node in lab.status()['nodes'] for daemon in node['daemons']
            if daemon['name'] == name and daemon['pid']]


@title('/config/wconfd-on-one-socket#WCF-09')
def test_socket():
    found = processes('wconfd')
    assert len(found) == 3, found
    for path in found:
        inet = set()
        for table in ('tcp', 'tcp6', 'udp', 'udp6'):
            with open(f'{path}/net/{table}', encoding='utf-8') as file:
                inet |= {line.split()[9] for line in file.readlines()[1:]}
        own = {match.group(1) for fd in glob.glob(path + '/fd/*')
               if (match := re.match(r'socket:\[(\d+)\]', os.readlink(fd)))}
        assert own and not own & inet, f'{path} has TCP or UDP sockets: {own & inet}'
    mode = os.stat(os.path.join(lab.root('node1'), 'run', 'wconfd.sock')).st_mode
    assert mode & 0o007 == 0, oct(mode)


# --- copies that are cut off ---

def serials(node):
    found = lab.exec(node, lab.fettle, '--root', lab.root(node), 'confd', 'master', '--json')
    return {one['name']: one['serial'] for one in json.loads(found)['candidates'] if one['answered']}


@title('/config/confd-of-cut-off-candidates#RCF-05,RCF-06')
def test_old_copies():
    wait_until('all answer alike', lambda: len(serials('node2')) == 3 and len(set(serials('node2').values())) == 1, 20)
    lab.lab('link', 'node1', 'down')
    old = serials('node2')
    assert sorted(old) == ['node2', 'node3'], old
    lab.cli('tag', 'add', 'cluster', 'unheard')
    assert serials('node2') == old, 'an old answer, and no error'
    assert serials('node1')['node1'] > old['node2']
    lab.lab('link', 'node1', 'up')
    wait_until('all have the change', lambda: len(serials('node2')) == 3 and len(set(serials('node2').values())) == 1, 30)


@title('/config/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab, 60)
    e2e.check_logs(lab)


@title('/config/confd-of-the-last-candidate#RCF-04')
def test_last():
    for node in ('node1', 'node2'):
        lab.lab('power', node, 'off')
    assert sorted(serials('node3')) == ['node3'], serials('node3')


if __name__ == '__main__':
    with e2e.new_lab(nodes=3, options=('--replica-lost-ms', '5000', '--candidates', '3')) as lab:
        e2e.run(test_network, test_network_refusals, test_long_creation, test_why, test_writers, test_socket, test_old_copies, test_logs,
                test_last)
