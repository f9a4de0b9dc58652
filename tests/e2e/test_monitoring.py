#!/usr/bin/env python3
"""fettle-mond in a lab with real guests: every node answers about itself, with and without a master, candidates or noded; figures move; settings
of the cluster reach it; whatever is wrong with a source is one report. Who asks here knows HTTP and JSON alone."""
import functools
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time

import bus
import e2e
from e2e import fettlelib, title, wait_until

NODES = ('node1', 'node2', 'node3')  # the master, a candidate, a regular one
REPORT = ['name', 'version', 'format_version', 'timestamp', 'category', 'kind', 'data']
STALE_S = 15
lab = None
uuid = {}


# --- asking ---

def daemon(node):
    known = next(one for one in lab.status()['nodes'] if one['name'] == node)
    return next(one for one in known['daemons'] if one['name'] == 'mond')


@functools.cache
def port_of(node):
    return daemon(node)['port']


def get(node, path, **headers):
    """(status, headers, body) from outside of the lab."""
    line = http.client.HTTPConnection('127.0.0.1', port_of(node), timeout=60)
    try:
        line.request('GET', path, headers={name.replace('_', '-'): value for name, value in headers.items()})
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    except ConnectionRefusedError:
        port_of.cache_clear()  # while a daemon is down its port may be taken from it
        raise
    finally:
        line.close()


def ask(node, path):
    status, headers, body = get(node, path)
    assert (status, headers['Content-Type']) == (200, 'application/json'), (node, path, status, headers, body)
    return json.loads(body)


def data(node, name):
    return ask(node, f'/1/report/{name}')['data']


def status_of(node, name):
    return data(node, name)['status']


def named(items, name):
    return next((one for one in items if one.get('name') == name), None)


def guest(node, name):
    return named(data(node, 'instance/guests')['guests'], name)


def metric(node, name, **labels):
    """The value of the one sample with these labels; None: there is none."""
    found = [line for line in get(node, '/metrics')[2].splitlines() if re.match(name + r'[{ ]', line)]
    found = [line for line in found if all(f'{key}="{value}"' in line for key, value in labels.items())]
    assert len(found) <= 1, found
    return float(found[0].rsplit(' ', 1)[1]) if found else None


def lab_log(node):
    with open(os.path.join(lab.directory, 'log', node, 'mond.log'), encoding='utf-8', errors='replace') as file:
        return file.read()


# --- the tests ---

@title('/monitoring/each-node-answers#MON-01,MON-03,NOD-01')
def test_each_node():
    names = [one[0] for one in ask('node1', '/1/list/collectors')]
    assert {'cpu-avg-load', 'diskstats', 'lv', 'drbd', 'inst-status-fettle', 'guests', 'replicas', 'services', 'relay'} <= set(names), names
    for node in NODES:
        assert ask(node, '/') == [1] and ask(node, '/1') is None
        reports = ask(node, '/1/report/all')
        assert [one['name'] for one in reports] == names, reports
        for one in reports:
            assert list(one) == REPORT and isinstance(one['timestamp'], int), one
            status = one['data'].get('status', {}) if isinstance(one['data'], dict) else {}
            assert status.get('code', 0) < 8, one
        assert get(node, '/nope')[::2] == (404, 'Resource not found'), get(node, '/nope')
        with bus.network_socket(lab, node) as line:  # the node's own port, which is Ganeti's
            line.connect((fettlelib.address(int(node[4:])), 1815))
            line.sendall(b'GET / HTTP/1.0\r\n\r\n')
            assert line.recv(100).startswith(b'HTTP/1.'), node
        # Its node daemon answers as well, what is asked of it by the master.
        assert lab.json('node', 'info', node)
        assert named(data(node, 'daemon/services')['services'], 'noded')['state'] == 'running'

    def up():
        return sorted(row['node'] for row in lab.json('service', 'list', '-o', 'name,node,state') if row['name'] == 'mond' and row['state'] == 'up')
    wait_until('each is on record', lambda: up() == sorted(NODES), 60)


