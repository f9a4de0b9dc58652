#!/usr/bin/env python3
"""The queue as its users see it: the archive of jobs, limits of LUXI, the stream of changes."""
import json
import os
import re
import socket
import time

import e2e
from e2e import title, wait_until

ALL = ['node1', 'node2', 'node3']
lab = None


def delay(**more):
    job = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, **more})
    assert lab.wait_job(job)[0] == 'success'
    return job


def archive_path(node, job):
    return os.path.join(lab.root(node), 'var', 'queue', 'archive', str(job // 10000), f'job-{job}')


def archived_on(job):
    return [node for node in ALL if os.path.exists(archive_path(node, job))]


@title('/queue/archive-one#LUX-06,LUX-10')
def test_archive_one():
    job, other = delay(), delay()
    out = lab.cli('job', 'archive', str(job))
    assert out == f'Job {job} is archived.\n', out
    assert archived_on(job) == ALL, archived_on(job)
    with open(archive_path('node2', job), encoding='utf-8') as file:
        record = json.load(file)
    assert record['id'] == job and record['status'] == 'success', record
    ids = [row['id'] for row in lab.json('job', 'list')]
    assert other in ids and job not in ids, ids
    rows = {row['id']: row['archived'] for row in lab.json('job', 'list', '--archived')}
    assert rows[job] is True and rows[other] is False, rows
    assert lab.cli('job', 'info', str(job)).startswith(f'Job {job}: success\n')
    assert lab.cli('job', 'watch', str(job)).endswith(f'Job {job} has succeeded.\n')
    # Asked again it is there; what it was submitted with is still its own.
    assert lab.cli('job', 'archive', str(job)) == out


@title('/queue/archive-refused')
def test_archive_refused():
    running = lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 30})
    wait_until('it runs', lambda: lab.job_status(running)[0] == 'running')
    for args, code, message in (
            (('archive', str(running)), 5, f'fettle: job {running} is running: only a job that has ended can be archived'),
            (('archive', '999999'), 3, 'fettle: job 999999 does not exist'),
            (('archive', 'x'), 2, 'fettle: "x" is no job id'),
            (('autoarchive', '5y'), 2, 'fettle: "5y" is no age of at most 365d: a number of seconds, or one with s, m, h, d or w behind it, or all'),
            (('autoarchive', '366d'), 2, 'fettle: "366d" is no age of at most 365d: a number of seconds, or one with s, m, h, d or w behind it, or all')):
        e2e.expect_cli_error(lab, code, message, 'job', *args)
    lab.call('CancelJob', running)
    lab.wait_job(running)


@title('/queue/autoarchive#LUX-06')
def test_autoarchive():
    jobs = [answer[1] for answer in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 0}]] * 150)]
    for job in jobs:
        lab.wait_job(job)
    assert lab.cli('job', 'autoarchive', '1h') == '0 jobs are archived now, 0 of that age are left.\n'
    wait_until('all of them are gone from the list', lambda: lab.cli('job', 'autoarchive', 'all') and not
               {row['id'] for row in lab.query('job', ['id'])} & set(jobs))
    for job in jobs:
        assert archived_on(job) == ALL, (job, archived_on(job))


@title('/queue/old-jobs-go-by-themselves#LUX-06')
def test_by_age():
    old = delay()
    lab.cli('cluster', 'modify', '--job-archive-age-s', '1')
    wait_until('an old job is archived', lambda: archived_on(old) == ALL, 90, step=0.5)
    lab.cli('cluster', 'modify', '--job-archive-age-s', '0')


@title('/queue/archive-waits-for-every-candidate#LUX-10')
def test_archive_waits():
    job = delay()
    lab.lab('power', 'node2', 'off')
    code, _, err = lab.run('job', 'archive', str(job), check=False)
    assert code != 0 and 'jobs stay on record until candidate node2 has them in its archive, or is marked offline: ' in err, err
    assert lab.job_status(job)[0] == 'success' and job in [row['id'] for row in lab.query('job', ['id'])]
    lab.cli('node', 'modify', 'node2', '--offline', 'yes', '--statement', 'its power is off')
    lab.cli('job', 'archive', str(job))
    assert archived_on(job) == ['node1', 'node3'], archived_on(job)
    lab.lab('power', 'node2', 'on')
    lab.cli('node', 'modify', 'node2', '--offline', 'no')
    wait_until('node2 has what it has missed', lambda: archived_on(job) == ALL, 120, step=0.5)


@title('/queue/luxid-dies-while-it-archives#LUX-06')
def test_archive_crashes():
    jobs = [answer[1] for answer in lab.call('SubmitManyJobs', [[{'OP_ID': 'OP_TEST_DELAY', 'duration': 0}]] * 200)]
    for job in jobs:
        lab.wait_job(job)
    for _ in range(6):
        with_luxi = lab.luxi_new()
        with_luxi.send_raw(json.dumps({'method': 'AutoArchiveJobs', 'args': [-1, 5]}).encode() + b'\x03')
        time.sleep(0.02)
        lab.lab('kill', 'luxid@node1')
        with_luxi.close()
        # At every moment each of them is known, once, as it has ended.
        rows = lab.query('job', ['id', 'status', 'archived'])
        found = [row['id'] for row in rows]
        assert len(found) == len(set(found)), found
        assert {row['id'] for row in rows if row['status'] == 'success'} >= set(jobs), rows
        for row in rows:
            if row['id'] in jobs and row['archived']:
                assert archived_on(row['id']) == ALL, row


@title('/queue/archive-after-a-change-of-master#LUX-10,LUX-11,SAF-31')
def test_change_of_master():
    job = delay(request_id='archived-once')
    lab.cli('job', 'archive', str(job))
    lab.lab('power', 'node1', 'off')
    lab.luxi_connection = None
    lab.master = 'node2'
    def taken_over():
        text = lab.run('cluster', 'master-failover', '--yes', check=False)[1]
        return re.search(r'^Node (node[23]) becomes the master', text, re.M)
    lab.master = wait_until('another node becomes the master', taken_over, 40, step=0.5).group(1)
    wait_until('it serves', lambda: lab.run('node', 'list', check=False)[0] == 0, 30)
    lab.cli('node', 'modify', 'node1', '--offline', 'yes', '--statement', 'its power is off')
    assert lab.call('QueryJobs', [job], ['status', 'archived']) == [['success', True]]
    assert job in [row['id'] for row in lab.json('job', 'list', '--archived')]
    assert lab.submit({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'request_id': 'archived-once'}) == job
    new = delay()
    assert new > job, (new, job)
    lab.cli('job', 'archive', str(new))
    assert archived_on(new) == ['node2', 'node3'], archived_on(new)


def main():
    global lab
    with e2e.new_lab(options=('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '200')) as lab:
        e2e.run(test_archive_one, test_archive_refused, test_autoarchive, test_by_age, test_archive_waits, test_archive_crashes, test_change_of_master)


if __name__ == '__main__':
    main()
