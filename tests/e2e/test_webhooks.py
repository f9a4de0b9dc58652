#!/usr/bin/env python3
"""Webhooks in a lab: commands, what is delivered and how it is signed, addresses that are refused, receivers that do not do what they should, a REST
daemon and a master that die. What goes by the clock is tests/unit/core/rapi/test_webhooks.c's."""
import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import tempfile

import e2e
from e2e import fettlelib, title, wait_until

OPTIONS = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '2')
PORT = 8099
EVENTS = 1000 if e2e.LONG else 40
SECRET = 'f' * 40
PATIENCE_S = 120
NOT_TAKEN = 19  # exit code
lab = folder = receiver = None


def put(name, text):
    with open(os.path.join(folder, name + '.new'), 'w', encoding='utf-8') as file:
        file.write(text)
    os.rename(os.path.join(folder, name + '.new'), os.path.join(folder, name))


def lines(name):
    try:
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            return [json.loads(line) for line in file if line.endswith('\n')]
    except FileNotFoundError:
        return []


HOOK, WITNESS = '/hook?a=b', '/witness'


def taken(path=HOOK):
    """Ids, in the order in which they came."""
    return [line[0] for line in lines('taken') if line[5] == path and not line[0].startswith('test/')]


def url(node=3, path=HOOK):
    host = fettlelib.address(node)
    return f'http://[{host}]:{PORT}{path}' if ':' in host else f'http://{host}:{PORT}{path}'


class Receiver:
    """On node3, which every candidate reaches, and which webhook_allow has to name."""
    def __init__(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'receiver.py')
        self.words = ['ip', 'netns', 'exec', lab.namespace('node3'), 'python3', script, fettlelib.address(3), str(PORT), folder]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL)

    def stop(self):
        self.process.kill()
        self.process.wait()


def hook(name='pager'):
    return next(one for one in lab.json('webhook', 'list') if one['name'] == name)


def jobs(count, **more):
    """Ends that many; as ids of events, in the order in which they were submitted."""
    answers = lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 0, **more}]] * count)
    assert all(ok for ok, _ in answers), answers
    return [f'job/{job}' for _, job in answers]


def wait_taken(ids, seconds=PATIENCE_S):
    wait_until(f'{len(ids)} events are delivered', lambda: set(ids) <= set(taken()), seconds)


def happened():
    """Ids of jobs in the order of their ends."""
    found, place = [], [0, '']
    while True:
        events = lab.call('QueryHappened', *place, ['job.*'])['events']
        if not events:
            return found
        found += [one['id'] for one in events]
        place = [events[-1]['serial'], events[-1]['after']]


def in_order(ids):
    """When they came first; that one comes again is allowed, and judged by tests/unit/core/rapi/test_webhooks.c."""
    came = list(dict.fromkeys(one for one in taken() if one in ids))
    right = [one for one in happened() if one in ids]
    assert came == right and len(right) == len(ids), (came, right, ids)


# --- commands ---

def refused(*words):
    """Code and what is said, without the UUID that it would have had."""
    code, _, said = lab.run('webhook', *words, check=False)
    return code, re.sub(r' \([0-9a-f-]{36}\):', ':', said)