@title('/monitoring/reports-of-real-hosts-have-their-form#NOD-02')
def test_form():
    """As with the fakes of the unit tests (test_report)."""
    with open(os.path.join(e2e.ROOT, 'tests/proto/schema.json'), encoding='utf-8') as file:
        fields = {field['name']: field['type'] for field in json.load(file)['records']['node_report']}
    guest_of = lab.instance('web', 'generation')['generation']
    for node in NODES[1:]:
        report = bus.ask(lab, 'node1', node, 'luxid', 'node_report', {})['result']
        assert set(report) <= set(fields) and all(fields[name] == 'object' for name in set(fields) - set(report)), (node, sorted(report))
        for one in report['guests']:
            assert one['state'] == 'running' and (one['instance'] != uuid['web'] or one['generation'] == guest_of), one


@title('/monitoring/each-role-its-own-calls#NOD-03')
def test_roles():
    """What jobs, wconfd and luxid ask node daemons for, asked by one of the others."""
    web = {'instance': uuid['web']}
    for role, method, args in (('wconfd', 'guest_reset', {**web, 'generation': 1}), ('luxid', 'disks_remove', web), ('wconfd', 'archive_put', {}),
                               ('job/5', 'keys_trust', {'authority': 'x'}), ('job/5', 'announce', {})):
        answer = bus.ask(lab, 'node1', 'node2', role, method, args)
        assert answer.get('error', {}).get('code') == 'permission_denied', (role, method, answer)
    lab.run('instance', 'reboot', 'web')  # each for its own purpose


@title('/monitoring/drained-node-answers#MON-01')
def test_drained():
    lab.run('node', 'modify', 'node3', '--drained', 'yes')
    try:
        assert len(ask('node3', '/1/report/all')) >= 9
    finally:
        lab.run('node', 'modify', 'node3', '--drained', 'no')


@title('/monitoring/figures-move')
def test_figures():
    wait_until('web is seen', lambda: guest('node1', 'web'), 30)
    before = guest('node1', 'web')
    assert before['state'] == 'running' and before['memory'] == 8 and before['drives'][0]['name'] == 'vd0', before
    wait_until('web has used more', lambda: guest('node1', 'web')['cpu_us'] > before['cpu_us'] and
               guest('node1', 'web')['drives'][0]['written_bytes'] > before['drives'][0]['written_bytes'], 60)
    assert metric('node1', 'fettle_guest_up', instance='web') == 1
    assert metric('node1', 'fettle_guest_memory_bytes', instance='web', uuid=uuid['web']) == 8 << 20
    assert metric('node1', 'fettle_guest_cpu_seconds_total', instance='web') > 0
    assert metric('node1', 'fettle_guest_drive_written_bytes_total', instance='web', drive='vd0') > 0
    load = data('node1', 'default/cpu-avg-load')
    assert load['cpu_number'] == os.cpu_count() == len(load['cpus']) and 0 <= load['cpu_total'] <= load['cpu_number'], load
    text, openmetrics = get('node1', '/metrics'), get('node1', '/metrics', Accept='application/openmetrics-text')
    assert text[1]['Content-Type'].startswith('text/plain; version=0.0.4') and not text[2].endswith('# EOF\n'), text[1]
    assert openmetrics[1]['Content-Type'].startswith('application/openmetrics-text') and openmetrics[2].endswith('# EOF\n')


@title('/monitoring/promtool-takes-the-metrics')
def test_promtool():
    for node in NODES:
        e2e.promtool_takes(get(node, '/metrics')[2])


@title('/monitoring/its-own-node-alone#MON-02')
def test_own():
    wait_until('each guest is seen', lambda: guest('node1', 'web') and guest('node3', 'other'), 30)
    for node, foreign in (('node1', 'other'), ('node2', 'web'), ('node2', 'other'), ('node3', 'web')):
        whole = json.dumps(ask(node, '/1/report/all')) + get(node, '/metrics')[2]
        assert f'"{foreign}"' not in whole, (node, foreign)
    lab.lab('link', 'node3', 'down')
    try:
        wait_until('nobody answers node3', lambda: 'no configuration' in status_of('node3', 'instance/inst-status-fettle')['message'], 60)
        names = [one['name'] for one in ask('node3', '/1/report/all')]
        assert names == [one[0] for one in ask('node1', '/1/list/collectors')], names
        before = guest('node3', 'other')['cpu_us']
        wait_until('figures go on', lambda: guest('node3', 'other')['cpu_us'] > before, 60)
    finally:
        lab.lab('link', 'node3', 'up')
    wait_until('it is answered again', lambda: status_of('node3', 'instance/inst-status-fettle')['code'] == 0, 60)


