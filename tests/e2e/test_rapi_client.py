#!/usr/bin/env python3
"""Ganeti's remote API as its clients see it: Debian's GanetiRapiClient, unmodified, makes each call that it has, and hbal loads the cluster;
what is read has the members that were recorded of Ganeti 3.0.2, what is written shows in the job and in the cluster. The short form has what
is read, tags and a job; the long one everything."""
import base64
import functools
import http.client
import json
import os
import re
import ssl
import subprocess

import e2e
import ganeti_clients
from e2e import title, wait_until

FOLDER = os.path.dirname(os.path.abspath(__file__))
LONG = os.environ.get('FETTLE_LONG') == '1'
PASSWORD = 'correct horse'
# Of bulk lists and of /2/info, as Ganeti 3.0.2 answered.
COMMON = ['ctime', 'mtime', 'uuid', 'serial_no', 'tags']
KEYS = {
    'instances': 'name admin_state os pnode snodes disk_template nic.ips nic.macs nic.modes nic.uuids nic.names nic.links nic.networks '
                 'nic.networks.names nic.bridges network_port disk.sizes disk.spindles disk_usage disk.uuids disk.names beparams hvparams oper_state '
                 'oper_ram oper_vcpus status custom_hvparams custom_beparams custom_nicparams'.split() + COMMON,
    'nodes': 'name offline master_candidate drained dtotal dfree sptotal spfree mtotal mnode mfree pinst_cnt sinst_cnt ctotal cnos cnodes csockets '
             'pip sip role pinst_list sinst_list master_capable vm_capable ndparams group.uuid'.split() + COMMON,
    'jobs': 'id ops status summary opstatus received_ts start_ts end_ts'.split(),
    'groups': 'alloc_policy name node_cnt node_list ipolicy custom_ipolicy diskparams custom_diskparams ndparams custom_ndparams'.split() + COMMON,
    'info': 'architecture beparams blacklisted_os candidate_pool_size config_version ctime default_hypervisor default_iallocator '
            'diskparams drbd_helper drbd_usermode_helper enabled_data_collectors enabled_disk_templates enabled_hypervisors '
            'export_version file_storage_dir hidden_os hvparams ipolicy mac_prefix maintain_node_health master master_netdev '
            'master_netmask max_running_jobs mtime name ndparams nicparams os_api_version os_hvp osparams protocol_version '
            'reserved_lvs shared_file_storage_dir software_version tags uid_pool uuid vg_name volume_group_name'.split()}
lab = None
alice = None  # may write
bob = None  # may only read


