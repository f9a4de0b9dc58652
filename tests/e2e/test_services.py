#!/usr/bin/env python3
"""The daemons of the nodes as `service` shows them: a death and a new start are counted, a node that stands still or is gone keeps
nobody waiting, damage is told; and beside a node that stands still a list of instances is answered as well."""
import json
import os
import re
import signal

import e2e
from e2e import title, wait_until

lab = None
FIELDS = ['name', 'node', 'state', 'process', 'restarts', 'pid', 'why']
NORMAL, NO_DATA, UNAVAILABLE, OFFLINE = 0, 2, 3, 4


def rows(fields, condition=None):
    """{"luxid@node1": {field: [status, value]}}"""
    fields = ['name', 'node', *fields]
    data = lab.call('Query', 'service', fields, condition)['data']
    return {f'{row[0][1]}@{row[1][1]}': dict(zip(fields, row)) for row in data}


def one(service, field):
    return rows([field])[service][field]


def value(service, field):
    status, found = one(service, field)
    return found if status == NORMAL else None


def runs_again(service, pid):
    return lambda: value(service, 'state') == 'up' and value(service, 'pid') not in (None, pid)


@title('/services/who-runs-where#LUX-03,LUX-04')
def test_list():
    wait_until('monitoring and REST were heard of', lambda: sum(service.startswith(('mond@', 'rapid@')) for service in rows(['state'])) == 5)
    wait_until('all of them run', lambda: all(row['state'] == [NORMAL, 'up'] for row in rows(['state']).values()))
    found = rows(['role', 'process', 'restarts', 'version', 'binary'])
    assert sorted(found) == sorted([f'{name}@{node}' for node in ('node1', 'node2') for name in ('luxid', 'mond', 'noded', 'rapid', 'rconfd', 'volumed', 'watcher',
                                                                                          'wconfd')] +
                                   ['mond@node3', 'noded@node3', 'rconfd@node3', 'volumed@node3']), found
    roles = {service: row['role'][1] for service, row in found.items()}
    assert roles['luxid@node1'] == 'master' and roles['luxid@node2'] == 'standby', roles
    assert roles['wconfd@node2'] == 'candidate' and roles['noded@node3'] == 'regular', roles
    version = lab.run('--version')[1].split()[-1]
    assert all(row['version'] == [NORMAL, version] and row['process'] == [NORMAL, 'running'] for row in found.values()), found
    pids = {f'{daemon["name"]}@{node["name"]}': daemon['pid'] for node in lab.status()['nodes'] for daemon in node['daemons']}
    assert {service: row['pid'][1] for service, row in rows(['pid']).items()} == pids


def on_record():
    """{"luxid@node1": (version, since)}, by a document of the configuration."""
    path = os.path.join(lab.directory, 'services.json')
    lab.cli('cluster', 'export', '--to', path)
    with open(path, encoding='utf-8') as file:
        objects = json.load(file)['objects']
    names = {uuid: node['name'] for uuid, node in objects['node'].items()}
    return {f'{one["name"]}@{names[one["node"]]}': (one['version'], one['since']) for one in objects.get('service', {}).values()}


def replace(path, text):
    with open(path + '.new', 'w', encoding='utf-8') as file:
        file.write(text)
    os.replace(path + '.new', path)


# Before anything has begun anew: news of a node are on record once a minute.
@title('/services/versions-that-differ#FUT-12')
def test_versions():
    wait_until('all are on record', lambda: on_record() == {
        service: (row['version'][1], row['since'][1]) for service, row in rows(['version', 'since']).items()}, 10)
    path = os.path.join(lab.root('node3'), 'run', 'services', 'rconfd.json')
    with open(path, encoding='utf-8') as file:
        said = file.read()
    note = 'note: version 0.0.9 of Fettle: rconfd of node3'
    assert 'of Fettle' not in lab.run('cluster', 'verify', check=False)[1]
    replace(path, json.dumps({**json.loads(said), 'version': '0.0.9'}))
    code, out, _ = lab.run('cluster', 'verify', check=False)
    assert code == 0 and f'{note}; others run version {lab.run("--version")[1].split()[-1]}. Unless ' in out, (code, out)
    wait_until('it is on record', lambda: on_record()['rconfd@node3'][0] == '0.0.9', 10)
    lab.lab('pause', 'noded@node3')
    try:
        assert f'{note} (last known);' in lab.run('cluster', 'verify', check=False)[1]
    finally:
        lab.lab('resume', 'noded@node3')
        replace(path, said)


