#!/usr/bin/env python3
"""LUXI as Ganeti's clients speak it: recorded exchanges are replayed, every method is called by a client of its own."""
import contextlib
import json
import os
import re
import select
import sys

import e2e
from e2e import title, wait_until

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'luxi')
sys.path.insert(0, FOLDER)
import client as luxi_client  # noqa: E402

lab = None
SUBMITS = ('SubmitJob', 'SubmitManyJobs', 'SubmitJobToDrainedQueue')
# What these say counts, not only that it is a text: states of jobs, kinds of fields.
WORDS = {'queued', 'waiting', 'canceling', 'running', 'canceled', 'success', 'error',
         'text', 'number', 'unit', 'bool', 'timestamp', 'other', 'unknown'}
JOB_METHODS = ('WaitForJobChange', 'QueryJobs', 'CancelJob', 'ChangeJobPriority', 'ArchiveJob', 'PickupJob')


def new_client():
    return luxi_client.Client(os.path.join(lab.root('node1'), 'run', 'luxid.sock'))


def lines(name):
    with open(os.path.join(FOLDER, name), encoding='utf-8') as file:
        return file.read().splitlines()


def differences():
    """`METHOD PATH | why`, where PATH is a regular expression for the whole path; each must be needed. METHOD#N: of the Nth recorded
    exchange only. ~ before it: not needed each time, as it depends on who is faster."""
    found = []
    for line in lines('differences.txt'):
        if line and not line.startswith('#'):
            where, why = line.removeprefix('~ ').split(' | ', 1)
            method, path = where.split(' ', 1)
            assert why, line
            found.append((method, re.compile(path), line))
    return found


def exchanges():
    """(request, reply, closed) of each recorded exchange; reply None: it got none."""
    request = None
    for line in lines('exchanges.txt'):
        if line.startswith('>>> '):
            request = line[4:].removesuffix('\\x03')
        elif line.startswith('<<< ') and request is not None:
            reply, _, rest = line[4:].partition('\\x03')
            yield request, None if reply.startswith('(closed') else json.loads(reply), 'closed the connection' in rest
            request = None


def shape(value):
    """What of a value counts: its type, and that of its parts; of a boolean and of a word with a meaning, the value."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    if isinstance(value, bool) or value is None or isinstance(value, str) and value in WORDS:
        return repr(value)
    return 'number' if isinstance(value, (int, float)) else type(value).__name__


def alike(parts):
    return len({json.dumps(shape(part), sort_keys=True) for part in parts}) <= 1


def compare(recorded, found, path):
    """Yields (path, what differs). A list of parts that are all alike may have another length, but none is not some."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in sorted(set(recorded) | set(found)):
            where = f'{path}.{key}'
            if key not in found:
                yield where, 'is missing'
            elif key not in recorded:
                yield where, 'is new'
            else:
                yield from compare(recorded[key], found[key], where)
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found) and not (recorded and found and alike(recorded) and alike(found)):
            yield path, f'has {len(found)} parts, not {len(recorded)}'
        for i, (one, other) in enumerate(zip(recorded, found)):
            yield from compare(one, other, f'{path}[{i}]')
    elif shape(recorded) != shape(found):
        yield path, f'is {shape(found)}, not {shape(recorded)}'


# The submission of the job that is canceled some exchanges later: recorded where jobs took long to begin, so it lasts here.
CANCELED_LATER = 12