class Client:
    """A process of GanetiRapiClient."""
    def __init__(self, user, password=PASSWORD):
        path = ':'.join(os.path.join(folder, part) for part in ('usr/share/ganeti/3.0', 'usr/lib/python3/dist-packages'))
        self.called = set()
        self.process = subprocess.Popen(['/usr/bin/python3', '-W', 'ignore', os.path.join(FOLDER, 'rapi_calls.py'), str(port()), '', user, password],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, 'PYTHONPATH': path})
        self.names = json.loads(self.process.stdout.readline())

    def ask(self, name, *args, **more):
        self.called.add(name)
        self.process.stdin.write(json.dumps([name, args, more]) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __getattr__(self, name):
        def call(*args, **more):
            said = self.ask(name, *args, **more)
            assert 'result' in said, (name, args, more, said)
            return said['result']
        return call

    def job(self, name, *args, **more):
        """A call whose job must end well; the result of its last opcode."""
        job = getattr(self, name)(*args, **more)
        assert isinstance(job, int), (name, job)
        status, result = lab.wait_job(job, 120)
        assert status == 'success', (name, args, more, status, result)
        return result[-1]

    def refused(self, code, explain, name, *args, **more):
        said = self.ask(name, *args, **more)
        assert said.get('code') == code and re.search(explain, said['error']), (name, args, more, said)

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def daemon():
    known = next(one for one in lab.status()['nodes'] if one['name'] == 'node1')
    return next(one for one in known['daemons'] if one['name'] == 'rapid')


@functools.cache
def port():
    return daemon()['port']


def get(path, method='GET', user='alice', body=None, **headers):
    """(status, headers, text) by HTTP alone."""
    line = http.client.HTTPSConnection('127.0.0.1', port(), timeout=120, context=ssl._create_unverified_context())  # pylint: disable=protected-access
    told = {name.replace('_', '-'): value for name, value in headers.items()}
    if user:
        told['Authorization'] = 'Basic ' + base64.b64encode(f'{user}:{PASSWORD}'.encode()).decode()
    try:
        line.request(method, path, body=body, headers=told)
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        line.close()


def announced(length):
    """The status of a request whose body is to be so long, as who waits for a word before it is sent is told."""
    line = http.client.HTTPSConnection('127.0.0.1', port(), timeout=120, context=ssl._create_unverified_context())  # pylint: disable=protected-access
    try:
        line.putrequest('PUT', '/2/instances/web1/modify')
        for name, value in (('Content-Length', str(length)), ('Expect', '100-continue'), ('Content-Type', 'application/json')):
            line.putheader(name, value)
        line.endheaders()
        return line.getresponse().status
    finally:
        line.close()


def has_keys(what, objects):
    assert objects, what
    for one in objects:
        missing = [key for key in KEYS[what] if key not in one]
        assert not missing, (what, missing, one)


# --- what is read ---

@title('/rapi-client/reads#RAP-03')
def test_reads():
    assert bob.GetVersion() == 2
    assert sorted(bob.GetFeatures()) == ['instance-create-reqv1', 'instance-reinstall-reqv1', 'node-evac-res1', 'node-migrate-reqv1']
    has_keys('info', [bob.GetInfo()])
    assert bob.GetInstances() == ['web1'], bob.GetInstances()
    has_keys('instances', bob.GetInstances(bulk=True))
    one = bob.GetInstance('web1')
    has_keys('instances', [one])
    assert one['disk_template'] == 'drbd' and one['status'] == 'running' and one['beparams']['memory'] == 8, one
    assert bob.GetNodes() == ['node1', 'node2', 'node3']
    has_keys('nodes', bob.GetNodes(bulk=True))
    has_keys('nodes', [bob.GetNode('node2')])
    assert [bob.GetNodeRole(f'node{number}') for number in (1, 2, 3)][0] == 'master'
    assert bob.GetGroups() == ['default']
    has_keys('groups', bob.GetGroups(bulk=True))
    has_keys('groups', [bob.GetGroup('default')])
    assert bob.GetNetworks() == [] and bob.GetNetworks(bulk=True) == []
    has_keys('jobs', bob.GetJobs(bulk=True))
    assert 1 in [int(job) for job in bob.GetJobs()]
    has_keys('jobs', [bob.GetJobStatus(1)])
    assert bob.GetFilters() == [] and bob.GetFilters(bulk=True) == []
    for tags in (bob.GetClusterTags(), bob.GetInstanceTags('web1'), bob.GetNodeTags('node1'), bob.GetGroupTags('default')):
        assert tags == []
    rows = bob.Query('instance', ['name', 'disk_template'], ['=', 'name', 'web1'])['data']
    assert rows == [[[0, 'web1'], [0, 'drbd']]], rows
    assert {field['name'] for field in bob.QueryFields('node', ['name', 'role'])['fields']} == {'name', 'role'}


@title('/rapi-client/one-job#RAP-03')
def test_job():
    job = alice.AddInstanceTags('web1', ['a.b', '@c:d'], reason='a reason')
    assert alice.WaitForJobCompletion(job, period=1) is True
    assert sorted(alice.GetInstanceTags('web1')) == ['@c:d', 'a.b']
    said = alice.WaitForJobChange(job, ['status'], None, -1)
    assert said['job_info'] == ['success'], said
    told = alice.GetJobStatus(job)
    assert [part[0] for part in told['ops'][0]['reason']][:2] == ['gnt:user', 'gnt:library:rlib2:instances_name_tags'], told
    user = lab.call('QueryJobs', [job], ['user'])[0][0]
    assert user == 'rapi:alice', user
    alice.job('DeleteInstanceTags', 'web1', ['a.b', '@c:d'])
    assert alice.GetInstanceTags('web1') == []


@title('/rapi-client/refused#RAP-03')
def test_refused():
    bob.refused(403, 'user "bob" may only read', 'ShutdownInstance', 'web1')
    bob.refused(403, 'user "bob" may only read', 'WaitForJobChange', 1, ['status'], None, -1)
    alice.refused(404, 'instance "nosuch" does not exist', 'GetInstance', 'nosuch')
    alice.refused(404, 'job "999999" does not exist', 'GetJobStatus', 999999)
    alice.refused(400, r'ops\[0\].vcpus: must be a whole number', 'ModifyInstance', 'web1', beparams={'vcpus': 1.5})
    status, headers, text = get('/2/info', user=None)
    assert (status, headers['WWW-Authenticate']) == (401, 'Basic realm="Ganeti Remote API"'), (status, headers)
    assert json.loads(text) == {'code': 401, 'message': 'Unauthorized', 'explain': 'No permission -- see authorization schemes'}, text
    assert get('/2/nope')[::2] == (404, '{"code": 404, "message": "Not Found", "explain": "Nothing matches the given URI"}')
    status, headers, text = get('/2/instances/web1', method='PUT')
    assert (status, headers['Allow']) == (405, 'GET, HEAD, DELETE'), (status, headers, text)
    assert get('/2/instances/web1/modify', method='PUT', body='{}', Content_Type='text/plain')[0] == 415
    status, _, text = get('/2/instances/web1/modify', method='PUT', body='{\n\n{', Content_Type='application/json')
    assert status == 400 and 'the body is no JSON object (line 3: ' in json.loads(text)['explain'], text
    assert announced(2 << 20) == 413
    status, _, text = get('/2/instances/web1/export', method='PUT', body='{}', Content_Type='application/json')
    assert status == 501 and json.loads(text)['explain'] == "/2/instances/web1/export: Fettle has no exports of Ganeti's form; see the guide", text


@title('/rapi-client/http')
def test_http():
    status, headers, text = get('/2/instances/web1')
    tag = headers['ETag']
    assert status == 200 and tag == f'W/"{json.loads(text)["serial_no"]}"', headers
    status, headers, text = get('/2/instances/web1', method='HEAD')
    assert (status, headers['ETag'], text) == (200, tag, ''), (status, headers, text)
    status, headers, text = get('/2/instances?bulk=1')
    first, last = headers['Fettle-Serials'].split('-')
    assert status == 200 and 0 < int(first) <= int(last), headers
    status, _, text = get('/fettle/v1/openapi.json')
    assert status == 200 and json.loads(text)['openapi'] == '3.1.0'
    for path in ('decisions', 'repairs', 'recovery', 'jobs', 'volumes', 'verify', 'plan/node2?event=fail', 'instances/web1/why',
                 'query/instance?fields=name'):
        status, _, text = get('/fettle/v1/' + path)
        assert status == 200 and json.loads(text) is not None, (path, status, text)


@title('/rapi-client/hbal#RAP-03')
def test_hbal():
    with ganeti_clients.Clients(lab, folder) as clients:
        code, said = clients.tool('hbal', '-m', f'https://alice:{PASSWORD.replace(" ", "%20")}@127.0.0.1:{port()}')
    assert code == 0 and 'Loaded 3 nodes, 1 instances' in said, (code, said)


# --- everything ---

NONE = [('GetOperatingSystems',), ('RedistributeConfig',), ('InstancesMultiAlloc', []), ('PrepareExport', 'web1', 'local'),
        ('ExportInstance', 'web1', 'local', 'node2'), ('RenameInstance', 'web1', 'web2'), ('PowercycleNode', 'node3'),
        ('GetNodeStorageUnits', 'node1', 'file', 'name'), ('ModifyNodeStorageUnits', 'node1', 'file', 'x'),
        ('RepairNodeStorageUnits', 'node1', 'file', 'x'), ('ConnectNetwork', 'net1', 'default', 'bridged', 'br0'),
        ('DisconnectNetwork', 'net1', 'default'), ('AddNetworkTags', 'net1', ['a']), ('DeleteNetworkTags', 'net1', ['a']),
        ('CreateGroup', 'other'), ('ModifyGroup', 'default'), ('DeleteGroup', 'default'), ('RenameGroup', 'default', 'other'),
        ('AssignGroupNodes', 'default', ['node1'])]


@title('/rapi-client/what-there-is-not#RAP-03')
def test_none():
    for name, *args in NONE:
        alice.refused(501, 'see the guide', name, *args)


def status_of(name):
    return lab.instance(name, 'status')['status']


@title('/rapi-client/instances#RAP-03')
def test_instances():
    alice.job('CreateInstance', 'create', 'made', 'file', [{'size': 8}], [], os='tick', pnode='node2', beparams={'memory': 8, 'vcpus': 1})
    assert status_of('made') == 'running'
    told = alice.job('GetInstanceInfo', 'made', static=1)
    assert told['made' if 'made' in told else next(iter(told))]['name'] == 'made', told
    alice.refused(503, 'has no VNC display', 'GetInstanceConsole', 'made')
    alice.job('RebootInstance', 'made', reboot_type='hard')
    alice.job('ShutdownInstance', 'made', timeout=0)
    assert status_of('made') == 'ADMIN_down'
    alice.job('ModifyInstance', 'made', beparams={'vcpus': 2})
    assert lab.instance('made', 'vcpus')['vcpus'] == 2
    alice.job('GrowInstanceDisk', 'made', 0, 8)
    assert lab.instance('made', 'disk.sizes')['disk.sizes'] == [16]
    alice.job('ActivateInstanceDisks', 'made')
    alice.job('DeactivateInstanceDisks', 'made')
    alice.job('ReinstallInstance', 'made', os='tick', no_startup=True)
    assert status_of('made') == 'ADMIN_down'
    status, result = lab.wait_job(alice.RecreateInstanceDisks('made'))
    assert status == 'error' and 'they are not given up' in result[0][1][0], (status, result)
    alice.job('ReinstallInstance', 'made', os='tick')
    assert status_of('made') == 'running'
    alice.job('ShutdownInstance', 'made', timeout=0)
    alice.job('StartupInstance', 'made')
    alice.job('DeleteInstance', 'made')
    assert alice.GetInstances() == ['web1']
    assert alice.InstanceAllocation('create', 'x', 'file', [], [])['name'] == 'x'


def holder():
    return lab.instance('web1', 'pnode')['pnode']


@title('/rapi-client/moves#RAP-03')
def test_moves():
    e2e.wait_healthy(lab, 'web1')
    first = holder()
    alice.job('MigrateInstance', 'web1', mode='live')
    assert holder() != first
    e2e.wait_healthy(lab, 'web1')
    alice.job('FailoverInstance', 'web1')
    assert holder() == first
    alice.job('ReplaceInstanceDisks', 'web1', mode='replace_on_secondary')
    e2e.wait_healthy(lab, 'web1')
    alice.job('MigrateNode', first)
    wait_until('it has gone', lambda: holder() != first, 60)
    e2e.wait_healthy(lab, 'web1')
    alice.job('EvacuateNode', holder(), mode='primary-only')
    wait_until('it is back', lambda: holder() == first, 60)
    e2e.wait_healthy(lab, 'web1')


@title('/rapi-client/nodes-and-cluster#RAP-03')
def test_nodes():
    alice.job('SetNodeRole', 'node3', 'drained')
    assert alice.GetNodeRole('node3') == 'drained'
    alice.job('SetNodeRole', 'node3', 'regular')
    assert alice.GetNodeRole('node3') == 'regular'
    alice.job('ModifyNode', 'node3', drained=True)
    assert alice.GetNode('node3')['drained'] is True
    alice.job('ModifyNode', 'node3', drained=False)
    for kind, name in (('Node', ['node3']), ('Group', ['default']), ('Cluster', [])):
        alice.job(f'Add{kind}Tags', *name, ['a.b'])
        assert getattr(alice, f'Get{kind}Tags')(*name) == ['a.b']
        alice.job(f'Delete{kind}Tags', *name, ['a.b'])
        assert getattr(alice, f'Get{kind}Tags')(*name) == []
    alice.job('ModifyCluster', max_running_jobs=11)
    assert alice.GetInfo()['max_running_jobs'] == 11
    alice.job('CreateNetwork', 'net1', '192.0.2.0/24', gateway='192.0.2.1')
    has = alice.GetNetwork('net1')
    assert has['network'] == '192.0.2.0/24' and alice.GetNetworkTags('net1') == [], has
    alice.job('ModifyNetwork', 'net1', gateway='192.0.2.2')
    assert alice.GetNetworks(bulk=True)[0]['gateway'] == '192.0.2.2'
    alice.job('DeleteNetwork', 'net1')
    assert alice.GetNetworks() == []


@title('/rapi-client/rules-and-queue#RAP-03')
def test_rules():
    rule = alice.AddFilter(10, [['reason', ['=', 'source', 'nobody']]], 'PAUSE')
    assert alice.GetFilter(rule)['action'] == 'PAUSE' and alice.GetFilters() == [rule]
    assert alice.ReplaceFilter(rule, 11, [['reason', ['=', 'source', 'nobody']]], 'ACCEPT') == rule
    assert alice.GetFilters(bulk=True)[0]['priority'] == 11
    assert alice.DeleteFilter(rule) is None and alice.GetFilters() == []
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 300})
    said = alice.CancelJob(job)
    assert said[0] in (True, False) and isinstance(said[1], str), said
    assert lab.wait_job(job)[0] in ('canceled', 'error')


@title('/rapi-client/every-call#RAP-03')
def test_every_call():
    missing = sorted(set(alice.names) - alice.called - bob.called)
    assert not missing, missing




if __name__ == '__main__':
    folder, why = ganeti_clients.unpacked()
    if not folder:
        print(f'1..0 # SKIP {why}')
    else:
        with e2e.new_lab() as lab:
            for name, rights in (('alice', ['--write']), ('bob', [])):
                lab.cli('rapi', 'user', 'add', name, *rights, typed=PASSWORD + '\n')
            lab.do('OP_INSTANCE_CREATE', instance_name='web1', pnode='node2', snode='node3', **e2e.TICK)
            wait_until('REST is there', lambda: daemon()['ready'], 60)
            alice, bob = Client('alice'), Client('bob')
            short = [test_reads, test_job, test_refused, test_http, test_hbal]
            whole = [test_none, test_instances, test_moves, test_nodes, test_rules, test_every_call]
            e2e.run(*short, *(whole if LONG else []))