@title('/webhooks/bad-input')
def test_bad_input():
    good = ('--url', 'https://receiver.example/x', '--events', 'job.error')
    e2e.expect_cli_error(lab, 2, 'fettle: --url is needed; see "fettle webhook add --help"', 'webhook', 'add', 'x')
    e2e.expect_cli_error(lab, 2, 'fettle: --events is needed; see "fettle webhook add --help"', 'webhook', 'add', 'x', '--url', 'https://a')
    for words, said in (
            (('x', '--url', 'ftp://a', '--events', '*'), 'webhook x: url: must begin with https:// or http://'),
            (('x', '--url', 'https://u:p@a/', '--events', '*'),
             'webhook x: url: may have no user and no password: it is shown in lists; the signature says who sends'),
            (('x y', *good), 'webhook x y: name: may have no blank and no control character, and may not begin with "-"')):
        assert refused('add', *words) == (2, f'fettle: {said}\n'), words
    _, said = refused('add', 'x', '--url', 'https://a', '--events', 'job.error,jobs.error')
    assert said.startswith('fettle: webhook x: events: there is no event "jobs.error"; there are job.success, job.error, '), said
    e2e.expect_cli_error(lab, 3, 'fettle: webhook "x" does not exist', 'webhook', 'remove', 'x')
    e2e.expect_cli_error(lab, 3, 'fettle: webhook "x" does not exist', 'webhook', 'test', 'x')
    e2e.expect_cli_error(lab, 3, 'fettle: webhook "x" does not exist', 'webhook', 'modify', 'x', '--pause')
    e2e.expect_cli_error(lab, 2, 'fettle: nothing to change: name at least one flag; see "fettle webhook modify --help"', 'webhook', 'modify', 'x')
    e2e.expect_cli_error(lab, 2, 'fettle: --pause and --resume exclude each other', 'webhook', 'modify', 'x', '--pause', '--resume')
    none = 'fettle: --events: at least one is needed, such as job.error'
    e2e.expect_cli_error(lab, 2, none, 'webhook', 'add', 'x', '--url', 'https://a', '--events', '')
    e2e.expect_cli_error(lab, 2, none, 'webhook', 'modify', 'x', '--events', ',')
    put('short', 'x' * 15 + '\n')
    code, _, said = lab.run('webhook', 'add', 'x', *good, '--secret-file', os.path.join(folder, 'short'), check=False)
    assert code == 2 and 'short: a secret is one line of 16 to 256 characters, none of them a control character' in said, said
    code, _, said = lab.run('cluster', 'modify', '--webhook-allow', '127.0.0.0/33', check=False)
    assert code != 0 and 'webhook_allow: "127.0.0.0/33" is no network such as 192.0.2.0/24 or 2001:db8::/32' in said, said


@title('/webhooks/a-secret-is-shown-once')
def test_secret():
    said = lab.run('webhook', 'add', 'shown', '--url', 'https://127.0.0.1:1/x', '--events', 'job.*,event.alert')[1]
    secret = said.split()[-1]
    assert said == ('Webhook shown is on record; what happens from now on is sent to it. What is delivered is signed with this secret, '
                    f'which is shown this once: {secret}\n') and len(secret) == 64, said
    e2e.expect_cli_error(lab, 4, 'fettle: webhook "shown" exists already; change it with: fettle webhook modify', 'webhook', 'add', 'shown', '--url',
                         'https://a', '--events', '*')
    path = os.path.join(folder, 'x.json')
    lab.cli('cluster', 'export', '--to', path)
    with open(path, encoding='utf-8') as file:
        assert secret not in file.read()
    everything = lab.run('webhook', 'list')[1] + lab.run('webhook', 'list', '--json')[1] + json.dumps(lab.call('QueryWebhooks'))
    assert secret not in everything and 'job.*,event.alert' in everything, everything
    other = lab.json('webhook', 'modify', 'shown', '--new-secret')['secret']
    assert len(other) == 64 and other != secret


def not_allowed(address):
    said = f'fettle: webhook "bad": the test was not taken: the address {address} is not allowed for webhooks'
    e2e.expect_cli_error(lab, NOT_TAKEN, said, 'webhook', 'test', 'bad')


@title('/webhooks/refused-addresses')
def test_refused():
    lab.run('webhook', 'add', 'bad', '--url', 'http://127.0.0.1:1/', '--events', '*')
    for host, address in (('127.0.0.1', '127.0.0.1'), ('2130706433', '127.0.0.1'), ('0', '0.0.0.0'), ('[::1]', '::1'),
                          ('[::ffff:127.0.0.1]', '::ffff:127.0.0.1'), ('169.254.169.254', '169.254.169.254')):
        lab.cli('webhook', 'modify', 'bad', '--url', f'http://{host}:1/')
        not_allowed(address)
    for node in (1, 2, 3):
        lab.cli('webhook', 'modify', 'bad', '--url', url(node))
        not_allowed(fettlelib.address(node))
    for name in ('bad', 'shown'):
        lab.cli('webhook', 'remove', name)
    assert lab.json('webhook', 'list') == []


