#!/usr/bin/env python3
"""Rules about jobs, limits in reasons, who submitted a job, and the sure end of one: on real processes."""
import os
import re
import signal
import time

import e2e
from e2e import fettlelib, title, wait_until

lab = None
DELAY = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0.5}


def reason(text):
    return {'reason': [['user', text, time.time_ns()]]}


def submit(count, **more):
    return [answer[1] for answer in lab.call('SubmitManyJobs', [[{**DELAY, **more}]] * count)]


def states(jobs):
    return [row[0] for row in lab.call('QueryJobs', jobs, ['status'])]


def add_rule(*args):
    uuid = lab.json('queue', 'filter', 'add', *args)['uuid']
    assert [rule['uuid'] for rule in lab.json('queue', 'filter', 'list')].count(uuid) == 1, uuid
    return uuid


def remove_rule(uuid):
    lab.cli('queue', 'filter', 'remove', uuid)


def most_at_once(jobs):
    """How many ran at once, by the times on record: from the start of a job's process to its end."""
    rows = lab.call('QueryJobs', jobs, ['start_ts', 'end_ts'])
    moments = sorted([(tuple(start), 1) for start, _ in rows] + [(tuple(end), -1) for _, end in rows])
    now = most = 0
    for _, by in moments:
        now += by
        most = max(most, now)
    return most


def all_end(jobs, wanted='success'):
    for job in jobs:
        status, result = lab.wait_job(job)
        assert status == wanted, (job, status, result)


@title('/rules/pause-holds-a-job-until-the-rule-is-gone#FUT-13')
def test_pause():
    rule = add_rule('--for-reason', 'later', 'PAUSE')
    held, = submit(1, **reason('later'))
    other, = submit(1)
    all_end([other])
    assert states([held]) == ['queued']
    why = lab.cli('why', str(held))
    assert f'\n  held                 filter {rule} pauses it\n' in lab.cli('job', 'info', str(held))
    since = r'since \d{4}-\S+ \S+'
    expected = (rf'Job {held} is queued and\n  waits {since}, because filter {rule} pauses it\n  goes on once that rule is gone\n'
                '  your rules about jobs, and how to take one away: fettle queue filter list; fettle queue filter remove UUID\n')
    assert re.fullmatch(expected, why), why
    after, = submit(1, depends=[[other, []], [held, ['success', 'error']]])  # the first has ended, and is not waited for
    why = lab.cli('why', str(after))
    assert re.fullmatch(rf'Job {after} is queued and\n  waits {since}, because it depends on job {held}, which is queued\n'
                        rf'  goes on once job {held} has ended in success or error: fettle why {held}\n', why), why
    told, = lab.json('why', str(after))
    assert told['dependencies'] == [{'id': held, 'status': 'queued', 'wanted': ['success', 'error']}] and told['held'] is None, told
    assert [(hold['kind'], hold['job']) for hold in told['holds']] == [('dependency', held)], told
    remove_rule(rule)
    all_end([held, after])
    told, = lab.json('why', str(after))
    assert (told['status'], told['dependencies'], told['waits']) == ('success', [], []), told


@title('/rules/reject-refuses-new-jobs-and-cancels-queued-ones#FUT-13')
def test_reject():
    pause = add_rule('--priority', '1', '--for-reason', 'unwanted', 'PAUSE')
    queued, = submit(1, **reason('unwanted'))
    reject = add_rule('--priority', '0', '--for-reason', 'unwanted', '--reason', 'ask first', 'REJECT')
    remove_rule(pause)
    all_end([queued], 'canceled')
    e2e.expect_refusal(lab, f'the job is not accepted: filter {reject} ("ask first") rejects it',
                       {**DELAY, **reason('unwanted')})
    all_end(submit(1))
    remove_rule(reject)


@title('/rules/rate-limit-lets-so-many-run-and-delays-no-others#FUT-13')
def test_rate_limit():
    rule = add_rule('--for-reason', 'nightly', 'RATE_LIMIT:2')
    limited = submit(6, **reason('nightly'))
    others = submit(6)
    all_end(limited + others)
    assert most_at_once(limited) == 2, most_at_once(limited)
    assert most_at_once(others) > 2, most_at_once(others)
    remove_rule(rule)


@title('/rules/limit-in-the-reason-of-a-job#FUT-13')
def test_own_limit():
    jobs = submit(4, **reason('rate-limit:1:backup'))
    all_end(jobs)
    assert most_at_once(jobs) == 1


def as_user(uid, *args):
    """The command as somebody runs it who has logged in as `uid` and become root then, as with sudo."""
    command = f'echo {uid} >/proc/self/loginuid && exec "$@"'
    done = fettlelib.run_command(['sh', '-c', command, 'sh', lab.fettle, '--root', lab.root(lab.master), *args], 60)
    return done.returncode, done.stdout, done.stderr


@title('/rules/user-is-who-logged-in-also-after-sudo#FUT-13')
def test_user():
    with open('/etc/passwd', encoding='utf-8') as file:
        name, uid = next((line.split(':')[0], line.split(':')[2]) for line in file if not line.startswith('root:'))
    code, output, error = as_user(uid, 'tag', 'add', 'cluster', 'of-the-user', '--submit')
    assert code == 0, error
    job = int(re.search(r'Job (\d+) is submitted', output)[1])
    assert lab.wait_job(job)[0] == 'success'
    nobody, = submit(1)
    assert [row['user'] for row in lab.query('job', ['user'], ['=', 'id', job])] == [name]
    assert [row['user'] for row in lab.query('job', ['user'], ['=', 'id', nobody])] == ['root']
    rule = add_rule('--user', name, 'REJECT')
    code, output, error = as_user(uid, 'tag', 'add', 'cluster', 'another', '--submit')
    assert code != 0 and f'filter {rule} rejects it' in error, (code, output, error)
    all_end(submit(1))
    remove_rule(rule)


@title('/rules/cancel-kill-ends-a-job-that-does-not-listen#LUX-08,LUX-14')
def test_kill():
    other, = submit(1, duration=20)
    job, = submit(1, duration=300, no_locks=False, on_instances=['web'])
    wait_until('the job runs', lambda: states([job]) == ['running'])
    pid = wait_until('it has a process', lambda: e2e.job_pid(lab, job))
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    lab.cli('job', 'cancel', str(job), '--kill')
    status, result = lab.wait_job(job)
    assert (status, result) == ('error', [f'detected death of job {job}']), (status, result)
    assert time.monotonic() - begun > 5, 'it was given no time'
    assert not e2e.job_pid(lab, job)
    wait_until('its locks are free', lambda: not [row for row in lab.query('lock', ['name', 'owner'])
                                                  if str(job) in map(str, row['owner'] or [])])
    all_end([other])


@title('/rules/no-sanitizer-report')
def test_logs():
    e2e.check_logs(lab)


if __name__ == '__main__':
    with e2e.new_lab(nodes=1) as lab:
        e2e.run(test_pause, test_reject, test_rate_limit, test_own_limit, test_user, test_kill, test_logs)
