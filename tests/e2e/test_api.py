#!/usr/bin/env python3
"""The API by a real front end and stock clients: who may log in, what they find, what they change; and what is left when a front end, its keys, its
master or itself goes."""
import json
import os
import re
import stat

import api
import e2e
import test_volumes as v
from e2e import title, wait_until

lab = None
front = None
FORMS = {'/identity/': 300, '/identity/v3': 200, '/volume/': 300, '/volume/v3/': 200, '/image/': 300, '/image/versions': 200}


def path_of(*names):
    return os.path.join(lab.root('node1'), *names)


def audit():
    with open(path_of('log', 'api', 'audit.log'), encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def is_good(token):
    """Whether it opens something; None: that is not to be told, as there is no copy yet."""
    status = front.ask('GET', f'/volume/v3/{front.project}/volumes', token=token)[0]
    return {200: True, 401: False}.get(status)


def daemons():
    return {daemon['name']: daemon for daemon in next(one for one in lab.status()['nodes'] if one['name'] == 'node1')['daemons']}


@title('/api/init')
def test_init():
    global front
    assert 'apid' not in daemons()
    e2e.expect_cli_error(lab, 5, 'fettle: node "node1" has no front end of the API', 'api', 'remove', '--yes')
    front = api.init(lab)
    for path, mode in (('etc/api-keys', 0o600), ('var/api/api.db', 0o600), ('etc/apid.conf', 0o644)):
        assert stat.S_IMODE(os.stat(path_of(*path.split('/'))).st_mode) == mode, path
    assert stat.S_IMODE(os.stat(os.path.join(lab.directory, 'clouds.yaml')).st_mode) == 0o600
    assert daemons()['apid']['ready']
    there = ', '.join(path_of(*path.split('/')) for path in ('etc/apid.conf', 'etc/api-keys', 'var/api/api.db'))
    e2e.expect_cli_error(lab, 5, f'fettle: node "node1" has a front end already: {there}; to make it anew, and lose its users: fettle api remove --node node1',
                         'api', 'init', '--node', 'node1')
    assert [row['node'] for row in lab.query('service', ['name', 'node']) if row['name'] == 'apid'] == ['node1']


@title('/api/metrics-to-this-host')
def test_metrics():
    status, headers, text = front.ask('GET', '/metrics')
    assert status == 200 and headers['Content-Type'].startswith('text/plain; version=0.0.4'), (status, headers, text)
    assert re.search(rb'^fettle_api_requests_total\{service="volume",status="2xx"\} [1-9]', text, re.M), text
    e2e.promtool_takes(text.decode())


@title('/api/versions')
def test_versions():
    for path, status in FORMS.items():
        found, headers, body = front.ask('GET', path)
        assert found == status and isinstance(body, dict), (path, found, body)
        assert headers['x-openstack-request-id'].startswith('req-'), headers
        assert f'http://127.0.0.1:{front.port}/' in json.dumps(body), body
    assert front.ask('GET', '/nothing')[0] == 404
    assert front.ask('GET', '/volume/v3/')[1]['OpenStack-API-Version'] == 'volume 3.0'


@title('/api/login')
def test_login():
    status, token, body = front.login()
    assert (status, body['token']['user']['name'], body['token']['project']['name']) == (201, 'admin', 'admin'), body
    assert {one['type'] for one in body['token']['catalog']} >= {'identity', 'volumev3', 'image'}, body
    front.project = body['token']['project']['id']
    status, _, body = front.login('wrong')
    assert (status, body['error']['code']) == (401, 401), body
    assert front.ask('GET', f'/volume/v3/{"0" * 32}/volumes')[0] == 401
    assert front.ask('GET', f'/volume/v3/{"0" * 32}/volumes', token=token[:-3] + 'AAA')[0] == 401
    lines = [line for line in audit() if line['path'] == '/identity/v3/auth/tokens']
    assert [line['status'] for line in lines] == [201, 401], lines
    with open(path_of('log', 'api', 'audit.log'), encoding='utf-8') as file:
        text = file.read()
    assert front.password not in text and token not in text
    issued = front.openstack('token', 'issue')
    assert issued['project_id'] and issued['user_id'], issued
    assert {one['Type'] for one in front.openstack('catalog', 'list')} >= {'identity', 'volumev3', 'image'}
    assert [one['Name'] for one in front.openstack('project', 'list')] == ['admin']


@title('/api/volumes-by-stock-clients#CLN-01')
def test_volumes():
    v.add_backend('dir1', 'node1', 'node2')
    made = front.openstack('volume', 'create', '--size', '1', 'data1')
    assert (made['name'], made['size'], made['status']) == ('data1', 1, 'creating'), made
    wait_until('it is made', lambda: v.volumes()['data1']['status'] == 'available', v.PATIENCE_S)
    listed = front.openstack('volume', 'list', '--long')
    assert [(one['Name'], one['Status'], one['ID']) for one in listed] == [('data1', 'available', made['id'])], listed
    assert made['id'] in front.client('cinder', 'list')
    assert f'delete of {made["id"]}' not in front.client('openstack', 'volume', 'delete', 'data1')
    wait_until('it is gone', lambda: 'data1' not in v.volumes(), v.PATIENCE_S)
    assert 'No volume with a name or ID' in front.client('openstack', 'volume', 'show', 'data1', code=1)


@title('/api/cleanup-by-stock-clients#CLN-34#CLN-41')
def test_cleanup():
    assert front.client('cinder', 'work-cleanup') == 'No cleanable services matched cleanup criteria.\n'
    lab.lab('pause', 'volumed@node1')
    wait_until('it counts as down', lambda: v.services()['node1@dir1'] == 'down', v.PATIENCE_S)
    said = front.client('cinder', 'work-cleanup')
    lab.lab('resume', 'volumed@node1')
    assert 'node1@dir1' in said and said.startswith('Following services will be cleaned:'), said


@title('/api/a-killed-front-end-comes-back')
def test_killed():
    token = front.login()[1]
    lab.lab('kill', 'apid@node1')
    wait_until('it is back', lambda: daemons()['apid']['ready'], v.PATIENCE_S)
    wait_until('it has its copy', lambda: is_good(token), v.PATIENCE_S)


@title('/api/without-a-master')
def test_no_master():
    token = front.login()[1]
    volumes = f'/volume/v3/{front.project}/volumes'
    lab.lab('pause', 'wconfd@node1')
    status, headers, body = front.ask('POST', volumes, {'volume': {'size': 1, 'name': 'late'}}, token)
    assert (status, headers['Retry-After']) == (504, None) and 'it may have been done' in str(body), (status, body)  # the master was told
    assert front.ask('GET', volumes, token=token)[0] == 200
    lab.lab('resume', 'wconfd@node1')
    wait_until('the front end goes on', lambda: front.ask('POST', volumes, {'volume': {'size': 1, 'name': 'data2'}}, token)[0] == 202, v.PATIENCE_S)
    names = [row['name'] for row in lab.query('volume', ['name'])]
    assert names.count('late') <= 1, names


@title('/api/keys-turn')
def test_keys():
    token = front.login()[1]
    lab.cli('api', 'rotate-keys')
    assert is_good(token)
    fresh = front.login()[1]
    lab.cli('api', 'rotate-keys')
    assert (is_good(token), is_good(fresh)) == (False, True)


@title('/api/another-password')
def test_password():
    token = front.login()[1]
    e2e.expect_cli_error(lab, 3, 'fettle: there is no user "nobody"', 'api', 'reset-password', 'nobody')
    before, front.password = front.password, lab.json('api', 'reset-password', 'admin')['password']
    assert front.login(before)[0] == 401
    assert front.login()[0] == 201
    wait_until('the old token ends', lambda: is_good(token) is False, v.PATIENCE_S)


@title('/api/remove#SAF-100')
def test_remove():
    e2e.expect_cli_error(lab, 2, 'fettle: The front end of the API on node1 goes, with its users, projects, roles and quotas. Give --yes for that.', 'api', 'remove')
    lab.cli('api', 'remove', '--node', 'node1', '--yes')
    wait_until('it has ended', lambda: 'apid' not in daemons(), v.PATIENCE_S)
    assert not os.path.exists(path_of('etc', 'apid.conf')) and not os.path.exists(path_of('var', 'api', 'api.db'))
    assert [row for row in lab.query('service', ['name']) if row['name'] == 'apid'] == []


@title('/api/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=2, options=('--watcher-interval-ms', '500')) as lab:
        v.lab, v.folder = lab, os.path.join(lab.directory, 'shared')
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', '4')
        e2e.run(test_init, test_versions, test_metrics, test_login, test_volumes, test_cleanup, test_killed, test_no_master, test_keys, test_password,
                test_remove, test_logs)