@title('/monitoring/replica-and-relay')
def test_replica():
    def replica():
        return named(data('node1', 'storage/replicas')['replicas'], 'web')
    wait_until('it is in sync', lambda: replica() and replica()['state'] == 'in-sync' and replica()['lag_bytes'] == 0, 60)
    assert metric('node1', 'fettle_replica_in_sync', instance='web') == 1
    assert named(data('node1', 'storage/relay')['relays'], 'web')['relay'] == 'forwarding'
    wait_until('node2 tells of what it keeps',
               lambda: any(one['instance'] == uuid['web'] and one['exported'] for one in data('node2', 'storage/replicas')['kept']), 30)
    lab.lab('link', 'node2', 'down')
    try:
        wait_until('it is told as stale', lambda: replica()['state'] == 'stale', 60)
        assert metric('node1', 'fettle_replica_in_sync', instance='web') == 0
        assert status_of('node1', 'storage/replicas')['code'] == 4
    finally:
        lab.lab('link', 'node2', 'up')
    wait_until('it is in sync again', lambda: replica()['state'] == 'in-sync', 120)


@title('/monitoring/cluster-modify')
def test_settings():
    lab.run('cluster', 'modify', '--data-collectors', 'lv=no', '--data-collector-interval', 'diskstats=3600')
    for node in NODES:
        wait_until(f'{node} has it', lambda node=node: get(node, '/1/report/storage/lv')[0] == 404, 60)
        assert 'lv' not in [one['name'] for one in ask(node, '/1/report/all')]
        assert get(node, '/1/report/storage/lv')[2].startswith('the data collector lv is switched off in this cluster'), node
    info = lab.call('QueryClusterInfo')
    assert info['enabled_data_collectors']['lv'] is False and info['enabled_data_collectors']['drbd'] is True, info
    assert info['data_collector_interval']['diskstats'] == 3600000000, info
    first = ask('node1', '/1/report/storage/diskstats')['timestamp']
    host = ask('node1', '/1/report/default/host')['timestamp']
    wait_until('another one has run', lambda: ask('node1', '/1/report/default/host')['timestamp'] > host, 60)
    assert ask('node1', '/1/report/storage/diskstats')['timestamp'] == first
    lab.run('cluster', 'modify', '--data-collectors', 'lv=yes', '--data-collector-interval', 'diskstats=0')
    wait_until('it is on again', lambda: get('node3', '/1/report/storage/lv')[0] == 200, 60)
    code, _, err = lab.run('cluster', 'modify', '--data-collectors', 'nosuch=no', check=False)
    assert code == 2 and 'there is no data collector "nosuch"; there are cpu-avg-load, host, inst-status-fettle, guests, diskstats, ' in err, (code, err)


def stats(node, name):
    return os.path.join(lab.root(node), 'run', 'stats', name)


