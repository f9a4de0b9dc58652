#!/usr/bin/env python3
"""Lists as people see them by default, into a pipe: none is wider than 80 letters with ordinary contents, and the list of nodes says what verify says.
A luxid of a few lines answers as it is told."""
import json
import os
import signal
import subprocess
import threading

import e2e
from e2e import title
from fake_luxid import SILENT, Luxid, Refused

AT, UUID = 1790000000, '1a2b3c4d-1111-4222-8333-444455556666'
TIME = [AT, 0]


def node(name, role='C', **more):
    return {'name': name, 'role': role, 'health': 'well', 'pinst_cnt': 12, 'sinst_cnt': 11, 'mtotal': 65536, 'mfree': 24064, 'dtotal': 1000000,
            'dfree': 512000, 'pip': '192.168.100.101', 'late': None, **more}


# Of each kind of row what an ordinary cluster has there. A field that a list shows and that has no value here fails.
ROWS = {
    'instance': [{'name': 'web1.example', 'status': 'ERROR_nodeoffline', 'pnode': 'node1', 'replica.at': 'node2 in-sync', 'be/memory': 2048, 'be/vcpus': 4,
                  'nic.ips': ['192.168.100.7'], 'guest.late': None, 'pending': None}],
    'node': [node('node1', 'M'), node('node10'),
             node('node11', 'R', health=SILENT, mtotal=SILENT, mfree=SILENT, dtotal=SILENT, dfree=SILENT, late=SILENT)],
    'group': [{'name': 'default', 'node_cnt': 12, 'pinst_cnt': 100, 'tags': ['ganeti:watcher:autorepair:failover']}],
    'service': [{'name': 'watcher', 'node': 'node10', 'role': 'candidate', 'state': 'up', 'process': 'restarting', 'known': 'now', 'since': AT,
                 'restarts': 12},
                {'name': 'watcher', 'node': 'node11', 'role': 'candidate', 'state': SILENT, 'process': SILENT, 'known': 'last known', 'since': AT,
                 'restarts': SILENT}],
    'advice': [{'node': 'node10', 'advice': 'avoid', 'author': 'operator', 'reason': 'new disks come soon', 'until': AT}],
    'network': [{'name': 'production', 'network': '192.168.100.0/24', 'gateway': '192.168.100.1', 'mode': 'bridged', 'link': 'br0', 'inst_cnt': 100,
                 'free_count': 153}],
    'backend': [{'name': 'dir1', 'kind': 'dir', 'nodes': ['node1', 'node10'], 'up': ['node1'], 'volume_cnt': 100, 'promised': 2097152, 'free': 1048000,
                 'total': 4194304}],
    'volume_type': [{'name': 'fast', 'public': True, 'extra_specs': ['volume_backend_name=dir1'], 'volume_cnt': 100}],
    'volume': [{'name': 'data1', 'status': 'error_extending', 'size': 100, 'backend': 'dir1', 'instance': 'web1', 'uuid': UUID, 'waits_since': None}],
    'snapshot': [{'name': 'before', 'status': 'error_deleting', 'size': 100, 'backend': 'dir1', 'volume': 'data1', 'uuid': UUID, 'waits_since': None}],
    'backup': [{'name': 'monday', 'status': 'error_deleting', 'size': 100, 'backend': 'dir1', 'volume': 'data1', 'uuid': UUID, 'waits_since': None}],
    'image': [{'name': 'tick', 'status': 'deleting', 'gib': 100, 'backend': 'dir1', 'disk_format': 'qcow2', 'uuid': UUID, 'waits_since': None}],
    'worker': [{'id': 123456, 'resource': 'data1', 'operation': 'extend-volume', 'backend': 'dir1', 'service': 'node10@dir1', 'updated': AT}],
    'storage_service': [{'binary': 'cinder-volume', 'host': 'node10@dir1', 'state': 'down', 'state_since': AT, 'disabled': False, 'disabled_reason': ''}],
    'export': [],
    'reservation': [{'name': 'web1', 'job': '12345', 'nodes': [['node1', 2048, 10240]], 'macs': ['aa:00:00:12:34:56'], 'ips': ['192.168.100.7@br0'],
                     'port': 11000, 'since': AT}],
    'repair': [{'instance': 'web1.example', 'type': 'fix-storage', 'state': 'success', 'started': AT, 'ended': AT, 'jobs': ['12345', '12346'], 'id': UUID}],
    'brake': [{'since': AT, 'nodes': ['node4', 'node5'], 'why': '2 of 8 nodes were lost'}],
    'decision': [{'at': AT, 'subject_name': 'web1.example', 'state': 'Needs fix', 'verdict': 'act', 'summary': 'Its replica is stale.'}],
    'event': [{'at': AT, 'level': 'critical', 'subject_name': 'web1.example', 'event': 'recovered', 'summary': 'It runs on node1.'}],
    'task': [{'subject_name': 'web1.example', 'task': 'recreating-disks', 'owner': 12345, 'owner_state': 'unknown', 'looks': 12,
              'next': 'when job 12345 has run'}],
    'lock': [{'name': 'instance/web1.example', 'mode': 'exclusive', 'owner': ['12345'], 'pending': ['12346', '12347']}],
    'waiter': [{'job': '12346', 'locks': [['instance/web1', 'exclusive']], 'priority': 0, 'since': AT, 'nodes': [],
                'blockers': [['12345', 'instance/web1', 'exclusive', False, AT]]}],
    'job': [{'id': 123456, 'status': 'canceling', 'summary': ['INSTANCE_REPLACE_DISKS(web1.example)'], 'received_ts': TIME}],
    'filter': [{'uuid': UUID, 'priority': 10, 'predicates': [['opcode', ['=', 'OP_ID', 'OP_INSTANCE_REMOVE']]], 'action': 'REJECT', 'watermark': 12345,
                'reason_trail': [['fettle:client', 'not now', AT]]}],
    'invitation': [{'name': 'node12', 'pip': '192.168.100.112', 'state': 'expired', 'author': 'operator', 'made': AT, 'expires': AT, 'uuid': UUID}],
    'policy': [{'kind': 'nodegroup', 'name': 'default', 'policy': 'failover', 'state': 'suspended', 'type': 'fix-storage', 'tags': [], 'until': AT}],
}
# Lists of no fixed length stand in these, whose tables are folded on a terminal; a row in a pipe is whole.
LISTS = {('lock', 'waiters'), ('queue', 'filter list'), ('metrics', 'list'), ('webhook', 'list')}
# These ask luxid something else, or nobody.
OTHERS = {('tag', 'list'): ['node', 'node1'], ('cluster', 'keys'): [], ('metrics', 'list'): [], ('rapi', 'user list'): [], ('webhook', 'list'): []}
FOUND = {'node': None, 'notes': [], 'problems': ['node node10: fettle-wconfd does not answer', 'node node10: its copy is behind', 'node node11: does not answer',
                                                'instance web1: status is ERROR_nodedown']}