# --- deliveries ---

@title('/webhooks/a-test')
def test_test():
    network = fettlelib.address(3)
    lab.cli('cluster', 'modify', '--webhook-allow', network)
    put('secret', SECRET + '\n')
    put('mode', 'ok')
    said = lab.run('webhook', 'add', 'pager', '--url', url(), '--events', 'job.*', '--secret-file', os.path.join(folder, 'secret'))[1]
    assert said == 'Webhook pager is on record; what happens from now on is sent to it.\n', said
    receiver.start()
    wait_until('it is taken', lambda: lab.run('webhook', 'test', 'pager', check=False)[0] == 0, PATIENCE_S)
    assert lab.run('webhook', 'test', 'pager')[1] == 'The receiver of webhook pager has taken the test: HTTP 204 No Content\n'
    assert lines('taken')[-1][1] == 'fettle.webhook.test' and lines('taken')[-1][0].startswith('test/')


def is_signed(line):
    words = dict(word.split('=') for word in line[2].split(','))
    right = hmac.new(SECRET.encode(), f'{words["t"]}.{line[4]}'.encode(), hashlib.sha256).hexdigest()
    return words['v1'] == right


@title('/webhooks/jobs-in-order-and-signed')
def test_jobs():
    ids = jobs(EVENTS)
    failed = lab.submit({'OP_ID': 'OP_INSTANCE_STARTUP', 'instance_name': 'no"such\u202ething'[:6]})
    ids.append(f'job/{failed}')
    wait_taken(ids)
    in_order(ids)
    assert all(is_signed(line) for line in lines('taken')), lines('taken')[0]
    assert {line[3] for line in lines('taken')} == {'application/cloudevents+json; charset=utf-8'}
    last = json.loads(next(line for line in lines('taken') if line[0] == f'job/{failed}')[4])
    assert last['type'] == 'fettle.job.error' and last['specversion'] == '1.0' and last['data']['status'] == 'error' and last['data']['error'], last
    wait_until('that is on record', lambda: hook()['delivered'] >= len(ids), 60)
    assert hook()['state'] == 'active'


def bad(*kinds):
    for how, said in kinds:
        put('mode', how)
        code, _, text = lab.run('webhook', 'test', 'pager', check=False)
        assert code == NOT_TAKEN and (said in text or (how == 'garbage' and 'ended the connection' in text)), (how, text)
        ids = jobs(3)
        wait_until('one event was refused', lambda how=how: any(line[1] == how and not line[2].startswith('test/') for line in lines('asked')), 60)
        put('mode', 'ok')
        lab.cli('webhook', 'modify', 'pager', '--resume')  # at once
        wait_taken(ids)
        in_order(ids)


@title('/webhooks/bad-receivers')
def test_bad():
    kinds = (('301', 'HTTP 301 Moved Permanently'), ('endless', 'the head of its answer has no end'), ('500', 'HTTP 500 Internal Server Error'),
             ('body', 'HTTP 503 No'), ('garbage', 'no HTTP'), ('closes', 'it ended the connection without an answer'))
    bad(*(kinds if e2e.LONG else kinds[:2]))
    assert lines('followed') == []


@title('/webhooks/receivers-without-an-answer')
def test_silent():
    """They have the time that they have outside of labs."""
    lab.lab('restart', rapid(), 'FETTLE_WEBHOOK_PATIENCE=1')
    bad(('silent', 'no answer within'), *([('slow', 'no answer within')] if e2e.LONG else []))
    lab.lab('restart', rapid())


@title('/webhooks/a-receiver-that-is-off')
def test_off():
    receiver.stop()
    ids = jobs(20)
    wait_until('it is told', lambda: hook()['state'] == 'retrying' and 'refused' in hook()['said'].lower(), 60)
    receiver.start()
    lab.cli('webhook', 'modify', 'pager', '--resume')
    wait_taken(ids)
    in_order(ids)
    lab.cli('webhook', 'modify', 'pager', '--pause')
    ids = jobs(5)
    wait_until('they have ended', lambda: all(lab.job_status(one.split('/')[1])[0] == 'success' for one in ids), 60)
    assert hook()['state'] == 'paused' and not set(ids) & set(taken())
    lab.cli('webhook', 'modify', 'pager', '--resume')
    wait_taken(ids)


