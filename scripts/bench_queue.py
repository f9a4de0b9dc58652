"""The job queue and its queries with one instance and with 10,000, and with as many archived jobs."""
import os
import signal
import statistics
import subprocess
import time

import bench_wconfd
import fettlelib

DELAY = {'OP_ID': 'OP_TEST_DELAY', 'duration': 0}
INSTANCES = 10000
FIELDS = ['name', 'pnode', 'admin_state', 'be/memory', 'disk_template']
AT_ONCE = 1000


def ms(seconds):
    return seconds * 1000


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def wait_final(luxi, job):
    """The state that a job ends in."""
    status = None
    while status not in ('success', 'error', 'canceled'):
        status = luxi.call('WaitForJobChange', job, ['status'], [status], None, 30)[0][0]
    return status


def submit_many(luxi, count):
    jobs = [job for ok, job in luxi.call('SubmitManyJobs', [[DELAY]] * count) if ok]
    assert len(jobs) == count
    return jobs


def end_all(luxi, jobs):
    assert all(wait_final(luxi, job) == 'success' for job in reversed(jobs))


def job_process(lab, job):
    """The process that runs a job: fettle-job --root DIR JOB LOCK-NAME."""
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
        except OSError:
            continue
        if words[2:4] == [lab.root(lab.master).encode(), str(job).encode()] and b'fettle-job' in words[0]:
            return int(pid)
    return 0


def resident_mb(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith('VmRSS:'))


def one_job(luxi):
    job = luxi.call('SubmitJob', [DELAY])
    assert wait_final(luxi, job) == 'success'


def death(lab, luxi, resident):
    """From the kill of a job's process to its final state on record, and to its locks being free."""
    job = luxi.call('SubmitJob', [{'OP_ID': 'OP_TEST_DELAY', 'no_locks': False, 'on_instances': ['bench-lock'], 'duration': 600}])
    fettlelib.wait_until('the job runs', lambda: lab.job_status(job)[0] == 'running')
    pid = fettlelib.wait_until('it has a process', lambda: job_process(lab, job))
    resident.append(resident_mb(pid))
    def die():
        os.kill(pid, signal.SIGKILL)
        assert wait_final(luxi, job) == 'error'
        while any(str(job) in map(str, row['owner'] or []) for row in lab.query('lock', ['name', 'owner'])):
            pass
    return ms(timed(die))


def submit_ms(luxi):
    jobs = []
    took = ms(timed(lambda: jobs.extend(submit_many(luxi, 1000))))
    end_all(luxi, jobs)
    return took