def luxid(found=FOUND):
    return Luxid(ROWS, {'Verify': lambda *_: found, 'QueryTags': lambda *_: ['ganeti:watcher:autorepair:fix-storage'],
                        'QueryRapiUsers': lambda *_: {'anonymous_reads': False, 'users': [{'name': 'a' * 60, 'write': True, 'hash': ''}]},
                        'QueryWebhooks': lambda *_: [{'name': 'pager', 'url': 'https://receiver.example/' + 'a' * 60, 'events': ['job.error', 'repair.*'],
                                                      'paused': False, 'round': 0, 'mark': {'round': 0, 'delivered': 123456, 'said': 'HTTP 204 No Content'}}]})


def lists():
    """All there are, by what the command line tells of itself."""
    done = subprocess.run([os.path.join(e2e.build(), 'src/cli/fettle'), 'help', '--json'], capture_output=True, text=True, check=True)
    told = [(noun['noun'], row['verb'] or '') for noun in json.loads(done.stdout)['nouns'] for row in noun['commands']]
    return sorted(key for key in told if key[0] != 'lab' and (key[1].split(' ')[-1] in ('list', '--list', 'waiters') or key in OTHERS or key == ('repair', 'policy')))


def rows_of(noun, verb):
    what = {('lock', 'waiters'): 'waiter', ('queue', 'filter list'): 'filter', ('node', 'invite --list'): 'invitation', ('repair', 'policy'): 'policy',
            ('recovery', 'list'): 'task', ('storage-service', 'list'): 'storage_service', ('volume-type', 'list'): 'volume_type'}.get((noun, verb), noun)
    return len(ROWS[what]) - 1