def rapid(node='node1'):
    return f'rapid@{node}'


def pid_of(node='node1'):
    known = next(one for one in lab.status()['nodes'] if one['name'] == node)
    return next(one for one in known['daemons'] if one['name'] == 'rapid').get('pid')


@title('/webhooks/rapid-ends-in-order')
def test_orderly():
    before = hook()['delivered']
    ids = jobs(10)
    wait_taken(ids)
    wait_until('that is on record', lambda: hook()['delivered'] >= before + len(ids), PATIENCE_S)
    came, pid = [one for one in taken() if one in ids], pid_of()
    os.kill(pid, signal.SIGTERM)
    wait_until('it is started again', lambda: pid_of() not in (None, pid), 60)
    more = jobs(10)
    wait_taken(more)
    in_order(ids + more)
    assert [one for one in taken() if one in ids] == came  # what is on record as delivered does not come again


@title('/webhooks/rapid-dies-at-its-points')
def test_points():
    """Before and after a request, and in between."""
    for at, name in enumerate(('webhook: send', 'webhook: answered')):
        once = os.path.join(folder, f'once{at}')
        lab.lab('restart', rapid(), f'FETTLE_CRASH_AT={name}', f'FETTLE_CRASH_ONCE={once}')
        ids = jobs(10)
        wait_until(f'it has died at "{name}"', lambda once=once: os.path.exists(once), 60)
        wait_taken(ids)
        in_order(ids)


@title('/webhooks/luxid-dies')
def test_luxid():
    lab.lab('kill', 'luxid@node1')
    wait_until('luxid is back', lambda: lab.call('QueryClusterInfo'), 60)
    ids = jobs(10)
    wait_taken(ids)
    in_order(ids)


@title('/webhooks/another-master')
def test_other_master():
    """What the last one did not deliver the next one does."""
    name = lab.json('cluster', 'info')['name']
    put('mode', '500')
    ids = jobs(20)
    wait_until('they have ended', lambda: all(lab.job_status(one.split('/')[1])[0] == 'success' for one in ids), 60)
    lab.lab('power', 'node1', 'off')
    lab.master = 'node2'
    lab.run('cluster', 'master-failover', '--alone', '--statement', 'test: its power is off', typed=name + '\n')
    put('mode', 'ok')
    wait_until('luxid of the new master answers', lambda: lab.call('QueryClusterInfo')['master'] == 'node2', 60)
    wait_taken(ids, 300)
    in_order(ids)
    lab.lab('power', 'node1', 'on')
    more = jobs(10)
    wait_taken(more, 300)
    in_order(more)


@title('/webhooks/removed')
def test_removed():
    """Another one, which is told of the same, shows when it would have come."""
    lab.run('webhook', 'add', 'witness', '--url', url(path=WITNESS), '--events', 'job.*')
    lab.cli('webhook', 'remove', 'pager')
    assert [one['name'] for one in lab.json('webhook', 'list')] == ['witness']
    wait_until('a test is taken', lambda: lab.run('webhook', 'test', 'witness', check=False)[0] == 0, PATIENCE_S)
    before, ids = taken(), jobs(3)
    wait_until('another one is told', lambda: set(ids) <= set(taken(WITNESS)), PATIENCE_S)
    assert taken() == before


@title('/webhooks/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def main():
    global lab, folder, receiver
    os.environ.setdefault('FETTLE_WEBHOOK_PATIENCE', '6')
    with tempfile.TemporaryDirectory(prefix='fettle-webhooks-', dir='/var/tmp') as folder, e2e.new_lab(options=OPTIONS) as lab:
        receiver = Receiver()
        try:
            e2e.run(test_bad_input, test_secret, test_refused, test_test, test_jobs, test_bad, test_silent, test_off, test_orderly, test_points,
                    test_luxid, *([test_other_master] if e2e.LONG else []), test_removed, test_logs)
        finally:
            if receiver.process:
                receiver.stop()


main()