class Replay:
    def __init__(self):
        self.client, self.jobs, self.used, self.problems = new_client(), {1: 1}, set(), []
        self.known, self.number = differences(), 0

    def request(self, text):
        """The request with the ids of our jobs in place of those that were recorded."""
        try:
            request = json.loads(text)
        except ValueError:
            return None, text.encode()
        method, args = request['method'], request['args']
        if method in JOB_METHODS and args:
            first = args[0]
            args[0] = [self.jobs.get(id_, id_) for id_ in first] if isinstance(first, list) else self.jobs.get(first, first)
        if self.number == CANCELED_LATER:
            args[0][0]['duration'] = 60
        return method, json.dumps(request).encode()

    def learn(self, method, recorded, found):
        if method == 'SubmitManyJobs':
            self.jobs.update({one[1]: other[1] for one, other in zip(recorded, found)})
        elif method in SUBMITS and isinstance(recorded, int):
            self.jobs[recorded] = found

    def note(self, method, path, what):
        for name, pattern, line in self.known:
            if name in (method, f'{method}#{self.number}') and pattern.fullmatch(path):
                self.used.add(line)
                return
        self.problems.append(f'{method}#{self.number} {path}: {what}')

    @staticmethod
    def is_quiet():
        statuses = new_client().call('QueryJobs', None, ['status'])
        return all(status in ('success', 'error', 'canceled') for [status] in statuses)

    def one(self, text, recorded, closed):
        self.number += 1
        method, data = self.request(text)
        # Locks were recorded while nobody had them, a submission while nothing ran, other priority and archive of a job that had ended.
        if method == 'Query' and b'"lock"' in data or method in ('SubmitJob', 'ChangeJobPriority', 'ArchiveJob'):
            wait_until('no job is under way', self.is_quiet)
        found = json.loads(self.client.exchange(data))
        name = method or 'garbage'
        if recorded is not None:
            for path, what in compare(recorded, found, 'reply'):
                self.note(name, path, what)
            self.learn(method, recorded.get('result'), found.get('result'))
        if found['success'] is False and isinstance(found['result'], str):
            assert self.client.closed_by_server(), f'{name}: the connection goes on'
            if not closed:
                self.note(name, 'connection', 'is closed')
            self.client = new_client()
        elif closed:
            self.note(name, 'connection', 'goes on')


@title('/luxi/recorded-exchanges-have-the-same-shapes#LUX-02,LUX-03')
def test_replay():
    replay = Replay()
    count = 0
    for text, recorded, closed in exchanges():
        replay.one(text, recorded, closed)
        count += 1
    assert count == 32, count
    unused = [line for _, _, line in replay.known if line not in replay.used and not line.startswith(('QueryFields', '~ '))]
    assert not replay.problems and not unused, '\n'.join(replay.problems + [f'no longer needed: {line}' for line in unused])


@title('/luxi/fields-of-ganeti#LUX-03')
def test_fields():
    client, resource, problems, used = new_client(), None, [], set()
    known, names = {}, {}
    for line in lines('query-fields.txt'):
        parts = line.split(' | ')
        if line.startswith('## '):
            resource = line[3:] if re.fullmatch(r'## \w+', line) else None
            if resource:
                known = {field['name']: field for field in client.call('QueryFields', resource, None)['fields']}
                names[resource] = []
        elif resource and len(parts) == 3:
            field = known.get(parts[0], {})
            found = (field.get('kind'), field.get('title'))
            if found != (parts[1], parts[2]):
                for method, pattern, text in differences():
                    if method == 'QueryFields' and pattern.fullmatch(f'{resource}.{parts[0]}'):
                        used.add(text)
                        break
                else:
                    problems.append(f'{line}: {found}')
            assert field.get('doc'), line
            names[resource].append(parts[0])
    unused = [text for method, _, text in differences() if method == 'QueryFields' and text not in used]
    assert not problems and not unused, '\n'.join(problems + unused)
    for resource, fields in names.items():
        for i in range(0, len(fields), 200):
            answer = client.call('Query', resource, fields[i:i + 200], None)
            for row in answer['data']:
                for name, (status, value) in zip(fields[i:i + 200], row):
                    assert status in (0, 2, 3, 4) and (status == 0) == (value is not None), (resource, name, status, value)
    assert sum(map(len, names.values())) == 410, {resource: len(fields) for resource, fields in names.items()}