@title('/lists/none-is-wider-than-80-letters')
def test_width():
    found, server = lists(), luxid()
    assert len(found) >= 18, found
    wrong = []
    for noun, verb in found:
        code, out, err = server.run(noun, *verb.split(), *OTHERS.get((noun, verb), []))
        assert (code, err) == (0, '') and out, (noun, verb, code, err)
        table = out.splitlines() if (noun, verb) in OTHERS else out.splitlines()[:2 + rows_of(noun, verb)]
        wide = [line for line in table if len(line) > 80 and (noun, verb) not in LISTS]
        titles = table[0].split()
        if wide or len(titles) != len(set(titles)):
            wrong.append((noun, verb, [len(line) for line in wide], out))
    assert not wrong, wrong


def event(number):
    return {'serial_no': number, 'uuid': f'{number:08}{UUID[8:]}', 'at': AT, 'level': 'error', 'event': 'alert', 'subject_kind': 'instance',
            'subject_name': 'web1', 'task': 'starting', 'old': '', 'new': '', 'rule': 'RCV-54', 'host': 'node1', 'summary': f'event {number}'}


@title('/lists/events-are-followed-until-somebody-leaves#RCV-27')
def test_event_watch():
    """Each once, over a luxid that is away for a moment and then tells that its stream is another one."""
    held, rows = threading.Event(), {'event': []}
    # What there is when WatchChanges is asked for the nth time, and whether the answer begins anew; None: it is away.
    steps = [([], True), ([8], False), ([8, 9], None), ([8, 9], True), ([9, 10], False)]

    def watch(*_):
        numbers, anew = steps.pop(0) if steps else (held.wait(60), False)
        if anew is None:
            return Refused('resource_not_available', 'luxid is away')
        rows['event'] = [event(number) for number in numbers] if isinstance(numbers, list) else []
        return {'stream': 's', 'serial': 1, 'anew': anew, 'why': 'anew', 'changes': [['event', UUID, []]]}
    server = Luxid(rows, {'WatchChanges': watch, 'QueryClusterInfo': lambda *_: {'serial': 7}})
    follower = server.start('--json', 'event', 'watch', '--level', 'error', 'web*')
    lines = [json.loads(follower.stdout.readline())['summary'] for _ in range(3)]
    assert lines == ['event 8', 'event 9', 'event 10'], lines
    follower.send_signal(signal.SIGINT)
    rest, err = follower.communicate(timeout=60)
    held.set()
    assert (follower.returncode, rest, steps) == (0, '', []) and 'luxid is away' in err, (follower.returncode, rest, err, steps)
    asked = server.filters()[0]
    assert ['>=', 'serial_no', 8] in asked and ['=', 'level', 'critical'] in asked[2][1] and ['=', 'level', 'warning'] not in asked[2][1], asked


