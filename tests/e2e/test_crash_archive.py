#!/usr/bin/env python3
"""Death at every call to the outside, of each process, while jobs go into the archive (how: test_crash.py).

Whatever dies, at every moment each job is known once, as it has ended; what is told to be in the archive is in that of every
candidate; asked again the rest goes there too; and what was submitted under a request id is still that job. FETTLE_LONG=1
walks all points, otherwise a spread sample.
"""
import json
import os
import shutil
import tempfile
import time

import e2e
import test_crash as crash
from e2e import fettlelib, title, wait_until

ALL = ['node1', 'node2', 'node3']
DAEMONS = {'luxid': 'luxid@node1', 'wconfd': 'wconfd@node1', 'own-archive': 'noded@node1', 'other-archive': 'noded@node2'}
JOBS = 3
lab = None
points = {}  # process -> number of crash points


def ended_jobs():
    """New jobs that have ended: id -> request id."""
    jobs = {}
    for index in range(JOBS):
        request = f'archive-{crash.run_number}-{index}'
        jobs[crash.submit_surely({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'request_id': request})[0]] = request
    for job in jobs:
        assert lab.wait_job(job)[0] == 'success', job
    return jobs


def archived_on(job):
    paths = {node: os.path.join(lab.root(node), 'var', 'queue', 'archive', str(job // 10000), f'job-{job}') for node in ALL}
    found = []
    for node, path in paths.items():
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                record = json.load(file)
            assert record['id'] == job and record['status'] == 'success', record
            found.append(node)
    return found


def look(jobs):
    """Each of them is there, once; returns those that are in the archive."""
    rows = [row for row in lab.query('job', ['id', 'status', 'archived']) if row['id'] in jobs]
    assert sorted(row['id'] for row in rows) == sorted(jobs), (jobs, rows)
    assert {row['status'] for row in rows} == {'success'}, rows
    for row in rows:
        if row['archived']:
            assert archived_on(row['id']) == ALL, (row, archived_on(row['id']))
    return {row['id'] for row in rows if row['archived']}


def archive():
    """Asks once; whoever dies may break the line, or be missed for a moment."""
    try:
        with_luxi = lab.luxi_new()
    except OSError:
        return None
    try:
        return with_luxi.call('AutoArchiveJobs', -1, 5)
    except (OSError, fettlelib.LuxiError) as error:
        return str(error)
    finally:
        with_luxi.close()


def archive_all(jobs):
    """Asks until they are all in the archive; looks after every answer."""
    patience, answers = fettlelib.Patience(crash.HEAL_S), []
    while True:
        answers.append(archive())
        if look(jobs) == set(jobs):
            return
        assert not patience.is_over(), f'not archived after {crash.HEAL_S} s: {answers[-3:]}'
        time.sleep(0.1)


def perform(jobs, arming, archived=lambda: None):
    arming.begin()
    archive_all(jobs)
    archived()
    e2e.verify_clean(lab, crash.HEAL_S)
    assert not {row['id'] for row in lab.query('job', ['id'])} & set(jobs)
    for job, request in jobs.items():
        again, = crash.submit_surely({'OP_ID': 'OP_TEST_DELAY', 'duration': 0, 'request_id': request})
        assert again == job, f'request {request} was job {job}, and becomes job {again}'


@title('/crash/count/archive')
def test_count():
    archive_all(ended_jobs())  # with whatever was there before, and the folders for it
    crash.run_number += 1
    arming, jobs = crash.Arming(), ended_jobs()
    logs = {process: os.path.join(crash.folder, f'{process}.log') for process in DAEMONS}
    for process, daemon in DAEMONS.items():
        crash.restart(daemon, arming.variables(process, log=logs[process]))
    def count():
        for process in DAEMONS:
            points[process] = crash.first_life(logs[process])
    perform(jobs, arming, count)
    # luxid answers from the archive after that; a node daemon is only asked whether all is well, more or less often.
    points['luxid'] = crash.first_life(logs['luxid'])
    print('# crash points of archive: ' + ', '.join(f'{p} {n}' for p, n in points.items()), flush=True)
    assert all(points.values()), points


def kill_at(process, at):
    crash.run_number += 1
    arming, jobs = crash.Arming(), ended_jobs()
    crash.restart(DAEMONS[process], arming.variables(process, at=at))
    try:
        perform(jobs, arming)
    except (AssertionError, TimeoutError) as error:
        raise AssertionError(f'{process} killed at its point {at} of {points[process]} (run {crash.run_number}): {error}') from error
    print(f'# archive, {process} killed at {at} of {points[process]}{"" if arming.happened() else " (not reached)"}', flush=True)
    return arming.happened()


def walker(process):
    return title(f'/crash/archive/{process}#LUX-06,LUX-10,SAF-30,SAF-31')(
        lambda: crash.walk(process, points[process], lambda at: kill_at(process, at)))


@title('/crash/archive/no-sanitizer-report')
def test_logs():
    e2e.verify_clean(lab, crash.HEAL_S)
    e2e.check_logs(lab)


def main():
    global lab
    crash.folder = tempfile.mkdtemp(prefix='fettle-crash-', dir='/var/tmp')
    try:
        with e2e.new_lab(options=('--candidates', '3', '--replica-lost-ms', '1000', '--watcher-interval-ms', '500')) as lab:
            crash.lab = lab
            wait_until('all candidates keep up', lambda: e2e.verify(lab)[0] == 0)
            e2e.run(test_count, *(walker(process) for process in DAEMONS), test_logs)
    finally:
        shutil.rmtree(crash.folder, ignore_errors=True)


if __name__ == '__main__':
    main()