@title('/luxi/every-method#LUX-02,LUX-05')
def test_methods():
    client = new_client()
    noop = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'reason': []}
    job = client.call('SubmitJob', [noop])
    assert client.call('SubmitJobToDrainedQueue', [noop]) == job + 1
    assert client.call('SubmitManyJobs', [[noop], [{'OP_ID': 'OP_NOPE', 'reason': []}]])[0] == [True, job + 2]
    while client.call('WaitForJobChange', job, ['status'], None, None, 10)[0][0] != 'success':
        pass
    assert client.call('WaitForJobChange', job, ['status'], ['success'], 99, 60) == [['success'], []]
    assert client.call('CancelJob', job) == [False, f'Job {job} has ended already']
    assert client.call('CancelJob', job, True) == [False, f'Job {job} has ended already']
    assert client.call('ChangeJobPriority', job, -10) == [False, f'Job {job} has ended already']
    assert client.call('ArchiveJob', job) is True
    assert client.call('AutoArchiveJobs', 100000, 5) == [0, 0]
    assert client.call('Query', 'job', ['id', 'archived'], ['=', 'id', job])['data'] == [[[0, job], [0, True]]]
    assert [field['name'] for field in client.call('QueryFields', 'lock', ['mode', 'name'])['fields']] == ['mode', 'name']
    assert client.call('QueryJobs', [job], ['id', 'status']) == [[job, 'success']]
    rule = client.call('ReplaceFilter', None, 5, [['jobid', ['>', 'id', 'watermark']]], 'PAUSE', [])
    assert client.call('QueryFilters', [rule], ['uuid', 'priority', 'action']) == [[rule, 5, 'PAUSE']]
    assert client.call('DeleteFilter', rule) is None
    assert client.call('QueryInstances', ['instance1'], ['name'], False) == [['instance1']]
    assert client.call('QueryNodes', [], ['name'], False) == [['node1'], ['node2'], ['node3']]
    assert client.call('QueryGroups', ['default'], ['name'], False) == [['default']]
    assert client.call('QueryNetworks', [], ['name', 'network'], False) == [['prod', '192.0.2.0/24']]
    assert client.call('QueryExports', ['node1'], False) == {'node1': []}
    assert client.call('QueryConfigValues', ['master_node', 'nothing']) == ['node1', None]
    assert client.call('QueryClusterInfo')['master'] == 'node1'
    assert client.call('QueryTags', 'instance', 'instance1') == []
    assert client.call('SetDrainFlag', True) is True
    refused(client, 'SubmitJob', [noop], message='the queue is drained: it takes no jobs until `fettle queue undrain`')
    assert client.call('SetDrainFlag', False) is True
    assert client.call('SetWatcherPause', None) is None
    refused(client, 'PickupJob', job, message="Luxi call 'PickupJob' is for internal use only")
    # What fails leaves the connection as it is.
    refused(client, 'QueryNodes', ['nobody'], ['name'], False, message='node "nobody" does not exist')
    refused(client, 'QueryNetworks', [], ['nope'], False, message='Unknown output fields selected: nope')
    refused(client, 'QueryExports', ['nobody'], False, message='node "nobody" does not exist')
    try:
        client.call('Nope')
    except luxi_client.NotParsed as error:
        assert str(error) == ('Failed to parse request: Unable to parse LUXI request method: Invalid string value for type '
                              'LuxiReq: "Nope"'), error
    else:
        raise AssertionError('an unknown method was taken')


def ended(client, job):
    while (state := client.call('WaitForJobChange', job, ['status'], None, None, 10)[0][0]) not in ('success', 'error'):
        pass
    return state