@title('/lists/whatever-changes-is-followed')
def test_watch_kinds():
    """As it is after the change, with what is gone by its name; with a filter only what that holds of."""
    held, told = threading.Event(), []

    def watch(kinds, stream, serial, _):
        told.append((kinds, stream, serial))
        if len(told) > 2:
            held.wait(60)
        changes = [[], [['instance', UUID, [[0, 'web1'], [0, 'up'], [0, 'node1'], [2, None]]], ['job', '17', [[0, 17], [0, 'success'], [0, ['TEST_DELAY']]]],
                        ['instance', UUID, None], ['brake', 'cluster', None]]]
        return {'stream': 's', 'serial': len(told), 'anew': len(told) == 1, 'why': 'begin', 'changes': changes[len(told) - 1] if len(told) < 3 else []}
    answers = {'WatchChanges': watch, 'QueryClusterInfo': lambda *_: {'serial': 7}}

    def followed(count, rows, *words):
        told.clear()
        held.clear()
        server = Luxid(rows, answers)
        follower = server.start(*words)
        lines = [follower.stdout.readline().rstrip('\n') for _ in range(count)]
        follower.send_signal(signal.SIGINT)
        rest, err = follower.communicate(timeout=60)
        held.set()
        assert (follower.returncode, rest, err) == (0, '', ''), (follower.returncode, rest, err)
        return lines, server
    lines, _ = followed(4, {}, 'event', 'watch', '--kinds', 'instance,job,brake')
    assert [line[21:] for line in lines] == ['instance  web1: admin_state up, pnode node1, replica.state -', 'job       17: status success, summary TEST_DELAY',
                                             'instance  web1: gone', 'brake     cluster: gone'], lines
    assert told[0] == ({'instance': ['name', 'admin_state', 'pnode', 'replica.state'], 'job': ['id', 'status', 'summary'], 'brake': ['why', 'nodes']},
                       '', 0) and told[1][1:] == ('s', 1), told
    lines, _ = followed(4, {}, '--json', 'event', 'watch', '--kinds', 'instance,job,brake')
    first, last = json.loads(lines[0]), json.loads(lines[3])
    assert (first['kind'], first['key'], first['gone'], first['pnode']) == ('instance', UUID, False, 'node1') and last['gone'], (first, last)
    rows = {'instance': [], 'job': [{'id': 17, 'status': 'success', 'summary': ['TEST_DELAY']}]}
    lines, server = followed(1, rows, 'event', 'watch', '--kinds', 'instance,job', '--filter', 'status == "success"')
    assert [line[21:] for line in lines] == ['job       17: status success, summary TEST_DELAY'], lines
    assert server.filters() == [['&', ['=', 'uuid', UUID], ['==', 'status', 'success']], ['&', ['=', 'id', 17], ['==', 'status', 'success']]], server.filters()
    for words, message in ((('--kinds', 'jobs'), '--kinds: must be some of event, job, instance, node, group, network, service, lock, brake, decision'),
                           (('--kinds', 'job', 'web1'), '--level and names choose among events alone; with --kinds job say what you want by --filter'),
                           (('--kinds', 'job', '--level', 'error'), '--level and names choose among events alone'),
                           (('--filter', 'status =='), '--filter')):
        code, out, err = Luxid({}).run('event', 'watch', *words)
        assert (code, out) == (2, '') and message in err, (words, code, err)