@title('/monitoring/failing-and-odd-sources')
def test_bad_sources():
    odd = {'10000000-0000-4000-8000-000000000001.stats': ('{"format": 1, "writ', 'broken JSON at byte'),
           '10000000-0000-4000-8000-000000000002.stats': ('x' * (1 << 20) + 'x', 'has 1048577 bytes; at most 1048576 are read'),
           '10000000-0000-4000-8000-000000000003.stats': ('{}', 'written_us: is missing')}

    def seen():
        for name, (content, _) in odd.items():
            with open(stats('node3', name), 'w', encoding='utf-8') as file:
                file.write(content)
        os.mkfifo(stats('node3', '10000000-0000-4000-8000-000000000004.stats'))
        found = {one['file']: one['status'] for one in data('node3', 'instance/guests')['guests'] if 'file' in one}
        for name in os.listdir(stats('node3', '')):
            if name.startswith('10000000-'):
                os.unlink(stats('node3', name))
        return found if len(found) == 4 else None
    lab.lab('pause', 'noded@node3')  # it sweeps what is of nobody
    try:
        found = wait_until('all are told', seen, 60, 1)
    finally:
        lab.lab('resume', 'noded@node3')
    for name, (_, why) in odd.items():
        assert found[name]['code'] == 8 and why in found[name]['message'], found[name]
        assert found[name]['message'].startswith(f'run/stats/{name}: '), found[name]
    reports = ask('node3', '/1/report/all')
    assert len(reports) == len(ask('node3', '/1/list/collectors'))


@title('/monitoring/without-noded')
def test_without_noded():
    lab.lab('pause', 'noded@node3')
    try:
        wait_until('what it left is told as old', lambda: status_of('node3', 'daemon/services')['code'] == 2, 60)
        message = status_of('node3', 'daemon/services')['message']
        assert re.fullmatch(r'what fettle-noded has left is \d+ s old: it is down, or has no time', message), message
        assert guest('node3', 'other')['cpu_us'] > 0
        wait_until('its guest\'s figures are as old', lambda: metric('node3', 'fettle_guest_stats_age_seconds', instance='other') >= STALE_S, 60)
    finally:
        lab.lab('resume', 'noded@node3')
    wait_until('it is new again', lambda: status_of('node3', 'daemon/services')['code'] == 0, 60)