@title('/services/a-death-is-counted#LUX-04')
def test_killed():
    for service in ('luxid@node2', 'watcher@node1', 'noded@node3', 'luxid@node1', 'wconfd@node1'):
        before, pid = value(service, 'restarts'), value(service, 'pid')
        os.kill(pid, signal.SIGKILL)
        wait_until(f'{service} runs again', runs_again(service, pid))
        assert value(service, 'restarts') == before + 1, (service, before, value(service, 'restarts'))
        assert one(service, 'why') == [NO_DATA, None]


@title('/services/an-end-that-was-asked-for-is-not#LUX-04')
def test_asked():
    for service in ('luxid@node2', 'rconfd@node3'):
        before, pid = value(service, 'restarts'), value(service, 'pid')
        os.kill(pid, signal.SIGTERM)
        wait_until(f'{service} runs again', runs_again(service, pid))
        assert value(service, 'restarts') == before, (service, before, value(service, 'restarts'))


@title('/services/damaged-word')
def test_damaged():
    path = os.path.join(lab.root('node2'), 'run', 'services', 'watcher.json')
    pid = value('watcher@node2', 'pid')
    with open(path, 'wb') as file:
        file.write(b'{"name": "watcher"}')
    found = rows(['state', 'process', 'why'])['watcher@node2']
    assert found['state'] == [NO_DATA, None] and found['process'] == [NORMAL, 'unknown'], found
    assert found['why'] == [NORMAL, 'run/services/watcher.json: livelock: is missing'], found
    os.kill(pid, signal.SIGKILL)
    wait_until('its next process has said what it is', lambda: value('watcher@node2', 'state') == 'up')


@title('/services/a-node-that-stands-still#LUX-04')
def test_paused():
    fields = ['state', 'process', 'known', 'since', 'restarts', 'pid', 'version', 'why']
    assert all(row['known'] == [NORMAL, 'now'] for row in rows(['known']).values())
    lab.lab('pause', 'noded@node3')
    try:
        # Answered while it stands still; everybody else's word is there.
        found, recorded = rows(fields), on_record()
        for service, row in found.items():
            if row['node'][1] == 'node3':
                version, since = recorded[service]
                known = {'since': [NORMAL, since], 'version': [NORMAL, version], 'known': [NORMAL, 'last known']}
                assert all(row[field] == known.get(field, [UNAVAILABLE, None]) for field in fields), (service, row, recorded)
            else:
                assert row['state'] == [NORMAL, 'up'], (service, row)
        said = lab.cli('service', 'list', 'noded')
        assert re.search(r'^noded +node3 +regular +silent +- +\d.* -$', said, re.M), said
        assert re.search(r'^noded +node1 +master +up +running +\d', said, re.M), said
    finally:
        lab.lab('resume', 'noded@node3')
    wait_until('it is seen again', lambda: value('noded@node3', 'state') == 'up')


@title('/services/instances-beside-a-node-that-stands-still#LUX-04')
def test_instances_beside_paused():
    names = ['name', 'pnode', 'admin_state', 'status', 'oper_state', 'oper_ram', 'guest.state']
    def ask():
        data = lab.call('Query', 'instance', names, None)['data']
        return {row[0][1]: dict(zip(names, row)) for row in data}
    before = ask()
    assert before['here']['oper_state'] == [NORMAL, True] and before['there']['oper_state'] == [NORMAL, True], before
    lab.lab('pause', 'noded@node3')
    try:
        found = ask()
    finally:
        lab.lab('resume', 'noded@node3')
    assert found['here'] == before['here'], found
    there = found['there']
    assert all(there[name] == before['there'][name] for name in ('name', 'pnode', 'admin_state')), there
    assert there['status'] == [NORMAL, 'ERROR_nodedown'], there
    assert all(there[name] == [UNAVAILABLE, None] for name in ('oper_state', 'oper_ram', 'guest.state')), there
    wait_until('it is seen again', lambda: ask() == before)