def measure_jobs(lab, runs):
    """name -> values"""
    luxi = lab.luxi_new()
    for _ in range(10):
        one_job(luxi)
    values = {'noop_job_ms': [ms(timed(lambda: one_job(luxi))) for _ in range(runs)]}
    values['jobs_per_s'] = [500 / timed(lambda: end_all(luxi, submit_many(luxi, 500))) for _ in range(3)]
    values['submit_1000_ms'] = [submit_ms(luxi) for _ in range(7)]
    values['job_rss_mb'] = []
    values['job_death_ms'] = [death(lab, luxi, values['job_rss_mb']) for _ in range(max(5, runs // 10))]
    luxi.close()
    return values


GOALS = {'noop_job_ms': '<= 0.03 floor_cpu_ms + 3 floor_fdatasync_ms + 0.06 floor_wake_us', 'jobs_per_s': '>= 2.5e4 / floor_cpu_ms',
         'jobs_per_s_etcd': '>= 1e4 / floor_cpu_ms', 'submit_1000_ms': '<= 5 floor_cpu_ms', 'job_death_ms': '<= 1 floor_cpu_ms',
         'job_rss_mb': '<= 8'}


def show(figures, values, suffix=''):
    for name, all_of in values.items():
        unit = next(word for ending, word in (('_ms', 'ms'), ('_per_s', '1/s'), ('_mb', 'MB')) if ending in name)
        figures.add(name + suffix, all_of, unit, GOALS.get(name + suffix, GOALS.get(name, '')))


def fill_up(lab, count):
    """Instances, one like the other, until there are so many."""
    if not lab.instance('pattern', 'name'):
        lab.do('OP_INSTANCE_CREATE', instance_name='pattern', disk_template='diskless', memory=1, pnode='node1', start=False)
    client = bench_wconfd.Client(lab.root('node1'), bench_wconfd.AS_JOB)
    instance, there = bench_wconfd.pattern(lab.root('node1'))
    bench_wconfd.hold_everything(client, lab.root('node1'))
    bench_wconfd.fill(client, instance, count - there)
    client.call('free_locks', {'owner': bench_wconfd.OWNER})
    client.close()
    fettlelib.wait_until('luxid has them', lambda: len(lab.query('instance', ['name'])) == count, 300, step=0.5)


def archive_many(lab):
    """10,000 jobs in the archive."""
    luxi = lab.luxi_new()
    while (left := INSTANCES - archived(lab)) > 0:
        end_all(luxi, submit_many(luxi, min(left, AT_ONCE)))
        lab.call('AutoArchiveJobs', 0, 60)
    luxi.close()


def archived(lab):
    folder = os.path.join(lab.root('node1'), 'var', 'queue', 'archive')
    return sum(len(files) for _, _, files in os.walk(folder))


def query_ms(lab, condition):
    """From the question to the last byte of the answer."""
    luxi = lab.luxi_new()
    luxi.call('Query', 'instance', FIELDS, condition)
    def ask():
        luxi.send({'method': 'Query', 'args': ['instance', FIELDS, condition]})
        data = b''
        while not data.endswith(b'\x03'):
            data += luxi.socket.recv(1 << 20)
    values = [ms(timed(ask)) for _ in range(20)]
    luxi.close()
    return values


def list_ms(lab):
    env = {**os.environ, 'FETTLE_ROOT': lab.root('node1')}
    return [ms(timed(lambda: subprocess.run([lab.fettle, 'instance', 'list'], env=env, check=True, stdout=subprocess.DEVNULL)))
            for _ in range(20)]


def metrics_ms(lab):
    """The document that the cluster's metrics are taken from; the first answer waits for the nodes."""
    luxi = lab.luxi_new()
    luxi.call('QueryMetrics')
    values = [ms(timed(lambda: luxi.call('QueryMetrics'))) for _ in range(20)]
    luxi.close()
    return values


def luxid_pid(lab):
    return next(d['pid'] for n in lab.status()['nodes'] if n['name'] == 'node1' for d in n['daemons'] if d['name'] == 'luxid')


def queries(lab, figures):
    figures.add('query_5_fields_ms', query_ms(lab, None), 'ms', '<= 0.25 floor_cpu_ms')
    figures.add('query_filter_ms', query_ms(lab, ['&', ['=', 'pnode', 'node1'], ['=~', 'name', '^filled-0']]), 'ms',
                '<= 0.15 floor_cpu_ms')
    figures.add('metrics_ms', metrics_ms(lab), 'ms', '<= 30')
    figures.add('instance_list_cli_ms', list_ms(lab), 'ms', '<= 1.2 floor_cpu_ms')


def archive(lab, figures):
    archive_many(lab)
    time.sleep(35)  # two looks at what the daemon has free, after which it has given it back
    figures.add('luxid_rss_mb', resident_mb(luxid_pid(lab)), 'MB', '<= 80')


def times_one(figures, few, many):
    """What 10,000 instances cost beside one."""
    for name in ('noop_job_ms', 'jobs_per_s', 'submit_1000_ms', 'job_death_ms'):
        share = statistics.median(many[name]) / statistics.median(few[name])
        figures.add(name + '_times_one', share, 'times', '>= 0.6' if name == 'jobs_per_s' else '<= 1.6')


def with_one_and_many(build, figures, runs):
    with fettlelib.Lab(build) as lab:
        few = measure_jobs(lab, runs)
        show(figures, few)
        fill_up(lab, INSTANCES)
        many = measure_jobs(lab, runs)
        show(figures, many, '_10000')
        times_one(figures, few, many)
        queries(lab, figures)
        archive(lab, figures)


def with_etcd(build, figures):
    with fettlelib.Lab(build, options=('--candidates', '3', '--engine', 'etcd')) as lab:
        luxi = lab.luxi_new()
        rates = [500 / timed(lambda: end_all(luxi, submit_many(luxi, 500))) for _ in range(3)]
        luxi.close()
        show(figures, {'jobs_per_s_etcd': rates})


def measure(build, figures, runs):
    figures.part('queue', 600, with_one_and_many, build, figures, runs)
    figures.part('queue_etcd', 90, with_etcd, build, figures)