@title('/lists/what-is-stuck-is-shown')
def test_recovery_show():
    row = {**ROWS['task'][0], 'subject_kind': 'instance', 'subject_name': 'web1', 'since': AT, 'why': 'node2 is silent', 'rule': 'RCV-36',
           'evidence': ['node2 has not answered 6 times'], 'error_since': AT, 'next': 'ERROR: nodes are silent'}
    planned = {'subject_kind': 'instance', 'subject': UUID, 'subject_name': 'web1', 'task': 'recreating-disks', 'owner': 12345, 'owner_state': 'dead',
               'owner_why': 'it was archived after its end', 'outcome': 'settled', 'on_retry': False, 'state': 'active', 'finisher': None, 'why': 'its guest runs', 'rule': 'D9/recreating-disks',
               'evidence': ['node1: running, generation 4', 'node2 gave no answer'], 'next': 'attempt 1 of 5 within 60 s, or when its hosts answer'}
    answer = {'held': True, 'notes': ['Shadow mode: nothing of this is done, only put on record.'], 'rows': [planned]}
    server = Luxid({'task': [row], 'event': [event(8)]}, {'RetryRecovery': lambda *_: True, 'PlanRecovery': lambda *_: answer})
    code, out, err = server.run('recovery', 'show', 'instance', 'web1')
    said = [' '.join(line.split()) for line in out.splitlines()]
    assert (code, err) == (0, '') and said[0] == 'Instance web1' and said[1].startswith('Task recreating-disks, set by job 12345 at '), out
    assert said[2:9] == ['That job unknown: it was archived after its end', said[3], 'Seen then node2 has not answered 6 times',
                         'Seen now node1: running, generation 4', 'node2 gave no answer',
                         'Outcome settled as active: its guest runs (D9/recreating-disks)', 'Next attempt 1 of 5 within 60 s, or when its hosts answer'], out
    assert said[3].endswith(': node2 is silent (RCV-36)') and said[9] == 'Held up Shadow mode: nothing of this is done, only put on record.', out
    assert said[-1].endswith(' error: event 8'), out
    document = json.loads(server.run('--json', 'recovery', 'show', 'instance', 'web1')[1])
    assert (document['why'], document['plan'], document['notes']) == ('node2 is silent', planned, answer['notes']), document
    code, out, err = server.run('recovery', 'plan')
    said = [' '.join(line.split()) for line in out.splitlines()]
    assert (code, err, said) == (0, '', [answer['notes'][0], 'Kind Name Task Job What Rule',
                                         'instance web1 recreating-disks 12345 (dead) settled as active: its guest runs D9/recreating-disks']), out
    assert json.loads(server.run('--json', 'recovery', 'plan', 'instance', 'web1')[1]) == answer
    assert [call['args'] for call in server.calls if call['method'] == 'PlanRecovery'][-2:] == [[], ['instance', 'web1', False]], server.calls
    assert server.run('recovery', 'retry', 'instance', 'web1')[:2] == (
        0, 'Instance web1 is judged anew at the next pass; see: fettle recovery show instance web1\n')
    gone = Luxid({'task': []}, {'PlanRecovery': lambda *_: answer})
    code, _, err = gone.run('recovery', 'show', 'instance', 'web1')
    assert code != 0 and 'instance "web1": it was settled just now; see: fettle why web1' in err, (code, err)
    for verb in ('show', 'plan', 'collect', 'retry'):
        code, _, err = gone.run('recovery', verb, 'network', 'web1')
        assert code != 0 and f'"network": no such kind; usage: fettle recovery {verb} instance|volume|snapshot|backup|image NAME' in err, (code, err)
    nothing = Luxid({}, {'PlanRecovery': lambda *_: {'held': False, 'notes': [], 'rows': []}})
    assert nothing.run('recovery', 'plan') == (0, 'No task was left behind.\n', '')


@title('/lists/nodes-agree-with-verify')
def test_verify():
    code, out, _ = luxid().run('node', 'list')
    rows = [' '.join(line.split()) for line in out.splitlines()]
    assert code == 0 and rows == [
        'Name Role Health Guests Replicas MemFree DiskFree Address',
        'node1 master well 12 11 23.5G 500.0G 192.168.100.101',
        'node10 candidate 2 faults 12 11 23.5G 500.0G 192.168.100.101',
        'node11 regular silent 12 11 - - 192.168.100.101',
        '4 things are not as they should be: fettle cluster verify'], out
    one = {**FOUND, 'problems': FOUND['problems'][:1]}
    code, out, _ = luxid(one).run('node', 'list')
    assert code == 0 and ' 1 fault ' in out and out.endswith(
        '1 thing is not as it should be: fettle cluster verify\n'), out
    # All is well; and nobody can tell.
    for found in ({**FOUND, 'problems': []},):
        code, out, _ = luxid(found).run('node', 'list')
        assert code == 0 and len(out.splitlines()) == 4 and 'fault' not in out, out
    # What programs read is the node's own word, as before, and nobody else is asked.
    server = luxid()
    rows = json.loads(server.run('--json', 'node', 'list')[1])
    assert [row['health'] for row in rows] == ['well', 'well', None] and [call['method'] for call in server.calls] == ['Query'], rows
    assert '(unavailable)' in server.run('--separator', ';', 'node', 'list')[1]
    assert server.run('node', 'list', '-o', 'name,health')[1].splitlines()[2].split() == ['node10', 'well']


@title('/lists/ids-of-repairs-are-brief-for-people')
def test_ids():
    server = luxid()
    assert f' {UUID[:8]}\n' in server.run('repair', 'list')[1] and UUID not in server.run('repair', 'list')[1]
    assert f' {UUID}\n' in server.run('repair', 'list', '-o', 'instance,id')[1] and UUID in server.run('--json', 'repair', 'list')[1]


def sight(**more):
    return {'instance': UUID, 'busy': '', 'silent': '', 'state': 'absent', 'generation': 0, 'io_stop': 'none', 'migration': '', 'crashed': '',
            'disks': [], 'images': [], 'drives': [], 'taps': [], 'taken_us': AT * 1000000, **more}