@title('/monitoring/datagrams-to-candidates-alone#MON-04')
def test_sockets():
    log = os.path.join(lab.directory, 'mond.trace')
    before = ask('node3', '/1/report/instance/inst-status-fettle')['timestamp']
    with subprocess.Popen(['strace', '-f', '-qq', '-e', 'trace=socket,connect', '-o', log, '-p', str(daemon('node3')['pid'])],
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as tracer:
        try:
            wait_until('it is looked at', lambda: e2e.is_traced(daemon('node3')['pid']), 60)

            def asked():
                ask('node3', '/1/report/all')
                with open(log, encoding='utf-8') as file:
                    return file.read().count('connect(') >= 4
            wait_until('it has asked ConfD', asked, 60, 1)
            wait_until('it has been answered', lambda: ask('node3', '/1/report/instance/inst-status-fettle')['timestamp'] > before, 60)
        finally:
            tracer.send_signal(signal.SIGINT)
    with open(log, encoding='utf-8') as file:
        calls = [line.split(None, 1)[1] for line in file if 'resumed' not in line]
    candidates = {fettlelib.address(1), fettlelib.address(2)}
    for call in calls:
        if call.startswith('socket('):
            assert re.match(r'socket\(AF_INET6?, SOCK_DGRAM', call), call
        elif call.startswith('connect('):
            assert 'htons(1814)' in call and any(f'"{one}"' in call for one in candidates), call


def check_complete(node):
    """Those that need no configuration are as ever."""
    for one in ask(node, '/1/report/all'):
        if one['name'] != 'inst-status-fettle' and isinstance(one['data'], dict):
            assert one['data'].get('status', {}).get('code', 0) < 8, one


@title('/monitoring/one-candidate-and-none#MON-05')
def test_degraded():
    def meant():
        return status_of('node3', 'instance/inst-status-fettle')
    wait_until('it is answered', lambda: meant()['code'] < 8, 60)
    lab.lab('power', 'node1', 'off')
    try:
        wait_until('it has asked since', lambda: meant()['code'] < 8 and metric('node3', 'fettle_configuration_age_seconds') < 30, 60)
        check_complete('node3')
        lab.lab('power', 'node2', 'off')
        wait_until('nobody answers', lambda: meant()['message'].startswith('no configuration: '), 60)
        assert meant()['code'] == 8 and 'node1 (' in meant()['message'] and 'node2 (' in meant()['message'], meant()
        check_complete('node3')
        restarts = daemon('node3')['restarts']
        lab.lab('kill', 'mond@node3')  # it begins without any of them
        wait_until('it is back', lambda: daemon('node3')['ready'] and daemon('node3')['restarts'] > restarts, 60)
        check_complete('node3')
        assert meant()['message'].startswith('no configuration: '), meant()
    finally:
        for node in ('node1', 'node2'):
            lab.lab('power', node, 'on')
    wait_until('it is answered again', lambda: meant()['code'] < 8, 120)


def make_certificate(path):
    """With its key, in one file. Returns the certificate."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=node2', '-keyout',
                    path + '.new', '-out', path + '.crt'], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    with open(path + '.new', 'a', encoding='utf-8') as file, open(path + '.crt', encoding='utf-8') as certificate:
        text = certificate.read()
        file.write(text)
    os.unlink(path + '.crt')
    os.rename(path + '.new', path)
    return text


@title('/monitoring/tls-with-a-certificate-of-the-operator')
def test_tls():
    def whole_answer(certificate):
        trust = ssl.create_default_context(cadata=certificate)
        trust.check_hostname = False
        line = http.client.HTTPSConnection('127.0.0.1', port_of('node2'), timeout=60, context=trust)
        try:
            line.request('GET', '/1/report/all')
            answer = line.getresponse()
            assert answer.status == 200 and len(json.load(answer)) >= 9
        finally:
            line.close()
    path = os.path.join(lab.root('node2'), 'etc/mond.pem')
    first = make_certificate(path)
    restarts = daemon('node2')['restarts']
    lab.lab('kill', 'mond@node2')
    try:
        wait_until('it is back', lambda: daemon('node2')['ready'] and daemon('node2')['restarts'] > restarts, 60)
        pid = daemon('node2')['pid']
        whole_answer(first)
        with open(path, 'w', encoding='utf-8') as file:
            file.write('no certificate')
        whole_answer(first)
        assert 'the certificate has changed, and the one before is shown on: ' in lab_log('node2')
        whole_answer(make_certificate(path))
        assert daemon('node2')['pid'] == pid
        os.unlink(path)
        os.symlink('/nowhere/mond.pem', path)
        lab.lab('kill', 'mond@node2')
        wait_until('it says why it does not start', lambda: 'the file is to have certificate and key' in lab_log('node2'), 60)
    finally:
        os.unlink(path)
    wait_until('it is back without', lambda: daemon('node2')['ready'] and get('node2', '/')[0] == 200, 60)


@title('/monitoring/idle-connections')
def test_idle():
    """As many as one address may have, and more that are refused; another one is answered."""
    port = port_of('node1')
    lines = [socket.create_connection(('127.0.0.1', port)) for _ in range(100)]
    try:
        began = time.monotonic()
        with bus.network_socket(lab, 'node2') as line:
            line.settimeout(60)
            line.connect((fettlelib.address(1), 1815))
            line.sendall(b'GET /1 HTTP/1.0\r\n\r\n')
            assert line.recv(100).startswith(b'HTTP/1.'), time.monotonic() - began
    finally:
        for line in lines:
            line.close()


@title('/monitoring/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(options=('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '2')) as lab:
        for name, nodes in (('web', ('node1', 'node2')), ('other', ('node3', 'node2'))):
            lab.do('OP_INSTANCE_CREATE', instance_name=name, pnode=nodes[0], snode=nodes[1], **e2e.TICK)
            uuid[name] = e2e.uuid_of(lab, name)
            lab.cli('repair', 'policy', 'instance', name, 'fix-storage')
        for one in NODES:
            wait_until(f'monitoring of {one} is there', lambda one=one: daemon(one)['ready'], 60)
            wait_until(f'{one} is told', lambda one=one: status_of(one, 'instance/inst-status-fettle')['code'] == 0, 90)
        e2e.run(test_each_node, test_form, test_roles, test_drained, test_figures, test_promtool, test_own, test_replica, test_settings,
                test_bad_sources, test_without_noded, test_sockets, test_tls, test_idle, test_degraded, test_logs)