@title('/luxi/opcodes-as-ganetis-clients-send-them#LUX-02')
def test_opcodes():
    """Every parameter of Ganeti's opcode is there; what asks for nothing is let through, true and false are what they say."""
    client = new_client()
    common = {'debug_level': 0, 'priority': 0, 'depends': None, 'comment': None, 'reason': [['gnt:client:gnt-node', 'modify', 1]]}
    node = {'OP_ID': 'OP_NODE_SET_PARAMS', 'node_name': 'node2', 'node_uuid': None, 'force': False, 'hv_state': None, 'disk_state': None,
            'master_candidate': None, 'offline': None, 'auto_promote': False, 'master_capable': None, 'vm_capable': None,
            'secondary_ip': None, 'ndparams': None, 'powered': None, **common}
    for drained in (True, False):
        job = client.call('SubmitJob', [{**node, 'drained': drained}])
        assert ended(client, job) == 'success', client.call('QueryJobs', [job], ['opresult'])
        assert client.call('QueryNodes', ['node2'], ['drained'], False) == [[drained]]
    trail = client.call('QueryJobs', [job], ['ops', 'received_ts'])[0]
    seconds, micro = trail[1]
    assert trail[0][0]['reason'] == [['gnt:client:gnt-node', 'modify', 1],
                                     ['gnt:opcode:node_set_params', f'job={job};index=0', (seconds * 1000000 + micro) * 1000]], trail
    start = {'OP_ID': 'OP_INSTANCE_STARTUP', 'instance_name': 'instance1', 'instance_uuid': None, 'force': False,
             'ignore_offline_nodes': False, 'hvparams': {}, 'beparams': {}, 'no_remember': False, 'startup_paused': False,
             'shutdown_timeout': 120, 'dry_run': True, **common}
    assert isinstance(client.call('SubmitJob', [start]), int)
    refused(client, 'SubmitJob', [{**start, 'startup_paused': True}],
            message='ops[0].startup_paused: only false is taken: guests are not started paused')
    refused(client, 'SubmitJob', [{**start, 'paused': False}], message='ops[0].paused: is not known')


def refused(client, method, *args, message):
    try:
        client.call(method, *args)
    except luxi_client.Failed as error:
        assert isinstance(error.kind, str) and error.arguments[0] == message, (error.kind, error.arguments)
    else:
        raise AssertionError(f'{method} was taken')


def nested(depth):
    condition = ['=', 'name', 'x']
    for _ in range(depth - 1):
        condition = ['!', condition]
    return condition


@title('/luxi/limits#LUX-02')
def test_limits():
    client, noop = new_client(), {'OP_ID': 'OP_TEST_DELAY', 'duration': 0}
    refused(client, 'SubmitJob', [noop] * 257, message='ops: must be a list of 1 to 256 opcodes')
    refused(client, 'SubmitManyJobs', [[noop]] * 1025, message='SubmitManyJobs: jobs: must be a list of at most 1024 jobs')
    refused(client, 'SubmitJob', [{**noop, 'comment': 'x' * 1025}], message='ops[0].comment: must have at most 512 characters, has 1025')
    refused(client, 'Query', 'node', ['name'] * 513, None, message='Query: fields: must have at most 512 elements, has 513')
    refused(client, 'QueryNodes', ['node1'] * 10001, ['name'], False, message='QueryNodes: names: must have at most 10000 elements, has 10001')
    assert client.call('Query', 'node', ['name'], nested(16))['data'] is not None
    refused(client, 'Query', 'node', ['name'], nested(18), message='Query: filter: may be nested 16 deep and have 4096 terms')
    refused(client, 'Query', 'node', ['name'], ['|'] + [['=', 'name', 'x']] * 4097, message='Query: filter: may be nested 16 deep and have 4096 terms')
    refused(client, 'WaitForJobChange', 1, ['status'], None, None, 86401, message='WaitForJobChange: timeout: must be at most 86400')
    refused(client, 'QueryJobs', [1] * 100001, ['id'], message='QueryJobs: ids: must have at most 100000 items')
    # What is too large to be read is answered once, then the connection ends.
    client.stream.sendall(b'[' + b' ' * (8 << 20))
    data = b''
    while not data.endswith(luxi_client.END):
        data += client.stream.recv(65536)
    reply = json.loads(data[:-1])
    assert reply == {'success': False, 'result': 'Failed to parse request: a frame is larger than 8388608 bytes'}, reply
    assert client.closed_by_server()


@title('/luxi/many-idle-clients-and-one-too-many')
def test_connections():
    clients = []
    try:
        for _ in range(2048):
            clients.append(new_client())
            if len(clients) % 500 == 0:
                assert clients[-1].call('QueryConfigValues', ['master_node']) == ['node1']
        while True:
            last = new_client()
            clients.append(last)
            last.stream.settimeout(2)
            try:
                if last.closed_by_server():
                    break
            except TimeoutError:
                assert len(clients) < 2060, 'more than 2048 connections are served'
        assert clients[0].call('QueryConfigValues', ['master_node']) == ['node1']
    finally:
        for client in clients:
            client.close()