@title('/lists/what-nodes-show-is-told#RCV-15')
def test_recovery_collect():
    """Every answer that a node may give, and every member of what it shows."""
    full = sight(state='running', generation=4, io_stop='no-space', migration=UUID, drives=['vd0', 'vd1'], taps=['tap0 br0'],
                 images=[{'instance': UUID, 'replica': '', 'disks': 3}, {'instance': UUID, 'replica': UUID, 'disks': 1}],
                 disks=[{'bytes': 1 << 30, 'damage': ''}, {'bytes': 0, 'damage': 'its header is torn'}, {'bytes': 0, 'damage': ''}])
    hosts = [{'node': f'node{i + 1}', 'answer': said, 'why': why, 'boot_id': 'b', 'sight': seen} for i, (said, why, seen) in enumerate([
        ('given', '', full), ('silent', 'its monitor does not answer', sight(crashed='it said nothing')),
        ('busy', 'guest_stop for job 1 is under way since 3 s', sight(busy='guest_stop')), ('refused', 'no epoch', None),
        ('none', 'gave no answer', None), ('offline', 'it is on record as dead, so it was not asked', None)])]
    row = {'subject_kind': 'instance', 'subject_name': 'web1', 'task': 'creating', 'owner': 5, 'owner_state': 'dead', 'hosts': hosts}
    server = Luxid({}, {'PlanRecovery': lambda *_: {'held': False, 'notes': [], 'rows': [row]}})
    code, out, err = server.run('recovery', 'collect', 'instance', 'web1')
    said = [' '.join(line.split()) for line in out.splitlines()]
    assert (code, err) == (0, '') and [line for line in said if not line.startswith('Seen 2026-09-21')] == [
        'Instance web1, creating by job 5 (dead)', 'Node node1', 'Guest running, generation 4', 'Stands still no-space', f'Migration {UUID}',
        'Drives vd0', 'vd1', 'Tap devices tap0 br0', 'Images its own: disks 0, 1', f'of replica {UUID}: disks 0', 'Own disks 0: 1024 MiB',
        '1: its header is torn', '2: none', 'Node node2: cannot tell: its monitor does not answer', 'Guest absent, generation 0',
        'Went by itself it said nothing', 'Node node3: busy: guest_stop for job 1 is under way since 3 s', 'Node node4: refuses: no epoch',
        'Node node5: gave no answer', 'Node node6: it is on record as dead, so it was not asked'], out
    assert json.loads(server.run('--json', 'recovery', 'collect', 'instance', 'web1')[1]) == row
    assert server.calls[-1]['args'] == ['instance', 'web1', True], server.calls
    data = [{'name': 'x.7', 'bytes': 1 << 30, 'whole': True, 'open': True}, {'name': 'x.8', 'bytes': 0, 'whole': False, 'open': False}]
    hosts = [{'node': f'node{i + 1}', 'answer': said, 'why': why, 'boot_id': '', 'sight': seen} for i, (said, why, seen) in enumerate([
        ('given', '', {'data': data, 'taken_us': AT * 1000000}), ('given', '', {'data': [], 'taken_us': AT * 1000000}), ('none', 'gave no answer', None)])]
    row = {'subject_kind': 'volume', 'subject_name': 'data1', 'task': 'creating', 'owner': None, 'owner_state': 'dead', 'hosts': hosts}
    server = Luxid({}, {'PlanRecovery': lambda *_: {'held': False, 'notes': [], 'rows': [row]}})
    said = [' '.join(line.split()) for line in server.run('recovery', 'collect', 'volume', 'data1')[1].splitlines()]
    assert [line for line in said if not line.startswith('Seen 20')] == [
        'Volume data1, creating by nobody any more', 'Node node1', 'Data x.7: 1024 MiB, whole, open in a guest', 'x.8: 0 MiB, not whole', 'Node node2',
        'Data none', 'Node node3: gave no answer'], said


e2e.run(test_width, test_event_watch, test_watch_kinds, test_recovery_show, test_recovery_collect, test_verify, test_ids)