def refused(*args):
    code, _, err = lab.run(*args, check=False)
    return code, err.strip()


@title('/services/command-line')
def test_commands():
    said = lab.cli('service', 'list')
    assert said.splitlines()[0].split() == ['Name', 'Node', 'Role', 'State', 'Process', 'Since', 'Restarts'], said
    assert len(said.splitlines()) == 21, said
    said = lab.cli('--no-headers', '--separator', ';', '-o', 'name,host,state', 'service', 'list', 'wconfd', 'luxid')
    assert said.splitlines() == ['luxid;node1;up', 'wconfd;node1;up', 'luxid;node2;up', 'wconfd;node2;up'], said
    said = json.loads(lab.cli('--json', '-o', 'node,binary', 'service', 'list', 'watcher'))
    assert said == [{'node': node, 'binary': 'fettle-watcher'} for node in ('node1', 'node2')], said
    names = [line.split()[0] for line in lab.cli('--no-headers', 'query-fields', 'service').splitlines()]
    assert names == ['name', 'binary', 'node', 'host', 'node.uuid', 'role', 'state', 'process', 'known', 'since', 'restarts', 'pid', 'version', 'why'], names
    # One that is there has more rows than there are names.
    assert refused('service', 'list', 'noded', 'apid') == (3, 'fettle: service "apid" does not exist')
    assert refused('service', 'list', 'apid') == (3, 'fettle: service "apid" does not exist'), refused('service', 'list', 'apid')
    code, err = refused('-o', 'colour', 'service', 'list')
    assert code == 2 and 'service has no field "colour"' in err, (code, err)
    code, err = refused('service', 'lst')
    assert code == 2 and 'did you mean "fettle service list"?' in err, (code, err)


@title('/services/unreadable-job-files')
def test_bad_job_file():
    path = os.path.join(lab.root('node1'), 'run', 'queue', 'job-77')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('garbage')
    pid = value('luxid@node1', 'pid')
    os.kill(pid, signal.SIGKILL)
    wait_until('luxid runs again', runs_again('luxid@node1', pid))
    code, out, _ = lab.run('cluster', 'verify', check=False)
    named = re.search(r'^job file (run/queue/bad-job-77-\d+) of node node1: is no record of job 77 and was set aside; ', out, re.M)
    assert code == 1 and named, (code, out)
    os.unlink(os.path.join(lab.root('node1'), named.group(1)))
    assert 'job file' not in lab.run('cluster', 'verify', check=False)[1]


@title('/services/a-node-that-is-gone#LUX-04')
def test_gone():
    lab.lab('power', 'node3', 'off')
    assert one('noded@node3', 'state') == [UNAVAILABLE, None]
    lab.cli('node', 'modify', 'node3', '--offline', 'yes', '--statement', 'test: the power was cut')
    assert one('noded@node3', 'state') == [OFFLINE, None]
    said = lab.cli('service', 'list', 'rconfd')
    assert re.search(r'^rconfd +node3 +regular +offline +- ', said, re.M), said
    lab.lab('power', 'node3', 'on')
    wait_until('it may come back', lambda: lab.run('node', 'modify', 'node3', '--offline', 'no', check=False)[0] == 0)
    wait_until('it is seen again', lambda: value('rconfd@node3', 'state') == 'up')
    # What was before the boot is not counted.
    assert value('noded@node3', 'restarts') == 0


@title('/services/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--candidates', '2', '--watcher-interval-ms', '500')) as lab:
        for name, node in (('here', 'node1'), ('there', 'node3')):
            lab.do('OP_INSTANCE_CREATE', instance_name=name, disk_template='diskless', memory=8, pnode=node)
        e2e.run(test_list, test_versions, test_killed, test_asked, test_damaged, test_paused, test_instances_beside_paused, test_commands,
                test_bad_job_file, test_gone, test_logs)
