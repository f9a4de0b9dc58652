#!/usr/bin/env python3
"""Events by HTTP (GET /fettle/v1/events) in a lab, as curl reads them: jobs and alerts; who comes again after rapid or luxid is another one; another
master; a user who is removed."""
import json
import os
import subprocess
import threading

import e2e
import rest
from e2e import title, wait_until

OPTIONS = ('--replica-lost-ms', '1000', '--watcher-interval-ms', '500', '--candidates', '2')
PATH = '/fettle/v1/events'
lab = None
master = standby = None


class Follower:
    """curl -N, and what it has been told: [{id, event, data}]."""

    def __init__(self, front, query='', last=None, user='alice:one'):
        self.told, self.place = [], last
        self.process = subprocess.Popen(
            ['curl', '--silent', '--show-error', '--no-buffer', '--include', '--cacert', os.path.join(front.lab.root(front.node), 'etc', 'ca.crt'),
             '-u', user, *(['-H', f'Last-Event-ID: {last}'] if last else []), f'https://127.0.0.1:{front.daemon()["port"]}{PATH}{query}'],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        self.status, self.ended = None, False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        event = {}
        for line in self.process.stdout:
            line = line.rstrip('\r\n')
            if line.startswith('HTTP/'):
                self.status = int(line.split()[1])
            name, _, value = line.partition(': ')
            if name == 'id':
                self.place = value
            elif name in ('event', 'data'):
                event[name] = json.loads(value) if name == 'data' else value
            elif not line and 'data' in event:
                self.told.append(event)
                event = {}
        self.ended = True

    def names(self):
        return [event['event'] for event in self.told]

    def begins(self):
        wait_until('it follows', lambda: self.status == 200 and self.place, 60)
        return self

    def hears(self, name, count=1, timeout=60):
        wait_until(f'{name} is told', lambda: self.names().count(name) >= count, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.thread.join()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def tag(name):
    """A job by REST; its id."""
    job = master.ask('PUT', f'/2/tags?tag={name}')[2]
    lab.wait_job(job)
    return job


def look_again():
    """A file that is nobody's is found by a new watcher, and told of by an event; another one each time."""
    look_again.count = getattr(look_again, 'count', 0) + 1
    path = os.path.join(lab.root('node2'), 'var', 'disks', f'notes{look_again.count}.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('mine')
    lab.lab('kill', f'watcher@{lab.master}')


def subjects(follower, name):
    return [event['data']['summary'] for event in follower.told if event['event'] == name]


@title('/rapid-events/a-job-ends-and-an-event-comes')
def test_told():
    with Follower(master, '?kinds=job,event').begins() as follower:
        job = tag('one')
        follower.hears('job.success')
        told = [event['data'] for event in follower.told if event['event'].startswith('job.')]
        assert {event['id'] for event in told} == {job} and told[-1]['status'] == 'success', follower.told
        assert follower.names().count('job.success') == 1, follower.names()
        look_again()
        follower.hears('event.finding')


@title('/rapid-events/filters-are-asked-of-what-has-changed')
def test_filter():
    with Follower(master, '?kinds=job&filter=%5B%22%3D%22%2C%22status%22%2C%22success%22%5D').begins() as follower:
        jobs = [tag('two'), tag('three')]
        follower.hears('job.success', 2)
        assert [event['data']['id'] for event in follower.told] == jobs, follower.told
    assert master.refused('GET', PATH + '?kinds=job&filter=%5B%22%3D%22%2C%22nmae%22%2C1%5D') == (400, 'kinds.job: there is no field "nmae"')


@title('/rapid-events/who-comes-again-loses-nothing')
def test_resumed():
    """The window has it; or, of a rapid that was started since, luxid's log; or, of another luxid, what is on record."""
    with Follower(master, '?kinds=job,event').begins() as follower:
        first = tag('four')
        follower.hears('job.success')
    place, jobs = follower.place, [tag('five')]
    for kill in (False, True):
        if kill:
            lab.lab('kill', 'rapid@node1')
            wait_until('rapid is back', lambda: answers(master), 60)
            jobs.append(tag('six'))
        with Follower(master, '?kinds=job,event', place).begins() as again:
            again.hears('job.success', len(jobs))
            ended = [event['data']['id'] for event in again.told if event['event'] == 'job.success']
            assert ended == jobs and first not in ended and 'reset' not in again.names(), again.told


@title('/rapid-events/another-luxid')
def test_luxid():
    with Follower(master, '?kinds=job,event').begins() as stays, Follower(master).begins() as leaves:
        before = len(subjects(stays, 'event.finding'))
        leaves.__exit__()
        lab.lab('kill', 'luxid@node1')
        look_again()
        wait_until('luxid is back', lambda: answers(master), 60)
        stays.hears('reset')
        stays.hears('event.finding', before + 1)
        with Follower(master, last=leaves.place).begins() as again:
            again.hears('event.finding')
            assert again.names()[0] == 'reset' and len(subjects(again, 'event.finding')) == 1, again.told
        tag('seven')
        stays.hears('job.success')
        assert not stays.ended


@title('/rapid-events/who-is-removed-hears-no-more')
def test_removed():
    lab.run('rapi', 'user', 'add', 'bob', typed='two\n')
    wait_until('bob is known', lambda: master.ask('GET', '/version', user='bob:two')[0] == 200, 60)
    with Follower(master, user='bob:two').begins() as follower:
        lab.run('rapi', 'user', 'remove', 'bob')
        wait_until('his stream ends', lambda: follower.ended, 90)
        assert follower.process.wait() == 0  # as an answer ends
    with Follower(master, user='bob:two') as follower:
        wait_until('he is refused', lambda: follower.status == 401, 60)


@title('/rapid-events/not-the-master#RAP-01')
def test_standby():
    assert standby.refused('GET', PATH) == (503, 'node2 is not the master; the master is node1')


@title('/rapid-events/another-master#RAP-01')
def test_other_master():
    name = lab.json('cluster', 'info')['name']
    with Follower(master, '?kinds=job,event').begins() as follower:
        look_again()
        follower.hears('event.finding')
        place = follower.place
        lab.lab('power', 'node1', 'off')
        lab.master = 'node2'
        lab.run('cluster', 'master-failover', '--alone', '--statement', 'test: its power is off', typed=name + '\n')
    wait_until('REST of the new master answers', lambda: answers(standby), 60)
    look_again()
    with Follower(standby, '?kinds=job,event', place).begins() as again:
        again.hears('event.finding')
        assert again.names()[0] == 'reset', again.told


def answers(front):
    try:
        return front.ask('GET', '/2/info')[0] == 200
    except (OSError, StopIteration, KeyError):
        return False


@title('/rapid-events/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


def main():
    global lab, master, standby
    with e2e.new_lab(options=OPTIONS) as lab:
        master, standby = rest.Rest(lab), rest.Rest(lab, 'node2')
        lab.run('rapi', 'user', 'add', 'alice', '--write', typed='one\n')
        master.user = standby.user = 'alice:one'
        lab.cli('cluster', 'modify', '--recovery-interval-period', '1s')
        wait_until('REST answers', lambda: answers(master), 60)
        e2e.run(test_told, test_filter, test_resumed, test_luxid, test_removed, test_standby, *([test_other_master] if e2e.LONG else []),
                test_logs)


main()