@title('/luxi/who-does-not-read-is-dropped')
def test_never_reads():
    """2,000 questions in one go, whose answers nobody takes: few are made, others are served, then it is over."""
    client, other = new_client(), new_client()
    question = json.dumps({'method': 'QueryFields', 'args': ['instance', None]}).encode() + luxi_client.END
    answer = len(json.dumps(other.call('QueryFields', 'instance', None)))
    client.stream.sendall(question * 2000)
    gone = select.poll()
    gone.register(client.stream, 0)  # only that the other side has closed
    def dropped():
        assert other.call('QueryConfigValues', ['master_node']) == ['node1']
        return gone.poll(0)
    wait_until('it is dropped', dropped, 90)
    got = 0
    with contextlib.suppress(ConnectionResetError):
        while data := client.stream.recv(1 << 20):
            got += len(data)
    assert answer < got < min(2 << 20, 1000 * answer), f'{got} bytes of answers of {answer}'
    with open(os.path.join(lab.root('node1'), 'log', 'luxid.log'), encoding='utf-8') as file:
        assert 'connection ended: the peer does not read: ' in file.read()


# Asks a stream socket as a client of LUXI does; prints 1 if it answers as a server of LUXI.
ASK = r"""
import json, socket, sys
def speaks(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ':' in address[0] else socket.AF_INET
    with socket.socket(family) as stream:
        stream.settimeout(float(sys.argv[1]))
        try:
            stream.connect(address)
            stream.sendall(json.dumps({'method': 'QueryInstances', 'args': [[], ['name'], False]}).encode() + b'\3')
            data = b''
            while not data.endswith(b'\3'):
                more = stream.recv(65536)
                if not more:
                    return False
                data += more
            return json.loads(data[:-1]) == {'success': True, 'result': [['instance1']]}
        except (OSError, ValueError):
            return False
for text in sys.argv[2:]:
    host, _, port = text.rpartition(':')
    print(int(speaks((host.strip('[]'), int(port)) if port.isdigit() else text)))
"""


@title('/luxi/one-server-of-it-and-no-other#LUX-02')
def test_one_server():
    paths = set()
    for line in lab.exec('node1', 'cat', '/proc/net/unix').splitlines()[1:]:
        words = line.split()
        # Flags 0x10000: it listens.
        if len(words) == 8 and int(words[3], 16) & 0x10000 and words[7].startswith(lab.root('node1')):
            paths.add(words[7])
    ports = {words[3].replace('0.0.0.0:', '127.0.0.1:').replace('[::]:', '[::1]:').replace('*:', '127.0.0.1:')
             for words in map(str.split, lab.exec('node1', 'ss', '-H', '-l', '-t', '-n').splitlines())}
    luxid = [os.path.join(lab.root('node1'), 'run', name) for name in ('ganeti-query', 'luxid.sock')]
    assert paths.issuperset(luxid) and len(paths) > 4 and ports, (paths, ports)
    known = [*sorted(paths), *sorted(ports)]
    def speaking(seconds, *places):
        answers = lab.exec('node1', sys.executable, '-c', ASK, str(seconds), *places).split()
        return [where for where, answer in zip(places, answers) if answer == '1']
    assert speaking(60, *luxid) == luxid
    others = [where for where in known if where not in luxid]
    assert not speaking(1, *others), others
    # What submits jobs is at the same door.
    assert isinstance(new_client().call('SubmitJob', [{'OP_ID': 'OP_TEST_DELAY', 'duration': 0}]), int)


if __name__ == '__main__':
    with e2e.new_lab() as lab:
        lab.do('OP_INSTANCE_CREATE', instance_name='instance1', disk_template='diskless', memory=8, pnode='node1')
        lab.do('OP_NETWORK_ADD', network_name='prod', network='192.0.2.0/24')
        e2e.run(test_methods, test_opcodes, test_replay, test_fields, test_limits, test_never_reads, test_one_server, test_connections)
